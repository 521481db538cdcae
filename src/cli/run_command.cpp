#include "cli/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>

#include "base/host/file.h"
#include "base/host/terminal.h"
#include "cli/picture_input.h"
#include "cli/run_result.h"
#include "image/decode.h"
#include "inspect/program_run.h"

namespace talpa::cli {
namespace {

namespace fs = std::filesystem;
namespace rt = runtime::host;

constexpr std::size_t kOne[] = {1, 3}, kTwo[] = {2};

host::Result<NormalisationFlags> normalisation(const RunOptions& options) {
    NormalisationFlags flags;
    if (!options.mean.empty()) {
        TRY_ASSIGN(flags.mean, parse_numbers("--mean", options.mean, kOne));
    }
    if (!options.std.empty()) {
        TRY_ASSIGN(flags.std, parse_numbers("--std", options.std, kOne));
    }
    if (!options.range.empty()) {
        TRY_ASSIGN(flags.range, parse_numbers("--range", options.range, kTwo));
    }
    return flags;
}

/// Which input takes the picture: the only tensor input there is.
host::Result<std::uint32_t> picture_port(const rt::Session& session) {
    std::optional<std::uint32_t> found;
    for (std::uint32_t i = 0; i < session.input_count(); ++i) {
        if (session.input(i).kind != runtime::Value::Kind::Tensor) continue;
        if (found)
            return std::unexpected(host::Error(ErrorCode::InvalidArgument,
                                               "the program has more than one input, so a picture is not enough",
                                               "give all of them as raw data with --input FILE.bin"));
        found = i;
    }
    if (!found) return host::failure(ErrorCode::InvalidArgument, "the program has no input that could take a picture");
    return *found;
}

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

/// Where outputs go: DIR itself, or with several pictures a folder each, named after the picture.
class OutputFolders {
  public:
    explicit OutputFolders(const RunOptions& options)
        : root_(options.output_dir), one_each_(options.images.size() > 1) {}

    host::Result<std::optional<fs::path>> next(const std::string& image) {
        if (root_.empty()) return std::nullopt;
        fs::path folder = root_;
        if (one_each_) {
            const std::string name = fs::path(image).filename().string();
            // A picture may be called as another one's folder was numbered.
            std::string free = name;
            for (unsigned i = 2; !names_.insert(free).second; ++i) free = fmt::format("{}.{}", name, i);
            folder /= free;
        }
        std::error_code error;
        fs::create_directories(folder, error);
        if (error)
            return host::failure(ErrorCode::AccessFailed, "cannot make the folder {}: {}", folder.string(),
                                 error.message());
        return folder;
    }

  private:
    fs::path root_;
    bool one_each_;
    std::set<std::string> names_;
};

/// The outputs of the last run: written if there is a folder, and the first that scores classes ranked.
host::Result<RunResult> collect(rt::Session& session, const RunOptions& options, const Labels& labels,
                                const std::optional<fs::path>& folder) {
    RunResult result;
    for (std::uint32_t i = 0; i < session.output_count(); ++i) {
        const rt::PortInfo port = session.output(i);
        if (port.kind != runtime::Value::Kind::Tensor) continue;
        TRY_ASSIGN(const Bytes bytes, session.output_bytes(i));
        OutputFile file{.shape = port.sizes, .dtype = std::string(runtime::scalar_name(port.type)), .file = {}};
        if (folder) {
            const fs::path path = *folder / fmt::format("out{}.bin", result.outputs.size());
            TRY(host::write_file(path, bytes));
            file.file = path.string();
        }
        result.outputs.push_back(std::move(file));
        if (result.classification) continue;
        Output output{.type = port.type, .shape = port.sizes, .bytes = bytes, .quantization = {}};
        if (port.quantization && port.quantization->scale > 0)
            output.quantization =
                Quantization{port.quantization->scale, static_cast<std::int32_t>(port.quantization->zero_point)};
        if (!is_classification(output)) continue;
        TRY_ASSIGN(result.classification,
                   host::with_context(classify(output, options.top), fmt::format("output {}", i)));
        if (!labels.empty()) TRY(labels.check_enough_for(result.classification->classes));
    }
    result.npu_cycles = session.method().npu_cycles();
    return result;
}

void print_all(const std::vector<RunResult>& results, const RunOptions& options, const Labels& labels) {
    if (options.json) {
        host::Json document;
        if (options.images.size() > 1) {
            document["results"] = host::Json::array();
            for (const RunResult& result : results) document["results"].push_back(to_json(result, labels));
        } else {
            document = to_json(results.front(), labels);
        }
        // Paths and labels may be any bytes; what is no UTF-8 is shown as a replacement character.
        fmt::print("{}\n", document.dump(2, ' ', false, host::Json::error_handler_t::replace));
        return;
    }
    const host::Style style(stdout);
    for (const RunResult& result : results) print(stdout, result, labels, style);
}

}  // namespace

host::Result<void> check(const RunOptions& options) {
    const auto usage = [](const char* message) { return host::failure(ErrorCode::InvalidArgument, "{}", message); };
    if (options.program.empty()) return usage("PROGRAM.pte is required");
    if (!options.inputs.empty() && !options.images.empty())
        return usage("--input and --image cannot be given together");
    const bool normalises = !options.mean.empty() || !options.std.empty() || !options.range.empty();
    if (normalises && options.images.empty()) return usage("--mean, --std and --range are for pictures (--image)");
    if (options.label_offset != 0 && options.labels.empty()) return usage("--label-offset needs --labels");
    TRY(normalisation(options));
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
    OutputFolders folders(options);
    std::vector<RunResult> results;

    if (options.images.empty()) {
        TRY_ASSIGN(const inspect::InputFiles inputs, inspect::InputFiles::open(session, options.inputs));
        TRY_ASSIGN(const auto runs_ms, run_repeatedly(session, options.repeat, [&] { return inputs.set(session); }));
        TRY_ASSIGN(const auto folder, folders.next(""));
        TRY_ASSIGN(RunResult result, collect(session, options, labels, folder));
        result.runs_ms = runs_ms;
        results.push_back(std::move(result));
    } else {
        TRY_ASSIGN(const std::uint32_t port, picture_port(session));
        TRY_ASSIGN(const NormalisationFlags flags, normalisation(options));
        TRY_ASSIGN(const PictureInput input,
                   picture_input(session.program(), options.method, port, session.input(port), flags));
        if (!input.note.empty()) host::say(fmt::format("talpa: note: {}\n", input.note));
        host::Progress progress("picture", options.images.size());
        for (const std::string& image : options.images) {
            TRY_ASSIGN(const auto tensor, tensor_of(image, input.spec));
            TRY_ASSIGN(const auto runs_ms,
                       run_repeatedly(session, options.repeat, [&] { return session.set_input(port, tensor); }));
            TRY_ASSIGN(const auto folder, folders.next(image));
            TRY_ASSIGN(RunResult result, collect(session, options, labels, folder));
            result.image = image;
            result.runs_ms = runs_ms;
            results.push_back(std::move(result));
            progress.done(results.size());
        }
    }
    operations.clear();
    print_all(results, options, labels);
    return {};
}

}  // namespace talpa::cli
