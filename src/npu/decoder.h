// From command words to operations. The decoder keeps the whole register state, since streams leave out every write
// that would not change a register (ethos-u65, section 3.2). Freestanding; the words are read one aligned word at a
// time.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/core/error.h"
#include "npu/commands.h"
#include "npu/operation.h"

namespace talpa::npu {

using Words = std::span<const std::uint32_t>;

/// Walks the words of a stream. Errors (CommandStream, with the byte offset): a reserved control value, bits [13:10]
/// set, an unknown code, a payload beyond the end. `next` returns nothing at the end of the words.
class CommandReader {
  public:
    explicit CommandReader(Words words) : words_(words) {}
    [[nodiscard]] Result<std::optional<Command>> next();
    [[nodiscard]] std::uint32_t offset_bytes() const { return static_cast<std::uint32_t>(position_ * 4); }

  private:
    Words words_;
    std::size_t position_ = 0;
};

/// The registers that commands write. Values are raw; `resolve` gives them their meaning.
class RegisterState {
  public:
    void apply(const Command& set_command);
    [[nodiscard]] bool written(Cmd0 r) const { return written0_[index(r)]; }
    [[nodiscard]] bool written(Cmd1 r) const { return written1_[index(r)]; }
    [[nodiscard]] std::uint16_t get(Cmd0 r) const { return cmd0_[index(r)]; }
    [[nodiscard]] const Command& get(Cmd1 r) const { return cmd1_[index(r)]; }

    /// What the operation command would do now. Errors (CommandStream): reserved field values, a region above 7, a
    /// dilated extent that its dilation does not divide, padding as large as the window, channel counts that do not
    /// correspond.
    [[nodiscard]] Result<Operation> resolve(const Command& operation) const;

  private:
    static constexpr std::size_t index(Cmd0 r) { return static_cast<std::size_t>(r) - 0x100; }
    static constexpr std::size_t index(Cmd1 r) { return static_cast<std::size_t>(r); }
    void resolve_tiles(FeatureMap& fm, Cmd1 base0, Cmd1 stride_x, Cmd0 width0) const;
    [[nodiscard]] Result<void> resolve_dma(Operation& op, const Command& c) const;
    [[nodiscard]] Result<void> resolve_output(Operation& op, const Command& c) const;
    [[nodiscard]] Result<void> resolve_ifm(Operation& op, const Command& c) const;
    [[nodiscard]] Result<void> resolve_elementwise(Operation& op, const Command& c) const;
    [[nodiscard]] Result<void> resolve_window(Operation& op, const Command& c) const;
    [[nodiscard]] Result<void> resolve_weights(Operation& op, const Command& c) const;

    std::array<std::uint16_t, 0x90> cmd0_{};
    std::array<Command, 0x94> cmd1_{};
    std::array<bool, 0x90> written0_{};
    std::array<bool, 0x94> written1_{};
};

/// Iterates over a stream's operations, STOP included; nothing follows a STOP. A stream that ends without STOP is an
/// error.
class Decoder {
  public:
    explicit Decoder(Words words) : reader_(words) {}
    [[nodiscard]] Result<std::optional<Operation>> next();
    [[nodiscard]] const RegisterState& registers() const { return state_; }

  private:
    CommandReader reader_;
    RegisterState state_;
    bool stopped_ = false;
};

}  // namespace talpa::npu
