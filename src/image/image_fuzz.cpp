// A stranger's picture, all the way to a tensor.
#include "image/decode.h"
#include "image/preprocess.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa;
    const image::Limits limits{.max_pixels = 1 << 16, .max_file_bytes = 1 << 20};
    const auto picture = image::decode(Bytes(data, size), limits);
    if (!picture) return 0;
    if (picture->rgb.size() != std::size_t{picture->width} * picture->height * 3 || picture->rgb.empty())
        __builtin_trap();
    image::PreprocessSpec spec{.width = 24, .height = 20, .shorter_side = 28};
    if (!image::to_tensor(*picture, spec)) __builtin_trap();
    return 0;
}
