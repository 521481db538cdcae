#include "cli/compile_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "base/core/checked_math.h"
#include "base/host/file.h"
#include "base/host/terminal.h"
#include "classifier/labels.h"
#include "cli/compile_result.h"
#include "compiler/backend/compile.h"
#include "compiler/graph/dump.h"
#include "compiler/graph/ops.h"
#include "compiler/import/import.h"
#include "compiler/quantize/quantize.h"
#include "compiler/quantize/samples.h"

namespace talpa::cli {
namespace {

using compiler::Graph;
using host::failure;
using host::Result;

template <typename T>
struct Choice {
    const char* name;
    T value;
};
constexpr Choice<compiler::MemoryMode> kModes[] = {{"sram-only", compiler::MemoryMode::SramOnly},
                                                   {"shared-sram", compiler::MemoryMode::SharedSram},
                                                   {"dedicated-sram", compiler::MemoryMode::DedicatedSram}};
constexpr Choice<compiler::Optimize> kOptimize[] = {{"speed", compiler::Optimize::Speed},
                                                    {"size", compiler::Optimize::Size}};
constexpr Choice<compiler::IoType> kIo[] = {
    {"model", compiler::IoType::AsModel}, {"float", compiler::IoType::Float}, {"int8", compiler::IoType::Quantized}};
constexpr const char* kImportStages[] = {"import", "layout", "batch-norm", "fuse", "canonical"};
constexpr const char* kLaterStages[] = {"quantize", "lower", "schedule", "emit"};

template <typename T, std::size_t N>
const T* choose(const Choice<T> (&choices)[N], const std::string& name) {
    for (const auto& c : choices)
        if (name == c.name) return &c.value;
    return nullptr;
}

bool is_stage(const char* const* begin, const char* const* end, const std::string& name) {
    return std::any_of(begin, end, [&](const char* s) { return name == s; });
}

/// Has anything that is computed a quantization already?
bool is_quantized(const Graph& g) {
    return std::ranges::any_of(g.values, [](const auto& v) { return v.quantization && !v.is_constant(); });
}

image::PreprocessSpec preprocess(const classifier::NormalisationFlags& flags) {
    image::PreprocessSpec spec;
    const auto three = [](const std::vector<float>& v, std::array<float, 3>& into) {
        if (v.size() == 1) into.fill(v[0]);
        if (v.size() == 3) std::copy(v.begin(), v.end(), into.begin());
    };
    three(flags.mean, spec.mean);
    three(flags.std, spec.std);
    if (flags.range.size() == 2) {
        spec.low = flags.range[0];
        spec.high = flags.range[1];
    } else if (!flags.mean.empty() || !flags.std.empty()) {
        spec.low = 0;
    }
    return spec;
}

/// One compilation, step by step.
class Compilation {
  public:
    explicit Compilation(const CompileOptions& options) : o_(options) {}
    Result<void> run();

  private:
    Result<void> import();
    Result<void> quantize();
    Result<std::vector<compiler::Sample>> samples();
    Result<std::vector<compiler::NamedSample>> load(const std::string& path, std::size_t limit);
    std::vector<compiler::Sample> noise() const;
    Result<void> report_layers(const std::vector<compiler::Sample>& with);
    Result<void> compile();
    Result<void> add_metadata(compiler::CompileOptions& options) const;
    void warn(const std::string& text);
    void dump(const std::string& text) const { fmt::print("{}", text); }
    [[nodiscard]] unsigned threads() const {
        return o_.threads != 0 ? o_.threads : std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
    }

