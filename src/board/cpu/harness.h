// For tests: a core with code and data memory, and a few words of machine code to run.
#pragma once

#include <cstring>
#include <initializer_list>
#include <vector>

#include "board/cpu/cpu.h"
#include "board/cpu/machine.h"

namespace talpa::board::cpu::test {

inline constexpr u32 kCode = 0x0FFE0000;
inline constexpr u32 kData = 0x20000000;
inline constexpr u32 kSize = 0x20000;
inline constexpr u32 kStart = kCode + 0x800;  ///< behind a vector table

/// Every exception vector n points to kCode + 0x1000 + 16 n, which holds a branch to itself.
struct Board {
    Bus bus;
    Ram code{kSize};
    Ram data{kSize};
    Cpu cpu;

    explicit Board(Options options = {}) : cpu(bus, options) {
        if (!bus.add_ram("code", kCode, kSize, code) || !bus.add_ram("data", kData, kSize, data)) std::abort();
        put_word(kCode, kData + kSize);
        for (u32 n = 1; n < 16 + 268; n++) {
            put_word(kCode + 4 * n, (handler(n)) | 1);
            put(handler(n), {0xE7FE});
        }
        put_word(kCode + 4, kStart | 1);
        put(kStart, {0xE7FE});
        cpu.reset(kCode);
    }

    [[nodiscard]] static u32 handler(u32 exception) { return kCode + 0x1000 + 16 * exception; }

    void put(u32 address, std::initializer_list<u16> halves) {
        for (u16 half : halves) {
            std::memcpy(bytes(address), &half, 2);
            address += 2;
        }
        cpu.code_changed();
    }
    void put_word(u32 address, u32 value) { std::memcpy(bytes(address), &value, 4); }
    [[nodiscard]] u32 word(u32 address) {
        u32 value;
        std::memcpy(&value, bytes(address), 4);
        return value;
    }
    [[nodiscard]] u8* bytes(u32 address) {
        return address >= kData ? data.bytes().data() + (address - kData) : code.bytes().data() + (address - kCode);
    }

    [[nodiscard]] Core& core() { return cpu.machine().core; }
    [[nodiscard]] Scs& scs() { return cpu.machine().scs; }
    /// A system register, as a privileged load sees it.
    [[nodiscard]] u32 reg(u32 address) {
        u32 value = 0;
        if (!cpu.read_memory(address, 4, value)) std::abort();
        return value;
    }
    void set_reg(u32 address, u32 value) {
        if (!cpu.write_memory(address, 4, value)) std::abort();
    }
    /// Places code at kStart and runs `count` instructions of it.
    Stop run(std::initializer_list<u16> halves, u64 count) {
        put(kStart, halves);
        cpu.set_pc(kStart);
        return cpu.run(count);
    }
};

}  // namespace talpa::board::cpu::test
