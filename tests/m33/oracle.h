// Unicorn's Cortex-M33 as an independent opinion on what instructions do. It is a program of its own licence that only
// tests link; nothing that talpa ships does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "generator.h"

struct uc_struct;

namespace talpa::m33_test {

class Oracle {
  public:
    /// Runs with code and data in the caller's memory (kCode, kData).
    Oracle(std::span<std::uint8_t> code, std::span<std::uint8_t> data);
    ~Oracle();
    Oracle(const Oracle&) = delete;
    Oracle& operator=(const Oracle&) = delete;

    /// Call after code memory has changed.
    void forget_code();
    /// Runs from `begin` to `end` or to what it cannot execute; `state` in and out. The final PC, and what went wrong.
    std::uint32_t run(std::uint32_t begin, std::uint32_t end, State& state, std::string& error);
    [[nodiscard]] static bool stopped_at_undefined(const std::string& error);

  private:
    uc_struct* engine_ = nullptr;
};

}  // namespace talpa::m33_test
