// Memory for translated code, mapped twice so that no page is writable and executable at once.
#pragma once

#include <cstddef>
#include <span>

#include "board/cpu/types.h"

namespace talpa::board::cpu {

class CodeBuffer {
  public:
    explicit CodeBuffer(std::size_t size);
    ~CodeBuffer();
    CodeBuffer(const CodeBuffer&) = delete;
    CodeBuffer& operator=(const CodeBuffer&) = delete;

    /// False where the host refuses executable memory: the interpreter does all the work then.
    [[nodiscard]] bool usable() const { return execute_ != nullptr; }
    [[nodiscard]] std::span<u8> writable() const { return {write_, size_}; }
    [[nodiscard]] const u8* executable() const { return execute_; }

  private:
    u8* write_ = nullptr;
    u8* execute_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace talpa::board::cpu
