// Which input of a program takes a picture, and which output scores classes: the same for a program that runs here
// (talpa run) and for one that runs on the board (talpa classify, the web application).
#pragma once

#include <filesystem>
#include <optional>

#include "base/host/error.h"
#include "classifier/labels.h"
#include "classifier/run_result.h"
#include "runtime/host/session.h"

namespace talpa::classifier {

/// The only tensor input there is; InvalidArgument when there are more or none.
[[nodiscard]] host::Result<std::uint32_t> picture_port(const runtime::host::Session& session);

/// Adds a tensor output, as the program stores it, to the result; ranks it when it is the first that scores classes.
/// Errors of labels that do not fit; scores that are no numbers are noted in the result.
[[nodiscard]] host::Result<void> add_output(RunResult& result, const runtime::host::PortInfo& port, Bytes stored,
                                            std::size_t top, const Labels& labels);

/// When all are there: writes them as out0.bin, out1.bin … if there is a folder, in C order of their shapes. Errors of
/// the files; then that of scores that are no numbers: whoever looks for the reason needs the files.
[[nodiscard]] host::Result<void> finish_outputs(RunResult& result, const std::optional<std::filesystem::path>& folder);

}  // namespace talpa::classifier
