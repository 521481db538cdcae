// Weight streams of a stranger: the decoder must answer with the wanted number of weights or an error, whatever the
// bytes. Input: 8 bytes of shape, then the stream (two streams of half the rest each, for two cores).
#include <cstdint>
#include <cstdlib>

#include "npu_model/filter.h"

using namespace talpa;
using namespace talpa::npu_model;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 8) return 0;
    FilterSource source;
    const std::uint8_t flags = data[6];
    source.order = {.ofm_depth = data[0] % 100u + 1,
                    .kernel_height = data[1] % 12u + 1,
                    .kernel_width = data[2] % 12u + 1,
                    .ifm_depth = data[3] % 100u + 1,
                    .block_depth = data[4] % 128u + 1,
                    .dilation_y = static_cast<std::uint8_t>((flags & 1) + 1),
                    .dilation_x = static_cast<std::uint8_t>((flags >> 1 & 1) + 1),
                    .depthwise = (flags & 4) != 0,
                    .part_kernel_first = (flags & 8) != 0,
                    .ifm_16bit = (flags & 16) != 0,
                    .decompose_4x4 = (flags & 32) != 0,
                    .ublock_depth = static_cast<std::uint8_t>((flags & 64) != 0 ? 4 : 8),
                    .cores = static_cast<std::uint8_t>((flags & 128) != 0 ? 2 : 1)};
    source.scales_globally = true;
    const Bytes rest = Bytes(data, size).subspan(8);
    if (source.order.cores == 2) {
        source.weights[0] = rest.first(rest.size() / 2);
        source.weights[1] = rest.subspan(rest.size() / 2);
    } else {
        source.weights[0] = rest;
    }
    if (const auto filter = decode_filter(source)) {
        if (filter->weights.size() != source.order.bank_size()) std::abort();
        for (const std::int16_t w : filter->weights)
            if (w < -255 || w > 255) std::abort();
    }
    // A count of the fuzzer's choice, near what streams of this length hold.
    const std::uint64_t expected = data[5] + 256u * data[7];
    if (const auto symbols = decode_symbols(rest, expected); symbols && symbols->size() != expected) std::abort();
    return 0;
}
