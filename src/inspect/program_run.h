// A program opened for tools: on the NPU model, with all CPU operators, its inputs read from files and checked.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/host/file.h"
#include "inspect/costed_device.h"
#include "inspect/strict.h"
#include "inspect/trace.h"
#include "runtime/host/session.h"

namespace talpa::inspect {

struct ProgramOptions {
    std::string path;
    std::string method = "forward";
    std::vector<std::string> data;
    unsigned threads = 0;  ///< 0: as many as there are processors, at most 8
    bool strict = false;
    std::function<void()> on_operation = {};  ///< after each operation of the NPU; not together with a tracer
};

/// Session and device, kept where they are: one points at the other.
struct OpenProgram {
    std::unique_ptr<CostedDevice> device;
    std::unique_ptr<StrictObserver> strict;
    std::unique_ptr<runtime::host::Session> session;
};
/// `tracer`, which must outlive it, sees what happens inside; not together with `strict`.
[[nodiscard]] host::Result<OpenProgram> open_program(const ProgramOptions& options, Tracer* tracer = nullptr);

/// The tensor inputs of a program as files.
struct InputFiles {
    std::vector<host::MappedFile> files;  ///< C order of the logical shape
    /// What each becomes as the program stores it; empty where that is the same.
    std::vector<std::vector<std::uint8_t>> stored;

    /// Opens them and holds number and sizes against the program's inputs: errors name the file, its size, and the type
    /// and shape that the program wants.
    [[nodiscard]] static host::Result<InputFiles> open(const runtime::host::Session& session,
                                                       const std::vector<std::string>& paths);
    [[nodiscard]] host::Result<void> set(runtime::host::Session& session) const;
};

/// A tensor output of the last run in C order of its logical shape.
[[nodiscard]] host::Result<std::vector<std::uint8_t>> output_in_c_order(const runtime::host::Session& session,
                                                                        std::uint32_t i);

}  // namespace talpa::inspect
