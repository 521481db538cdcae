// The way back from a program to its description, for tests that change a program and write it again.
#pragma once

#include "pte/data_file.h"
#include "pte/host/writer.h"

namespace talpa::pte::host {

/// Everything that a run depends on: methods, values, instructions, delegates with their payloads, constants, initial
/// values, named data. Source locations and container metadata beyond its two strings are left out. Errors: what cannot
/// be read.
[[nodiscard]] Result<ProgramSpec> read_spec(const Program& program);

/// The payload with its external blocks put inside, taken from the program's named data and the data files.
[[nodiscard]] Result<std::vector<std::uint8_t>> inline_payload(Bytes payload, const Program& program,
                                                               std::span<const DataFile> data_files);

}  // namespace talpa::pte::host
