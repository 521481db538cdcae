// talpa compile: a model file to a program for the Ethos-U.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "cli/picture_options.h"

namespace talpa::cli {

struct CompileOptions {
    std::string model, output;
    std::string program;       ///< of several in one archive
    std::string architecture;  ///< that a file of weights belongs to
    std::string target = "ethos-u65-256";
    std::string system;                ///< empty: the target's usual one
    std::string memory_mode;           ///< empty: the target's usual one
    std::string sram;                  ///< empty: what the memory mode says, else 384K
    std::vector<std::string> configs;  ///< Vela's .ini files
    std::string optimize = "speed";
    std::string io = "model";
    std::string calibration;
    std::string activations = "int8";
    std::string observer = "best";
    std::string evaluate;
    std::string labels;
    std::string dump_after;
    std::string csv, debug_db;  ///< files to write: costs and the debug map, in Vela's forms
    std::size_t calibration_limit = 512;
    std::int64_t picture_size = 0;  ///< of a built-in network; 0: the usual one
    unsigned threads = 0;           ///< 0: as many as there are processors
    bool report = false;
    bool json = false;
    bool in_memory = false;  ///< no program is written
    PictureOptions picture;
};

/// Options that cannot be meant: an error for status 2.
[[nodiscard]] host::Result<void> check(const CompileOptions& options);
/// Compiles, writes, prints.
[[nodiscard]] host::Result<void> compile_model(const CompileOptions& options);

/// "384K", "1M", "393216", "384KiB", "unlimited".
[[nodiscard]] host::Result<std::uint64_t> parse_size(const std::string& text);

}  // namespace talpa::cli
