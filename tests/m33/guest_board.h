// A bare board for test programs: the memory of mps2-an505 that guest/an505.ld uses, and semihosting by BKPT AB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/host/error.h"
#include "board/cpu/cpu.h"

namespace talpa::m33_test {

struct Outcome {
    std::string output;  ///< what the program printed
    int status = -1;     ///< its exit status; -1 when it did not exit
    std::string end;     ///< why it stopped otherwise
    std::uint64_t instructions = 0;
    double seconds = 0;
};

/// Loads the ELF's segments and runs it to its exit, at most `limit` instructions.
[[nodiscard]] host::Result<Outcome> run_guest(const std::filesystem::path& elf, const std::string& command_line,
                                              const board::cpu::Options& options,
                                              std::uint64_t limit = 20'000'000'000ULL);

}  // namespace talpa::m33_test
