// How a picture becomes the input of a program: from the input's type and shape, what the program says of itself, and
// flags.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/error.h"
#include "image/preprocess.h"
#include "runtime/host/session.h"

namespace talpa::classifier {

/// --mean, --std, --range as the user gave them: nothing, or 1 or 3 numbers, 1 or 3, and 2.
struct NormalisationFlags {
    std::vector<float> mean, std, range;
};
/// Numbers that no picture can be scaled by: a std of 0, an empty range. InvalidArgument names the flag.
[[nodiscard]] host::Result<void> check(const NormalisationFlags& flags);
/// "0.485,0.456,0.406" with `allowed` counts of numbers. InvalidArgument names the flag.
[[nodiscard]] host::Result<std::vector<float>> parse_numbers(std::string_view flag, std::string_view text,
                                                             std::span<const std::size_t> allowed);

struct PictureInput {
    image::PreprocessSpec spec;
    std::string note;  ///< what had to be assumed, for the user to know; empty when nothing
};

/// Recipe for input `index` of a method. Range, mean and std: the flags, else the program's constant methods
/// `input0_range`, `input0_mean`, `input0_std` (or with the method's name and `_` in front), else -1..1 (0..1 when mean
/// or std are given); the shorter side: `input0_resize`, else 8/7 of the crop. An integer input without a known scale
/// is taken to span its type's range. InvalidType when the tensor is no picture: [1, 3, H, W] or [1, H, W, 3], or one
/// channel instead of three, of float32 or 8- or 16-bit integers.
[[nodiscard]] host::Result<PictureInput> picture_input(const pte::Program& program, std::string_view method,
                                                       std::uint32_t index, const runtime::host::PortInfo& port,
                                                       const NormalisationFlags& flags);

}  // namespace talpa::classifier
