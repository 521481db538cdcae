// Memory that a thread of a kernel works in and keeps for the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace talpa::npu_model::fast {

/// Grows as needed; aligned to 64 bytes; keeps nothing from one use to the next.
class Scratch {
  public:
    [[nodiscard]] std::uint8_t* get(std::size_t bytes) {
        if (bytes + 64 > bytes_.size()) bytes_ = std::vector<std::uint8_t>(bytes + 64);
        const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
        return bytes_.data() + (64 - address % 64) % 64;
    }

  private:
    std::vector<std::uint8_t> bytes_;
};

/// Of the calling thread; `slot` tells apart what one kernel uses at the same time.
enum class ScratchSlot : std::uint8_t { Image, Rows, Accumulators, Count };
[[nodiscard]] std::uint8_t* scratch(ScratchSlot slot, std::size_t bytes);

}  // namespace talpa::npu_model::fast
