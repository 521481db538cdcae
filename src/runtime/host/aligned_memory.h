// Memory of exactly so many bytes at a multiple of 64, so that a sanitizer sees the first byte beyond it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace talpa::runtime::host {

class AlignedMemory {
  public:
    AlignedMemory() = default;
    explicit AlignedMemory(std::size_t bytes) : size_(bytes) {
        void* memory = nullptr;
        if (bytes != 0 && ::posix_memalign(&memory, 64, bytes) != 0) throw std::bad_alloc();
        memory_.reset(static_cast<std::uint8_t*>(memory));
    }
    [[nodiscard]] std::span<std::uint8_t> pool() const { return {memory_.get(), size_}; }

  private:
    struct Free {
        void operator()(std::uint8_t* p) const { std::free(p); }
    };
    std::unique_ptr<std::uint8_t, Free> memory_;
    std::size_t size_ = 0;
};

}  // namespace talpa::runtime::host
