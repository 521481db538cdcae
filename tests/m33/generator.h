// Random instructions of a group, and random machine states to run them in.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "encodings.h"

namespace talpa::m33_test {

using Random = std::mt19937_64;

struct State {
    std::array<std::uint32_t, 15> r{};  ///< r[13] the stack pointer
    std::uint32_t apsr = 0;             ///< NZCVQ and GE
    std::array<std::uint32_t, 32> s{};
    std::uint32_t fpscr = 0;
    friend bool operator==(const State&, const State&) = default;
};

// The test's memory map, the same in both machines.
inline constexpr std::uint32_t kCode = 0x00010000;
inline constexpr std::uint32_t kCodeSize = 0x40000;
inline constexpr std::uint32_t kData = 0x20000000;
inline constexpr std::uint32_t kDataSize = 0x8000;

struct Sequence {
    std::vector<std::uint16_t> code;
    unsigned instructions = 0;
    std::string text;  ///< names, for reports
    bool branches = false;
};

/// A straight piece of code of about `length` instructions of `group`, IT blocks included. For branches: one
/// instruction.
[[nodiscard]] Sequence make_sequence(std::string_view group, unsigned length, Random& random);
[[nodiscard]] State make_state(std::string_view group, Random& random);
[[nodiscard]] std::vector<std::string_view> group_names();
/// A Thumb address in the half of the code that holds no sequences.
[[nodiscard]] std::uint32_t branch_target(Random& random);
/// Bits of the APSR in which the oracle is known to be right for this group.
[[nodiscard]] std::uint32_t comparable_flags(std::string_view group);
[[nodiscard]] bool uses_memory(std::string_view group);

}  // namespace talpa::m33_test
