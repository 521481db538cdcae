// From operations to command words: the other direction of the decoder, from the same tables. The writer remembers
// every register and emits only what changes, as compilers do. Freestanding. (ethos-u65, sections 3.1 and 3.2)
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/core/error.h"
#include "npu/commands.h"
#include "npu/hardware.h"
#include "npu/operation.h"

namespace talpa::npu {

/// Where the words go.
class WordSink {
  public:
    [[nodiscard]] virtual Result<void> put(std::uint32_t word) = 0;

  protected:
    ~WordSink() = default;
};

/// Memory of the caller; OutOfResources when it is full.
class WordBuffer final : public WordSink {
  public:
    explicit WordBuffer(std::span<std::uint32_t> memory) : memory_(memory) {}
    [[nodiscard]] Result<void> put(std::uint32_t word) override;
    [[nodiscard]] std::span<const std::uint32_t> words() const { return memory_.first(used_); }

  private:
    std::span<std::uint32_t> memory_;
    std::size_t used_ = 0;
};

class StreamWriter {
  public:
    /// For a U55 the writer leaves out PARALLEL_MODE, which it does not have.
    explicit StreamWriter(WordSink& sink, Product product = Product::EthosU65) : sink_(sink), product_(product) {}

    /// Emits the register writes that `op` needs and its command word. The derived fields of `op` (IFM height and width
    /// of a window operation, IFM2 size, offset_bytes) are not looked at: the hardware derives them again. A failure of
    /// the sink leaves the stream cut; start again.
    [[nodiscard]] Result<void> emit(const Operation& op);

    /// Writes a register unless it has that value. `parameter_and_payload`: parameter in bits 47:32, payload in 31:0.
    [[nodiscard]] Result<void> set(Cmd0 code, std::uint16_t parameter);
    [[nodiscard]] Result<void> set(Cmd1 code, std::uint64_t parameter_and_payload);

    [[nodiscard]] std::uint32_t size_bytes() const { return words_ * 4; }

  private:
    [[nodiscard]] Result<void> put(std::uint32_t word);

    WordSink& sink_;
    Product product_;
    std::uint32_t words_ = 0;
    struct Known {
        bool valid = false;
        std::uint64_t value = 0;
    };
    std::array<Known, 0x90> cmd0_{};
    std::array<Known, 0x94> cmd1_{};
};

}  // namespace talpa::npu
