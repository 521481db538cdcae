// For tests and benchmarks: memory of a region.
#pragma once

#include <cstring>
#include <vector>

#include "base/core/byte_reader.h"
#include "npu/device.h"

namespace talpa::npu_model::testing {

/// Memory at a 16-aligned address, as base pointers want it.
class AlignedMemory {
  public:
    AlignedMemory() = default;
    explicit AlignedMemory(std::size_t size) : size_(size), blocks_(size / 16 + 1) {}
    explicit AlignedMemory(Bytes bytes) : AlignedMemory(bytes.size()) {
        if (!bytes.empty()) std::memcpy(data(), bytes.data(), bytes.size());
    }
    [[nodiscard]] std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(blocks_.data()); }
    [[nodiscard]] const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(blocks_.data()); }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] Bytes bytes() const { return {data(), size_}; }
    [[nodiscard]] npu::Region region() { return {data(), size_}; }
    friend bool operator==(const AlignedMemory& a, const AlignedMemory& b) {
        return a.size_ == b.size_ && (a.size_ == 0 || std::memcmp(a.data(), b.data(), a.size_) == 0);
    }

  private:
    struct alignas(16) Block {
        std::uint8_t bytes[16] = {};
    };
    std::size_t size_ = 0;
    std::vector<Block> blocks_;
};

}  // namespace talpa::npu_model::testing
