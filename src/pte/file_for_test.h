// For tests: bytes at a multiple of 64 and with nothing after them, so that a sanitizer sees a read past their end.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/core/byte_reader.h"
#include "base/core/error.h"

namespace talpa::pte::testing {

inline std::string text(const Error& error) {
    std::array<char, 512> buffer;
    return std::string(error.render(buffer));
}

class ExactBytes {
  public:
    explicit ExactBytes(Bytes bytes) : size_(bytes.size()) {
        void* memory = nullptr;
        if (::posix_memalign(&memory, 64, std::max<std::size_t>(size_, 1)) != 0) std::abort();
        memory_.reset(static_cast<std::uint8_t*>(memory));
        std::ranges::copy(bytes, memory_.get());
    }
    [[nodiscard]] Bytes bytes() const { return {memory_.get(), size_}; }
    [[nodiscard]] std::uint8_t* data() { return memory_.get(); }

  private:
    struct Free {
        void operator()(std::uint8_t* p) const { std::free(p); }
    };
    std::unique_ptr<std::uint8_t, Free> memory_;
    std::size_t size_;
};

}  // namespace talpa::pte::testing