    const CompileOptions& o_;
    image::PreprocessSpec preprocess_;
    Graph real_, graph_;  ///< the float model where there is one; what is compiled
    std::vector<compiler::import::Problem> problems_;
    CompileResult result_;
};

void Compilation::warn(const std::string& text) {
    result_.warnings.push_back(text);
    if (!o_.json) host::say(fmt::format("{} {}\n", host::Style(stderr).bold("warning:"), text));
}

Result<void> Compilation::import() {
    std::vector<std::string> warnings;
    compiler::import::Options options{.program = o_.program,
                                      .architecture = o_.architecture,
                                      .picture_size = o_.picture_size,
                                      .problems = &problems_,
                                      .warnings = &warnings};
    options.after_stage = [&](const char* stage, const Graph& graph) {
        if (o_.dump_after == stage) dump(compiler::dump(graph));
    };
    TRY_ASSIGN(graph_, compiler::import::import_model(o_.model, options));
    for (const auto& w : warnings) warn(w);
    return {};
}

Result<std::vector<compiler::NamedSample>> Compilation::load(const std::string& path, std::size_t limit) {
    TRY_ASSIGN(auto loaded, compiler::load_samples(path, real_, preprocess_, limit));
    for (const auto& skipped : loaded.skipped) warn(fmt::format("not used: {}", skipped));
    return std::move(loaded.samples);
}

/// Numbers between -1 and 1: for want of anything better, and never in silence.
std::vector<compiler::Sample> Compilation::noise() const {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<compiler::Sample> out(4);
    for (auto& sample : out)
        for (const auto id : real_.inputs) {
            std::vector<float> numbers(static_cast<std::size_t>(compiler::element_count(real_[id].shape)));
            for (float& v : numbers) v = uniform(random);
            sample.push_back(std::move(numbers));
        }
    return out;
}

Result<std::vector<compiler::Sample>> Compilation::samples() {
    if (o_.calibration.empty()) {
        warn(
            "no calibration data: value ranges are guessed from noise. Outputs will be poor, often useless; give a "
            "few dozen typical inputs with --calibration DIR");
        return noise();
    }
    TRY_ASSIGN(auto loaded, load(o_.calibration, o_.calibration_limit));
    std::vector<compiler::Sample> out;
    for (auto& s : loaded) out.push_back(std::move(s.inputs));
    return out;
}

Result<void> Compilation::report_layers(const std::vector<compiler::Sample>& with) {
    TRY_ASSIGN(auto noise, compiler::layer_noise(real_, graph_, with, threads()));
    std::ranges::stable_sort(noise, {}, &compiler::LayerNoise::snr_db);
    for (const auto& n : noise) result_.layers.push_back({graph_[n.value].name, n.snr_db, n.low, n.high});
    return {};
}

Result<void> Compilation::quantize() {
    real_ = graph_;
    if (is_quantized(graph_)) {
        if (!o_.calibration.empty()) warn("the model is quantized already: --calibration is not used");
        if (!o_.evaluate.empty())
            warn("the model is quantized already: there is no float model to evaluate it against");
        return {};
    }
    TRY_ASSIGN(const auto with, samples());
    compiler::QuantizeOptions options;
    options.observer = compiler::find_observer(o_.observer);
    options.activations = *compiler::find_activations(o_.activations);
    options.threads = threads();
    std::optional<host::Progress> progress;
    std::string shown;
    options.progress = [&](std::string_view what, std::size_t done, std::size_t total) {
        if (shown != what) {
            shown = what;
            progress.emplace(shown, total);
        }
        progress->done(done);
    };
    TRY_ASSIGN(auto quantized, compiler::quantize(real_, with, options));
    progress.reset();
    for (const auto& w : quantized.warnings) warn(w);
    graph_ = std::move(quantized.graph);
    result_.quantization = fmt::format("{} by {} {}, observer {}", o_.activations, with.size(),
                                       o_.calibration.empty() ? "samples of noise"
                                       : with.size() == 1     ? "sample"
                                                              : "samples",
                                       compiler::observer_name(quantized.observer));
    if (o_.dump_after == "quantize") dump(compiler::dump(graph_));
    if (!o_.evaluate.empty()) {
        TRY_ASSIGN(auto loaded, load(o_.evaluate, SIZE_MAX));
        std::vector<compiler::Sample> all;
        for (auto& s : loaded) all.push_back(std::move(s.inputs));
        TRY_ASSIGN(result_.agreement, compiler::agreement(real_, graph_, all, threads()));
    }
    if (o_.report) TRY(report_layers(with));
    return {};
}

Result<void> Compilation::add_metadata(compiler::CompileOptions& options) const {
    if (!o_.labels.empty()) {
        TRY(classifier::Labels::read(o_.labels, 0));
        TRY_ASSIGN(auto text, host::read_text(o_.labels, 16 << 20));
        options.metadata.emplace_back("labels", std::move(text));
    }
    if (o_.picture.given()) {
        const auto list = [](const std::array<float, 3>& v) { return std::vector<double>(v.begin(), v.end()); };
        options.number_metadata.emplace_back(
            "input0_range",
            std::vector<double>{static_cast<double>(preprocess_.low), static_cast<double>(preprocess_.high)});
        options.number_metadata.emplace_back("input0_mean", list(preprocess_.mean));
        options.number_metadata.emplace_back("input0_std", list(preprocess_.std));
    }
    return {};
}

Result<void> Compilation::compile() {
    TRY_ASSIGN(const auto sram, parse_size(o_.sram));
    const bool u55 = o_.target.starts_with("ethos-u55");
    const std::string system = !o_.system.empty() ? o_.system
                               : u55              ? "Ethos_U55_High_End_Embedded"
                                                  : "Ethos_U65_High_End";
    compiler::CompileOptions options;
    TRY_ASSIGN(options.target, compiler::make_target(o_.target, system, *choose(kModes, o_.memory_mode), sram));
    options.target.optimize = *choose(kOptimize, o_.optimize);
    options.io = *choose(kIo, o_.io);
    options.dump_after = o_.dump_after;
    TRY(add_metadata(options));
    TRY_ASSIGN(const auto compiled, host::with_context(compiler::compile(graph_, options), o_.model));
    if (!compiled.report.dump.empty()) dump(compiled.report.dump);
    TRY(host::write_file(o_.output, compiled.pte));
    result_.program_bytes = compiled.pte.size();
    result_.nodes = graph_.nodes.size();
    result_.delegates = compiled.report.delegates;
    for (const auto& c : compiled.report.cpu_nodes)
        result_.on_cpu.push_back({compiler::import::where_text(graph_.nodes[c.node].source),
                                  compiler::op_name(graph_.nodes[c.node].op), c.reason});
    result_.target = o_.target;
    result_.memory_mode = o_.memory_mode;
    result_.sram_bytes = sram;
    result_.clock_hz = options.target.config.clock_hz;
    return {};
}

Result<void> Compilation::run() {
    const auto started = std::chrono::steady_clock::now();
    result_.model = o_.model;
    result_.output = o_.output;
    TRY_ASSIGN(const auto flags, normalisation(o_.picture));
    preprocess_ = preprocess(flags);
    const auto work = [&]() -> Result<void> {
        TRY(import());
        // A stage that has been shown is all that was asked for.
        if (is_stage(std::begin(kImportStages), std::end(kImportStages), o_.dump_after) && o_.output.empty()) return {};
        TRY(quantize());
        if (o_.output.empty()) return {};
        return compile();
    };
    if (auto done = work(); !done) {
        if (!o_.json) return done;
        fmt::print("{}\n", compile_error_json(done.error(), problems_));
        return done;
    }
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (o_.output.empty()) return {};
    if (o_.json)
        fmt::print("{}\n", compile_json(result_));
    else if (o_.dump_after.empty())
        fmt::print("{}", compile_text(result_, host::Style(stdout).colours()));
    return {};
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& text) {
    if (text == "unlimited") return compiler::kUnlimited;
    std::uint64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string unit(end, text.data() + text.size());
    std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::uint64_t factor = unit.empty() || unit == "b"                    ? 1
                                 : unit == "k" || unit == "kb" || unit == "kib" ? 1 << 10
                                 : unit == "m" || unit == "mb" || unit == "mib" ? 1 << 20
                                                                                : 0;
    const auto bytes = checked_mul(number, factor);
    if (status != std::errc() || factor == 0 || number == 0 || !bytes || *bytes >= compiler::kUnlimited)
        return failure(ErrorCode::InvalidArgument, "'{}' is no size: 384K, 1M, 393216 and unlimited are", text);
    return *bytes;
}

Result<void> check(const CompileOptions& o) {
    TRY(parse_size(o.sram));
    TRY_ASSIGN(const auto flags, normalisation(o.picture));
    TRY(classifier::check(flags));
    if (o.output.empty() && o.dump_after.empty())
        return failure(ErrorCode::InvalidArgument, "where should the program go? Give -o FILE.pte");
    if (o.output.empty() && is_stage(std::begin(kLaterStages) + 1, std::end(kLaterStages), o.dump_after))
        return failure(ErrorCode::InvalidArgument, "--dump-after {} needs -o FILE.pte too", o.dump_after);
    return {};
}

Result<void> compile_model(const CompileOptions& options) {
    return Compilation(options).run();
}

}  // namespace talpa::cli
