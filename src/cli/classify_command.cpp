#include "cli/classify_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/host/file.h"
#include "base/host/terminal.h"
#include "classifier/board_program.h"
#include "link/host/device_tree.h"

namespace talpa::cli {
namespace {

using classifier::BoardProgram;
using classifier::Labels;
using classifier::RunResult;

}  // namespace

host::Result<void> check(const ClassifyOptions& options) {
    const auto usage = [](const char* message) { return host::failure(ErrorCode::InvalidArgument, "{}", message); };
    if (options.images.empty()) return usage("at least one PICTURE is required");
    if (options.program.empty()) return usage("--program FILE.pte is required");
    if (!(options.timeout_s >= 0.01 && options.timeout_s <= 3600)) return usage("--timeout: 0.01 to 3600 seconds");
    if (options.label_offset != 0 && options.labels.empty()) return usage("--label-offset needs --labels");
    TRY(normalisation(options.picture));
    return {};
}

host::Result<void> classify_on_board(const ClassifyOptions& options) {
    Labels labels;
    if (!options.labels.empty()) {
        TRY_ASSIGN(labels, host::with_context(Labels::read(options.labels, options.label_offset), "labels"));
    }
    TRY_ASSIGN(const auto flags, normalisation(options.picture));
    TRY_ASSIGN(const BoardProgram program, BoardProgram::open(options.program, flags));
    // Whoever gives features need not be told that pictures are not taken.
    const bool only_features = !program.takes_pictures && std::ranges::all_of(options.images, [](const auto& image) {
        return std::filesystem::path(image).extension() == ".npy";
    });
    if (!program.input.note.empty() && !only_features) host::say(fmt::format("talpa: note: {}\n", program.input.note));

    link::host::BoardPaths paths{.root = options.root, .memory = options.memory, .tty = options.tty};
    paths.remoteproc_name = options.remoteproc;
    for (const link::MemoryRange& range : link::host::unreserved_ranges(paths))
        host::say(fmt::format(
            "talpa: warning: the device tree does not reserve {} ({} MiB at 0x{:08X}): what is put there may lie "
            "over memory that Linux uses\n  `topo doctor --fix` adds the node; docs/board.md\n",
            range.name, range.size >> 20, range.base));
    const auto access = link::host::direct_access(paths);
    link::host::RunnerClient client(*access, options.remoteproc);
    OutputFolders folders(options.output_dir, options.images.size() > 1);
    classifier::BoardRunOptions run;
    run.top = options.top;
    run.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_s * 1000));

    const auto run_picture = [&](const std::string& image) -> host::Result<RunResult> {
        TRY_ASSIGN(const auto file, host::MappedFile::open(image));
        TRY_ASSIGN(const auto picture, host::with_context(classifier::prepare_input(file.bytes(), program), image));
        TRY_ASSIGN(run.output_folder, folders.next(image));
        auto result = classifier::run_on_board(client, program, picture, labels, run);
        if (!result) return std::unexpected(result.error().flat().with_context(image));
        return *std::move(result);
    };
    TRY_ASSIGN(const std::vector<RunResult> results, run_each(options.images, run_picture));
    tell_doubt(results, labels);
    if (options.json) {
        fmt::print("{}\n", document_of(results, results.size() > 1, labels));
        return check_all(results);
    }
    const host::Style style(stdout);
    for (const RunResult& result : results)
        if (result.error.empty()) print(stdout, result, labels, style);
    return check_all(results);
}

}  // namespace talpa::cli
