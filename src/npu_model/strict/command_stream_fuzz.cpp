// Arbitrary words as a command stream, through everything that looks at one without running it: scan, rules, hazards,
// printer, and the encoder, whose output must decode to the same operations. The first byte picks the hardware.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "npu/cop.h"
#include "npu/host/print.h"
#include "npu/host/vector_sink.h"
#include "npu/scan.h"
#include "npu/validate.h"
#include "npu_model/strict/hazards.h"

namespace {

using namespace talpa;

[[noreturn]] void broken(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

std::vector<npu::Operation> operations_of(npu::Words words, const npu::Hardware& hardware) {
    std::vector<npu::Operation> ops;
    npu::Decoder decoder{words};
    while (true) {
        const auto op = decoder.next();
        if (!op || !*op) break;
        static_cast<void>(npu::check(**op, hardware));
        ops.push_back(**op);
    }
    return ops;
}

std::vector<std::uint32_t> encoded(const std::vector<npu::Operation>& ops, npu::Product product) {
    npu::VectorSink sink;
    npu::StreamWriter writer(sink, product);
    for (const npu::Operation& op : ops)
        if (!writer.emit(op)) broken("the encoder failed");
    return sink.words;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0 || size > 64 * 1024) return 0;
    const npu::Hardware& hardware = npu::kHardware[data[0] % npu::kHardware.size()];
    std::vector<std::uint32_t> words((size - 1) / 4);
    if (!words.empty()) std::memcpy(words.data(), data + 1, words.size() * 4);

    static_cast<void>(npu::parse_payload({reinterpret_cast<const std::uint8_t*>(words.data()), words.size() * 4}));
    const auto result = npu::scan(words);
    if (result && result->size_bytes > words.size() * 4) broken("the scan went beyond the stream");
    if (npu::stream_text(words, npu::Listing::Both).empty()) broken("the printer said nothing");

    std::vector<npu::Operation> ops = operations_of(words, hardware);
    std::vector<std::uint32_t> again = encoded(ops, npu::Product::EthosU65);
    std::vector<npu::Operation> after = operations_of(again, hardware);
    if (after.size() != ops.size()) broken("the encoded stream has another number of operations");
    for (std::size_t i = 0; i < ops.size(); ++i) {
        after[i].offset_bytes = ops[i].offset_bytes;
        if (!(after[i] == ops[i])) broken("an operation changed on its way through the encoder");
    }
    if (encoded(after, npu::Product::EthosU65) != again) broken("the encoder is not stable");

    npu_model::HazardOptions options;
    options.hardware = &hardware;
    options.initialised.emplace().push_back({.region = 1, .range = {.offset = 0, .size = 4096}});
    options.effort = 1 << 18;
    const auto hazards = npu_model::find_hazards(words, options);
    if (hazards && hazards->size() > options.at_most) broken("more hazards than asked for");
    return 0;
}
