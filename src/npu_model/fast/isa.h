// Which instruction set the fast kernels use: the best that this processor has, or less when told so.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace talpa::npu_model::fast {

enum class Isa : std::uint8_t {
    Generic,     ///< plain C++, vectors of 16 bytes
    Avx2,        ///< 16-bit multiply-add
    Avx512Vnni,  ///< 8-bit dot products, byte permutes (Ice Lake, Zen 4 and later)
};

[[nodiscard]] std::string_view isa_name(Isa isa);

/// All that this processor can run, worst first.
[[nodiscard]] std::span<const Isa> supported_isas();

/// The one in use: the last of `supported_isas`, unless the environment variable TALPA_ISA (generic, avx2, avx512) or
/// `force_isa` ask for a lesser one. A name that is unknown or not supported here is ignored.
[[nodiscard]] Isa current_isa();

/// For tests: from now on `current_isa` returns this one. Not while a kernel runs.
void force_isa(Isa isa);

}  // namespace talpa::npu_model::fast
