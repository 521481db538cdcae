// The reserved memory of the board through /dev/mem. Its pages are Device memory on silicon: every access is aligned,
// stores come in multiples of 16 bytes, and there is no memset nor memcpy on the mapping, whose instructions raise
// SIGBUS there. (imx93-remoteproc, sections 9 and 10)
#pragma once

#include <cstdint>
#include <span>

#include "base/core/byte_reader.h"
#include "link/host/board_access.h"
#include "link/memory_map.h"

namespace talpa::link::host {

class DeviceMemory {
  public:
    /// Maps the model region, and the output copies with the region for large programs behind them. MemoryDenied says
    /// which range and why.
    [[nodiscard]] static BoardResult<DeviceMemory> map(const Fd& memory);
    DeviceMemory(DeviceMemory&& other) noexcept;
    DeviceMemory& operator=(DeviceMemory&&) = delete;
    ~DeviceMemory();

    /// Where the memory is a file (the virtual board's without namespaces), its pages are allocated, since a full disk
    /// would else end this process by a SIGBUS at the first access; a device needs nothing. MemoryDenied.
    [[nodiscard]] BoardResult<void> have_room(std::uint32_t address, std::uint64_t size) const;
    /// `address` is a multiple of 16, [address, address + size rounded up to 16) is mapped; the rest of the last 16
    /// bytes becomes 0. False: not so, and nothing was written.
    [[nodiscard]] bool write(std::uint32_t address, Bytes bytes);
    /// `address` is a multiple of 8, the range is mapped.
    [[nodiscard]] bool read(std::uint32_t address, std::span<std::uint8_t> to) const;
    /// Compares the start, the end and 64 bytes out of every 64 KiB: enough to see that another program lies there.
    [[nodiscard]] bool looks_like(std::uint32_t address, Bytes bytes) const;

    /// A word of the model region, such as of the control block; `address` is a multiple of 4 and mapped.
    [[nodiscard]] std::uint32_t word(std::uint32_t address) const;
    void set_word(std::uint32_t address, std::uint32_t value);
    /// All stores before it are seen before what comes after. (The write to the tty is a system call and would do.)
    static void barrier();

  private:
    struct Window {
        MemoryRange range{};
        volatile std::uint8_t* bytes = nullptr;
    };
    DeviceMemory() = default;
    [[nodiscard]] volatile std::uint8_t* at(std::uint64_t address, std::uint64_t size) const;

    Window windows_[2];
    Fd file_;  ///< none for a device
};

}  // namespace talpa::link::host
