// What the board's Linux needs of the board's hardware: memory by system address, the hold on the M33, the mailbox.
#pragma once

#include <cstddef>
#include <cstdint>

namespace talpa::board {

class SystemMemory {
  public:
    /// Bytes [address, address + size) of the system, or null where no memory is fitted.
    [[nodiscard]] virtual std::uint8_t* at(std::uint64_t address, std::size_t size) = 0;

  protected:
    ~SystemMemory() = default;
};

/// The secure firmware's calls START, STARTED and STOP.
class CoreControl {
  public:
    virtual void start(std::uint32_t boot_address) = 0;
    virtual void stop() = 0;
    /// Linux wrote [address, address + size) of the system for the core, as its loader does: TCM with ECC counts that.
    virtual void loaded(std::uint64_t address, std::size_t size) {
        (void)address;
        (void)size;
    }

  protected:
    ~CoreControl() = default;
};

/// Linux's side of Messaging Unit 1, channel 1.
class Mailbox {
  public:
    /// Writes the word and waits until the M33 has read it, 100 ms at most; false: it did not (ETIME), the word stays.
    [[nodiscard]] virtual bool send(std::uint32_t word) = 0;
    /// Enables or disables the receive interrupt.
    virtual void listen(bool enable) = 0;

  protected:
    ~Mailbox() = default;
};

}  // namespace talpa::board
