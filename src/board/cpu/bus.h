// What the Cortex-M33 sees of its board: RAM by host pointer, devices by call. Regions may show the same RAM at several
// addresses (secure and non-secure aliases). Everything not registered answers with a bus error.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/error.h"
#include "board/cpu/types.h"

namespace talpa::board::cpu {

/// A block of registers. Calls come from the thread that runs the Cpu, one at a time.
class Device {
  public:
    virtual ~Device() = default;
    /// `offset` from the region's base, `size` 1, 2 or 4, naturally aligned. False is a bus error.
    [[nodiscard]] virtual bool read(u32 offset, unsigned size, u32& value) = 0;
    [[nodiscard]] virtual bool write(u32 offset, unsigned size, u32 value) = 0;
};

/// Memory that the core, the NPU and Linux may share. Also remembers which of its bytes the core has decoded as code.
class Ram {
  public:
    static constexpr u32 kGranule = 256;  ///< bytes per code mark

    /// Own memory, filled with the words of kPoison: silicon gives no zeros after power-up either.
    explicit Ram(std::size_t size);
    /// Somebody else's memory (a mapped file), left as it is; it must outlive this object. 16-byte aligned.
    explicit Ram(std::span<u8> memory);
    Ram(const Ram&) = delete;
    Ram& operator=(const Ram&) = delete;

    static constexpr u32 kPoison = 0xDEADBEE7;
    void poison();

    [[nodiscard]] std::span<u8> bytes() const { return memory_; }
    [[nodiscard]] bool holds_code(std::size_t offset, std::size_t length) const;
    void mark_code(std::size_t offset, std::size_t length);
    void forget_code();

    /// Makes this a RAM with ECC as it is after power-up: reading a word that nobody has written, or writing a part of
    /// one, is a bus error (remoteproc spec 1.4). Whole words written by the core or through Bus::write count.
    void require_initialisation() { written_.assign(memory_.size() / 4 + 1, 0); }
    /// Whether every word of the range may be read.
    [[nodiscard]] bool initialised(std::size_t offset, std::size_t length) const;
    void note_written(std::size_t offset, std::size_t length);

  private:
    std::vector<u8> own_;  // malloc aligns large blocks to 16
    std::span<u8> memory_;
    std::vector<u8> code_;
    std::vector<u8> written_;  ///< one a word; empty: not asked for
};

struct Region {
    u32 base = 0;
    u32 size = 0;
    Ram* ram = nullptr;  ///< null for a device
    u32 ram_offset = 0;
    Device* device = nullptr;
    std::string name;

    [[nodiscard]] bool contains(u32 address) const { return address - base < size; }
};

class Bus {
  public:
    /// Shows `size` bytes of `ram` from `ram_offset` at `base`. Fails when regions overlap or the RAM is too short.
    [[nodiscard]] host::Result<void> add_ram(std::string_view name, u32 base, u32 size, Ram& ram, u32 ram_offset = 0);
    [[nodiscard]] host::Result<void> add_device(std::string_view name, u32 base, u32 size, Device& device);

    /// The region at `address`, or null.
    [[nodiscard]] const Region* find(u32 address) const;
    [[nodiscard]] std::span<const Region> regions() const { return regions_; }

    /// RAM only, for loaders and debuggers: false when a byte of the range is not RAM.
    [[nodiscard]] bool read(u32 address, std::span<u8> out) const;
    [[nodiscard]] bool write(u32 address, std::span<const u8> data);

  private:
    [[nodiscard]] host::Result<void> add(Region region);

    std::vector<Region> regions_;
};

}  // namespace talpa::board::cpu
