#include "cli/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "base/host/file.h"
#include "base/host/terminal.h"
#include "classifier/ports.h"
#include "cli/picture_options.h"
#include "image/decode.h"
#include "inspect/program_run.h"

namespace talpa::cli {
namespace {

namespace rt = runtime::host;
using classifier::add_output;
using classifier::document_of;
using classifier::finish_outputs;
using classifier::Labels;
using classifier::NormalisationFlags;
using classifier::picture_input;
using classifier::picture_port;
using classifier::PictureInput;
using classifier::RunResult;

host::Result<std::vector<std::uint8_t>> tensor_of(const std::string& path, const image::PreprocessSpec& spec) {
    TRY_ASSIGN(const auto file, host::MappedFile::open(path));
    TRY_ASSIGN(const auto picture, host::with_context(image::decode(file.bytes()), path));
    return host::with_context(image::to_tensor(picture, spec), path);
}

/// Runs --repeat times; inputs are written afresh before every run, for outputs lie on top of them.
template <typename SetInputs>
host::Result<std::vector<double>> run_repeatedly(rt::Session& session, std::size_t repeat, SetInputs set_inputs) {
    std::vector<double> runs_ms;
    runs_ms.reserve(repeat);
    host::Progress progress("run", repeat);
    for (std::size_t i = 0; i < repeat; ++i) {
        TRY(session.reset());  // each run is one of its own: buffers that a network changes begin anew
        TRY(set_inputs());
        TRY(session.run());
        runs_ms.push_back(session.times().run.count());
        progress.done(i + 1);
    }
    return runs_ms;
}

/// The outputs of the last run: written if there is a folder, and the first that scores classes ranked.
host::Result<RunResult> collect(rt::Session& session, const RunOptions& options, const Labels& labels,
                                OutputFolders& folders, const std::string& image) {
    RunResult result;
    for (std::uint32_t i = 0; i < session.output_count(); ++i) {
        const rt::PortInfo port = session.output(i);
        using Kind = runtime::Value::Kind;
        if (port.kind == Kind::Int || port.kind == Kind::Double || port.kind == Kind::Bool)
            result.numbers.push_back({i, port.kind, port.integer, port.real});
        if (port.kind != Kind::Tensor) continue;
        TRY_ASSIGN(const Bytes bytes, session.output_bytes(i));
        TRY(add_output(result, port, bytes, options.top, labels));
    }
    TRY_ASSIGN(const auto folder, folders.next(image));
    TRY(finish_outputs(result, folder));
    result.npu_cycles = session.method().npu_cycles();
    return result;
}

bool takes_pictures(const rt::Session& session, const std::string& method) {
    const auto port = picture_port(session);
    return port && picture_input(session.program(), method, *port, session.input(*port), {});
}

void print_all(const std::vector<RunResult>& results, const RunOptions& options, const Labels& labels) {
    tell_doubt(results, labels);
    if (options.json) {
        fmt::print("{}\n", document_of(results, options.images.size() > 1, labels));
        return;
    }
    const host::Style style(stdout);
    for (const RunResult& result : results)
        if (result.error.empty()) print(stdout, result, labels, style);
}

}  // namespace

host::Result<void> check(const RunOptions& options) {
    const auto usage = [](const char* message) { return host::failure(ErrorCode::InvalidArgument, "{}", message); };
    if (options.program.empty()) return usage("PROGRAM.pte is required");
    if (!options.inputs.empty() && !options.images.empty())
        return usage("--input and --image cannot be given together");
    const bool normalises = options.picture.given();
    if (normalises && options.images.empty()) return usage("--mean, --std and --range are for pictures (--image)");
    if (options.label_offset != 0 && options.labels.empty()) return usage("--label-offset needs --labels");
    TRY(normalisation(options.picture));
    return {};
}

host::Result<void> run(const RunOptions& options) {
    Labels labels;
    if (!options.labels.empty()) {
        TRY_ASSIGN(labels, host::with_context(Labels::read(options.labels, options.label_offset), "labels"));
    }
    inspect::ProgramOptions open{.path = options.program,
                                 .method = options.method,
                                 .data = options.data,
                                 .threads = options.threads,
                                 .strict = options.strict};
    // One run may be long enough to want progress of its own when it is strict; several show theirs run by run.
    host::Progress operations("NPU operation", 0);
    std::size_t done = 0;
    if (options.strict && options.repeat == 1 && options.images.size() <= 1)
        open.on_operation = [&] { operations.done(++done); };
    TRY_ASSIGN(const inspect::OpenProgram program, inspect::open_program(open));
    rt::Session& session = *program.session;
    OutputFolders folders(options.output_dir, options.images.size() > 1);
    std::vector<RunResult> results;

    if (options.images.empty()) {
        auto opened = inspect::InputFiles::open(session, options.inputs);
        if (!opened && options.inputs.empty() && takes_pictures(session, options.method))
            opened.error().hint = "give --input FILE.bin once for each, in order, or --image for pictures";
        TRY_ASSIGN(const inspect::InputFiles inputs, std::move(opened));
        TRY_ASSIGN(const auto runs_ms, run_repeatedly(session, options.repeat, [&] { return inputs.set(session); }));
        TRY_ASSIGN(RunResult result, collect(session, options, labels, folders, ""));
        result.runs_ms = runs_ms;
        results.push_back(std::move(result));
    } else {
        TRY_ASSIGN(const std::uint32_t port, picture_port(session));
        TRY_ASSIGN(const NormalisationFlags flags, normalisation(options.picture));
        TRY_ASSIGN(const PictureInput input,
                   picture_input(session.program(), options.method, port, session.input(port), flags));
        if (!input.note.empty()) host::say(fmt::format("talpa: note: {}\n", input.note));
        const auto run_picture = [&](const std::string& image) -> host::Result<RunResult> {
            TRY_ASSIGN(const auto tensor, tensor_of(image, input.spec));
            TRY_ASSIGN(const auto runs_ms,
                       run_repeatedly(session, options.repeat, [&] { return session.set_input(port, tensor); }));
            TRY_ASSIGN(RunResult result, collect(session, options, labels, folders, image));
            result.runs_ms = runs_ms;
            return result;
        };
        TRY_ASSIGN(results, run_each(options.images, run_picture));
    }
    operations.clear();
    print_all(results, options, labels);
    return check_all(results);
}

}  // namespace talpa::cli
