// Any bytes as a program: the simulator must survive them, and the translated code must do what the interpreter does,
// register by register, faults included.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "board/cpu/cpu.h"
#include "board/cpu/machine.h"

namespace {

using namespace talpa::board::cpu;

constexpr std::uint32_t kCode = 0x0FFE0000;
constexpr std::uint32_t kData = 0x20000000;
constexpr std::uint32_t kSize = 0x4000;
constexpr std::uint64_t kInstructions = 3000;

struct Result {
    Registers registers;
    std::vector<std::uint8_t> data;
    std::uint64_t exceptions = 0;
    std::uint64_t cycles = 0;
    Stop stop = Stop::Limit;
};

Result run(const std::uint8_t* bytes, std::size_t size, bool translate) {
    Bus bus;
    Ram code(kSize);
    Ram data(kSize);
    if (!bus.add_ram("code", kCode, kSize, code) || !bus.add_ram("data", kData, kSize, data)) std::abort();
    // All vectors lead to the program's second half, so that handlers run foreign code too.
    for (std::uint32_t n = 0; n < 32; n++) {
        const std::uint32_t vector = n == 0 ? kData + kSize : n == 1 ? (kCode + 0x401) : (kCode + 0x801);
        std::memcpy(code.bytes().data() + 4 * n, &vector, 4);
    }
    const std::size_t fitting = size < kSize - 0x400 ? size : kSize - 0x400;
    std::memset(code.bytes().data() + 0x400, 0, kSize - 0x400);
    std::memcpy(code.bytes().data() + 0x400, bytes, fitting);
    Cpu cpu(bus, {.translate = translate, .translate_after = 0});
    cpu.reset(kCode);
    Registers r = cpu.registers();
    for (std::uint32_t i = 0; i < 13; i++) r.r[i] = kData + 0x100 * i;
    cpu.set_registers(r);
    cpu.machine().scs.cpacr = size % 3 == 0 ? 0 : 0x00F00000;
    cpu.machine().nvic.set_enabled(16, true);
    cpu.machine().nvic.set_enabled(kUsageFault, size % 2 == 0);
    Result result;
    for (unsigned round = 0; round < 4; round++) {
        result.stop = cpu.run(kInstructions / 4);
        if (result.stop == Stop::Sleeping) cpu.skip(50);
        cpu.set_irq(0, round % 2 == 0);
    }
    result.registers = cpu.registers();
    result.data.assign(data.bytes().begin(), data.bytes().end());
    result.exceptions = cpu.exceptions_taken();
    result.cycles = cpu.cycles();
    return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    const Result a = run(bytes, size, false);
    const Result b = run(bytes, size, true);
    const bool same = a.registers.r == b.registers.r && a.registers.xpsr == b.registers.xpsr &&
                      a.registers.s == b.registers.s && a.registers.fpscr == b.registers.fpscr &&
                      a.registers.msp == b.registers.msp && a.registers.psp == b.registers.psp &&
                      a.registers.control == b.registers.control && a.data == b.data && a.exceptions == b.exceptions &&
                      a.cycles == b.cycles && a.stop == b.stop;
    if (!same) {
        std::fprintf(stderr,
                     "translated code differs: pc %08x / %08x, xpsr %08x / %08x, exceptions %llu / %llu, cycles %llu / "
                     "%llu, %s / %s\n",
                     a.registers.r[15], b.registers.r[15], a.registers.xpsr, b.registers.xpsr,
                     static_cast<unsigned long long>(a.exceptions), static_cast<unsigned long long>(b.exceptions),
                     static_cast<unsigned long long>(a.cycles), static_cast<unsigned long long>(b.cycles),
                     stop_name(a.stop), stop_name(b.stop));
        for (unsigned i = 0; i < 15; i++)
            if (a.registers.r[i] != b.registers.r[i])
                std::fprintf(stderr, "r%u %08x / %08x\n", i, a.registers.r[i], b.registers.r[i]);
        for (unsigned i = 0; i < 32; i++)
            if (a.registers.s[i] != b.registers.s[i])
                std::fprintf(stderr, "s%u %08x / %08x\n", i, a.registers.s[i], b.registers.s[i]);
        for (std::size_t i = 0; i < a.data.size(); i += 4)
            if (std::memcmp(&a.data[i], &b.data[i], 4) != 0) {
                std::uint32_t x = 0;
                std::uint32_t y = 0;
                std::memcpy(&x, &a.data[i], 4);
                std::memcpy(&y, &b.data[i], 4);
                std::fprintf(stderr, "memory %08x: %08x / %08x\n", static_cast<unsigned>(kData + i), x, y);
            }
        std::fprintf(stderr, "fpscr %08x / %08x, control %x / %x\n", a.registers.fpscr, b.registers.fpscr,
                     a.registers.control, b.registers.control);
        std::abort();
    }
    return 0;
}
