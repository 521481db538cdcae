#include "cli/compilation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include "base/host/file.h"
#include "base/host/terminal.h"
#include "classifier/labels.h"
#include "compiler/graph/dump.h"
#include "compiler/graph/ops.h"
#include "compiler/import/import.h"
#include "compiler/models/registry.h"
#include "compiler/quantize/quantize.h"
#include "compiler/vela/system.h"

namespace talpa::cli {
namespace {

using compiler::Graph;
using host::failure;
using host::Result;

constexpr const char* kImportStages[] = {"import", "layout", "batch-norm", "fuse", "canonical"};
constexpr const char* kStagesAfterQuantize[] = {"lower", "schedule", "emit"};

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

/// A registry entry's "--range 0,1 --mean …" as the flags that it is.
PictureOptions picture_options(std::string_view flags) {
    PictureOptions o;
    std::istringstream words{std::string(flags)};
    for (std::string flag, value; words >> flag >> value;)
        (flag == "--mean" ? o.mean : flag == "--std" ? o.std : o.range) = value;
    return o;
}

/// Is a layer's noise its own, or did it come with its operands? What helps depends on that.
std::string advice(const Graph& graph, const std::vector<compiler::LayerNoise>& all,
                   const compiler::LayerNoise& layer) {
    constexpr double kFine = 25, kOwn = 3;
    if (layer.snr_db >= kFine) return {};
    const auto uses = compiler::find_uses(graph);
    const compiler::LayerNoise* from = nullptr;
    if (const auto producer = uses.producer[layer.value]; producer >= 0)
        for (const auto id : graph.nodes[static_cast<std::size_t>(producer)].inputs)
            for (const auto& n : all)
                if (n.value == id && (from == nullptr || n.snr_db < from->snr_db)) from = &n;
    if (from != nullptr && from->snr_db - layer.snr_db < kOwn)
        return fmt::format("most of it comes in with '{}' ({:.1f} dB)", graph[from->value].name, from->snr_db);
    const auto& q = *graph[layer.value].quantization;
    return fmt::format("lost here, in steps of {:.4g}{}", q.scales[0],
                       q.type == compiler::DType::Int16
                           ? ": its weights have 8 bits"
                           : "; 16 bits help (--activations mixed or int16), or ranges chosen otherwise (--observer)");
}

}  // namespace

bool is_import_stage(const std::string& stage) {
    return std::ranges::find(kImportStages, stage) != std::end(kImportStages);
}
bool is_stage_after_quantize(const std::string& stage) {
    return std::ranges::find(kStagesAfterQuantize, stage) != std::end(kStagesAfterQuantize);
}

Result<compiler::Target> target_of(const CompileOptions& o, std::vector<std::string>* warnings) {
    compiler::vela::TargetOptions t{.npu = o.target, .system = o.system, .memory_mode = o.memory_mode, .files = {}};
    if (!o.sram.empty()) {
        TRY_ASSIGN(t.sram_bytes, parse_size(o.sram));
    }
    t.files.assign(o.configs.begin(), o.configs.end());
    TRY_ASSIGN(auto target, compiler::vela::make_target(t, warnings));
    target.optimize = o.optimize == "size" ? compiler::Optimize::Size : compiler::Optimize::Speed;
    return target;
}

unsigned Compilation::threads() const {
    return o_.threads != 0 ? o_.threads : std::clamp(std::thread::hardware_concurrency(), 1u, 16u);
}

void Compilation::warn(const std::string& text) {
    result_.warnings.push_back(text);
    if (!o_.json) host::say(fmt::format("{} {}\n", host::Style(stderr).bold("warning:"), text));
}

Result<void> Compilation::find_model() {
    file_ = o_.model;
    architecture_ = o_.architecture;
    picture_ = o_.picture;
    std::error_code ignored;
    const auto* entry = compiler::models::find(o_.model);
    const bool is_file = std::filesystem::exists(o_.model, ignored);
    // What has neither a folder nor an ending is rather meant as a network's name.
    if (entry == nullptr && !is_file && o_.model.find_first_of("/.") == std::string::npos)
        return std::unexpected(host::Error(ErrorCode::NotFound,
                                           fmt::format("there is neither a file nor a network '{}'", o_.model),
                                           "talpa model list shows the networks that can be had by name"));
    if (entry != nullptr && !is_file) {
        TRY_ASSIGN(const auto cache, compiler::models::cache_folder());
        TRY_ASSIGN(const auto path, host::with_context(compiler::models::fetch(*entry, cache), o_.model));
        file_ = path.string();
        if (architecture_.empty()) architecture_ = entry->architecture;
        if (!picture_.given()) picture_ = picture_options(entry->preprocessing);
    }
    TRY_ASSIGN(const auto flags, normalisation(picture_));
    preprocess_ = preprocess(flags);
    return {};
}

Result<void> Compilation::import() {
    result_.model = o_.model;
    result_.output = o_.output;
    TRY(find_model());
    std::vector<std::string> warnings;
    compiler::import::Options options{.program = o_.program,
                                      .architecture = architecture_,
                                      .picture_size = o_.picture_size,
                                      .problems = &problems_,
                                      .warnings = &warnings};
    options.after_stage = [&](const char* stage, const Graph& graph) {
        if (o_.dump_after == stage) fmt::print("{}", compiler::dump(graph));
    };
    TRY_ASSIGN(graph_, compiler::import::import_model(file_, options));
    for (const auto& w : warnings) warn(w);
    real_ = graph_;
    came_quantized_ = is_quantized(graph_);
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
    for (const auto& n : noise) result_.layers.push_back({graph_[n.value].name, n.snr_db, n.low, n.high, {}});
    constexpr std::size_t kAdvised = 5;
    for (std::size_t i = 0; i < std::min(noise.size(), kAdvised); ++i)
        result_.layers[i].advice = advice(graph_, noise, noise[i]);
    return {};
}

Result<void> Compilation::evaluate() {
    TRY_ASSIGN(auto loaded, load(o_.evaluate, SIZE_MAX));
    std::vector<compiler::Sample> all;
    for (auto& s : loaded) all.push_back(std::move(s.inputs));
    TRY_ASSIGN(result_.agreement, compiler::agreement(real_, graph_, all, threads()));
    return {};
}

Result<void> Compilation::quantize() {
    if (came_quantized_) {
        // What its makers chose stands. It is held against the same network without rounding.
        if (!o_.calibration.empty() && !o_.report)
            warn("the model is quantized already: --calibration is used for --report alone");
        if (o_.calibration.empty() && o_.report)
            warn("the model is quantized already: --report needs typical inputs, --calibration DIR");
        if (!o_.evaluate.empty()) TRY(evaluate());
        if (!o_.report || o_.calibration.empty()) return {};
        TRY_ASSIGN(const auto typical, samples());
        return report_layers(typical);
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
    if (o_.dump_after == "quantize") fmt::print("{}", compiler::dump(graph_));
    if (!o_.evaluate.empty()) TRY(evaluate());
    if (o_.report) TRY(report_layers(with));
    return {};
}

Result<void> Compilation::add_metadata(compiler::CompileOptions& options) {
    if (!o_.labels.empty()) {
        TRY_ASSIGN(const auto labels, classifier::Labels::read(o_.labels, 0));
        const compiler::Shape& scores = graph_[graph_.outputs[0]].shape;
        const bool ranks = !scores.empty() && compiler::element_count(scores) == scores.back();
        if (const auto doubt = labels.doubt(ranks ? static_cast<std::size_t>(scores.back()) : 0); !doubt.empty())
            warn(doubt);
        TRY_ASSIGN(auto text, host::read_text(o_.labels, 16 << 20));
        options.metadata.emplace_back("labels", std::move(text));
    }
    if (picture_.given()) {
        const auto list = [](const std::array<float, 3>& v) { return std::vector<double>(v.begin(), v.end()); };
        options.number_metadata.emplace_back(
            "input0_range",
            std::vector<double>{static_cast<double>(preprocess_.low), static_cast<double>(preprocess_.high)});
        options.number_metadata.emplace_back("input0_mean", list(preprocess_.mean));
        options.number_metadata.emplace_back("input0_std", list(preprocess_.std));
    }
    return {};
}

Result<compiler::Compiled> Compilation::compile() {
    std::vector<std::string> warnings;
    TRY_ASSIGN(target_, target_of(o_, &warnings));
    for (const auto& w : warnings) warn(w);
    compiler::CompileOptions options;
    options.target = target_;
    options.io = o_.io == "float"  ? compiler::IoType::Float
                 : o_.io == "int8" ? compiler::IoType::Quantized
                                   : compiler::IoType::AsModel;
    options.dump_after = o_.dump_after;
    TRY(add_metadata(options));
    std::vector<compiler::Unsupported> unsupported;
    options.unsupported = &unsupported;
    auto result = host::with_context(compiler::compile(graph_, options), o_.model);
    for (auto& u : unsupported)
        problems_.push_back({std::move(u.source), std::move(u.what), compiler::kUnsupportedHint});
    TRY_ASSIGN(auto compiled, std::move(result));
    result_.program_bytes = compiled.pte.size();
    result_.nodes = compiled.report.npu_nodes + compiled.report.cpu_nodes.size();
    result_.delegates = compiled.report.delegates;
    for (const auto& c : compiled.report.cpu_nodes)
        result_.on_cpu.push_back({compiler::import::where_text(graph_.nodes[c.node].source),
                                  compiler::op_name(graph_.nodes[c.node].op), c.reason});
    result_.target = o_.target;
    result_.memory_mode = o_.memory_mode.empty() ? compiler::vela::usual_mode(o_.target) : o_.memory_mode;
    result_.sram_bytes = target_.sram_bytes;
    result_.clock_hz = target_.config.clock_hz;
    result_.arena_in_sram = target_.mode != compiler::MemoryMode::DedicatedSram;
    result_.constants_in_sram = target_.mode == compiler::MemoryMode::SramOnly;
    return compiled;
}

}  // namespace talpa::cli
