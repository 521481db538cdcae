#include "guest_board.h"

#include <elf.h>

#include <chrono>
#include <cstring>

#include "base/host/file.h"

namespace talpa::m33_test {

using namespace board::cpu;

namespace {

constexpr std::uint32_t kCodeBase = 0x10000000;
constexpr std::uint32_t kDataBase = 0x38000000;
constexpr std::uint32_t kMemorySize = 1 << 20;

host::Result<void> load_elf(std::span<const std::uint8_t> file, Bus& bus) {
    Elf32_Ehdr header;
    if (file.size() < sizeof header) return host::failure(ErrorCode::InvalidArgument, "too short for an ELF file");
    std::memcpy(&header, file.data(), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != EM_ARM)
        return host::failure(ErrorCode::InvalidArgument, "not an ELF file for Arm");
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf32_Phdr segment;
        const std::size_t at = header.e_phoff + i * sizeof segment;
        if (at + sizeof segment > file.size())
            return host::failure(ErrorCode::InvalidArgument, "segment {} outside the file", i);
        std::memcpy(&segment, file.data() + at, sizeof segment);
        if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
        if (segment.p_offset + segment.p_filesz > file.size() ||
            !bus.write(segment.p_paddr, file.subspan(segment.p_offset, segment.p_filesz)))
            return host::failure(ErrorCode::InvalidArgument, "segment {} at {:#x} does not fit the board", i,
                                 segment.p_paddr);
    }
    return {};
}

/// False when the program is over.
bool semihosting(Bus& bus, Cpu& cpu, const std::string& command_line, Outcome& outcome) {
    Registers r = cpu.registers();
    const auto word = [&](std::uint32_t address) {
        std::uint32_t value = 0;
        (void)bus.read(address, {reinterpret_cast<std::uint8_t*>(&value), 4});
        return value;
    };
    std::uint32_t answer = 0;
    switch (r.r[0]) {
        case 0x03:  // SYS_WRITEC
        case 0x04:  // SYS_WRITE0
            for (std::uint32_t at = r.r[1];; at++) {
                std::uint8_t c = 0;
                if (!bus.read(at, {&c, 1}) || c == 0) break;
                outcome.output += static_cast<char>(c);
                if (r.r[0] == 3) break;
            }
            break;
        case 0x15: {  // SYS_GET_CMDLINE
            const std::uint32_t buffer = word(r.r[1]);
            std::string text = command_line + '\0';
            if (text.size() > word(r.r[1] + 4)) {
                answer = 0xFFFFFFFF;
                break;
            }
            (void)bus.write(buffer, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
            break;
        }
        case 0x18:
        case 0x20:
            outcome.status = static_cast<int>(word(r.r[1] + 4));
            return false;
        default:
            outcome.end = "semihosting call " + std::to_string(r.r[0]);
            return false;
    }
    r.r[0] = answer;
    r.r[15] += 2;
    cpu.set_registers(r);
    return true;
}

}  // namespace

host::Result<Outcome> run_guest(const std::filesystem::path& elf, const std::string& command_line,
                                const Options& wanted, std::uint64_t limit) {
    TRY_ASSIGN(const auto file, host::read_file(elf));
    Bus bus;
    Ram code(kMemorySize);
    Ram data(kMemorySize);
    TRY(bus.add_ram("code", kCodeBase, kMemorySize, code));
    TRY(bus.add_ram("data", kDataBase, kMemorySize, data));
    TRY(load_elf({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, bus));
    Options options = wanted;
    options.stop_at_bkpt = true;
    Cpu cpu(bus, options);
    cpu.reset(kCodeBase);
    Outcome outcome;
    const auto start = std::chrono::steady_clock::now();
    while (true) {
        const Stop stop = cpu.run(limit - cpu.cycles());
        if (stop == Stop::Bkpt && semihosting(bus, cpu, command_line, outcome)) continue;
        if (stop == Stop::Sleeping && cpu.cycles_until_timer() != ~std::uint64_t{0}) {
            cpu.skip(cpu.cycles_until_timer());
            continue;
        }
        if (stop != Stop::Bkpt) outcome.end = stop_name(stop);
        break;
    }
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome.instructions = cpu.instructions();
    return outcome;
}

}  // namespace talpa::m33_test
