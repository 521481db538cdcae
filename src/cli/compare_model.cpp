#include "cli/compare_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>

#include "base/host/exit_status.h"
#include "base/host/file.h"
#include "base/host/terminal.h"
#include "cli/compilation.h"
#include "compiler/compare/layers.h"
#include "compiler/graph/ops.h"
#include "compiler/models/registry.h"
#include "compiler/quantize/compare_runs.h"
#include "pte/delegate_blob.h"
#include "pte/program.h"
#include "runtime/ethos_u.h"

namespace talpa::cli {
namespace {

using compiler::Graph;
using compiler::LayerComparison;
using compiler::NetworkComparison;
using compiler::ValueId;
using host::failure;
using host::Result;

constexpr std::size_t kShown = 8;

/// A file's numbers: float32, or the input's own integers where it has some.
Result<std::vector<float>> read_input(const std::string& path, const compiler::Value& input) {
    TRY_ASSIGN(const auto file, host::MappedFile::open(path));
    const auto bytes = file.bytes();
    const auto count = static_cast<std::size_t>(compiler::element_count(input.shape));
    std::vector<float> numbers(count);
    if (bytes.size() == count * sizeof(float)) {
        std::memcpy(numbers.data(), bytes.data(), bytes.size());
        return numbers;
    }
    const std::size_t each = compiler::dtype_size(input.stored_type());
    if (!input.quantization || bytes.size() != count * each)
        return failure(ErrorCode::InvalidArgument, "{} has {} bytes; input '{}' is {} numbers: {} bytes of float32",
                       path, bytes.size(), input.name, count, count * sizeof(float));
    const auto& q = *input.quantization;
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t n = q.type == compiler::DType::Int16  ? load_le<std::int16_t>(bytes.data() + 2 * i)
                         : q.type == compiler::DType::Int8 ? std::int64_t{static_cast<std::int8_t>(bytes[i])}
                                                           : std::int64_t{bytes[i]};
        numbers[i] = static_cast<float>(static_cast<double>(n - q.zero_points[0]) * q.scales[0]);
    }
    return numbers;
}

Result<compiler::Sample> inputs_of(const CompareOptions& options, Compilation& c) {
    const Graph& graph = c.real();
    if (!options.image.empty()) {
        TRY_ASSIGN(auto loaded, c.load(options.image, 1));
        return std::move(loaded[0].inputs);
    }
    if (options.inputs.size() != graph.inputs.size())
        return std::unexpected(host::Error(
            ErrorCode::InvalidArgument,
            fmt::format("the model has {} inputs, {} files were given", graph.inputs.size(), options.inputs.size()),
            "give --input FILE.bin once for each, in order, or --image FILE"));
    compiler::Sample sample;
    for (std::size_t i = 0; i < options.inputs.size(); ++i) {
        TRY_ASSIGN(auto numbers, read_input(options.inputs[i], graph[graph.inputs[i]]));
        sample.push_back(std::move(numbers));
    }
    return sample;
}

/// Bytes at an address that programs need.
class Aligned {
  public:
    explicit Aligned(talpa::Bytes from) : room_(from.size() + 16), size_(from.size()) {
        std::memcpy(data(), from.data(), from.size());
    }
    [[nodiscard]] talpa::Bytes bytes() { return {data(), size_}; }

  private:
    std::uint8_t* data() { return room_.data() + (16 - reinterpret_cast<std::uintptr_t>(room_.data()) % 16) % 16; }
    std::vector<std::uint8_t> room_;
    std::size_t size_;
};

/// The command streams of a program's "forward", one after the other; nothing if it cannot be read so far.
std::vector<std::vector<std::uint32_t>> streams_of(talpa::Bytes file) {
    std::vector<std::vector<std::uint32_t>> streams;
    const auto program = pte::Program::open(file);
    if (!program) return {};
    const auto method = program->find_method("forward");
    if (!method) return {};
    for (std::uint32_t i = 0; i < method->delegate_count(); ++i) {
        const auto delegate = runtime::EthosUDelegate::load(*program, method->delegate(i), i, {}, nullptr);
        if (!delegate) return {};
        streams.emplace_back(delegate->stream().begin(), delegate->stream().end());
    }
    return streams;
}

std::string decibels(double db) {
    return db >= 199 ? "equal" : fmt::format("{:.1f}", db);
}

std::string coordinates(std::size_t index, const compiler::Shape& shape) {
    std::vector<std::size_t> at(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        const auto side = static_cast<std::size_t>(shape[d] > 0 ? shape[d] : 1);
        at[d] = index % side;
        index /= side;
    }
    return fmt::format("[{}]", fmt::join(at, ", "));
}

class Printer {
  public:
    Printer(const CompareOptions& o, const Graph& graph, const NetworkComparison& c, bool came_quantized)
        : o_(o), graph_(graph), c_(c), came_quantized_(came_quantized) {}

    void layers() const {
        fmt::print("{}\n", style_.dim(fmt::format("{:<34} {:<16} {:>10} {:>10}  {}", "layer", "operator", "quantized",
                                                  "program", "program against its operator")));
        const std::size_t count = c_.layers.size();
        std::size_t left_out = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const bool marked = i == c_.first_noisy || i == c_.first_wrong || c_.layers[i].off != 0;
            if (!o_.all && !marked && i >= kShown / 2 && i + kShown / 2 < count) {
                ++left_out;
                continue;
            }
            row(i);
        }
        if (left_out != 0)
            fmt::print("{}\n", style_.dim(fmt::format("({} more that are as they should be; --all)", left_out)));
        fmt::print("output: quantized {} dB ({} to {} as values happen to be rounded), program {} dB from {}\n",
                   decibels(c_.output_quantized_db), decibels(c_.output_least_db), decibels(c_.output_most_db),
                   decibels(c_.output_program_db), came_quantized_ ? "the model without rounding" : "float");
    }

    void verdict() const {
        if (c_.first_noisy) {
            const auto& l = c_.layers[*c_.first_noisy];
            fmt::print("{} {}: {} dB, less than {:g}\n", style_.bold("quantization goes wrong first at"), where(l),
                       decibels(l.quantized_db), o_.least_db);
        }
        if (!c_.first_wrong) {
            std::size_t seen = 0;
            for (const auto& l : c_.layers) seen += l.worst_steps ? 1 : 0;
            fmt::print("the program computes {} of {} layers as it should; the others exist only inside an operation\n",
                       seen, c_.layers.size());
            return;
        }
        const auto& l = c_.layers[*c_.first_wrong];
        fmt::print("{} {}: {} of {} elements are off, by up to {:.0f} steps; the first at {}: {:.6g} and {:.6g}\n",
                   style_.bold("the program goes wrong first at"), where(l), l.off, l.elements, *l.worst_steps,
                   coordinates(l.first_off, graph_[l.value].shape), l.program_value, l.expected_value);
    }

  private:
    [[nodiscard]] std::string where(const LayerComparison& l) const {
        const auto& node = graph_.nodes[l.node];
        return fmt::format("{} ({})", compiler::import::where_text(node.source), compiler::op_name(node.op));
    }
    void row(std::size_t i) const {
        const LayerComparison& l = c_.layers[i];
        const auto& node = graph_.nodes[l.node];
        std::string name = graph_[l.value].name;
        if (name.size() > 34) name = "…" + name.substr(name.size() - 33);
        std::string against = "not held by the program";
        if (l.worst_steps && l.off != 0)
            against = style_.red(fmt::format("{} elements off, by up to {:.0f} steps", l.off, *l.worst_steps));
        else if (l.worst_steps)
            against = *l.worst_steps < 0.5 ? "equal" : "within a step";
        else if (l.program_db)
            against = "held, not recomputed";
        fmt::print("{:<34} {:<16} {:>10} {:>10}  {}\n", name, compiler::op_name(node.op), decibels(l.quantized_db),
                   l.program_db ? decibels(*l.program_db) : "", against);
    }

    const CompareOptions& o_;
    const Graph& graph_;
    const NetworkComparison& c_;
    bool came_quantized_;
    host::Style style_{stdout};
};

}  // namespace

bool is_model(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return compiler::models::find(path) != nullptr;
    const auto file = host::MappedFile::open(path);
    // The identifier of a program stands behind the root's offset (pte-format, section 1).
    if (!file || file->bytes().size() < 8) return false;
    return std::memcmp(file->bytes().data() + 4, "ET", 2) != 0;
}

Result<int> compare_model(const CompareOptions& options) {
    CompileOptions how = options.compile;
    how.model = options.program;
    how.in_memory = true;
    Compilation c(how);
    TRY(c.import());
    TRY(c.quantize());
    TRY_ASSIGN(const auto compiled, c.compile());
    TRY_ASSIGN(const auto inputs, inputs_of(options, c));
    const auto run = [&](talpa::Bytes program, const std::string& name, const compiler::CompileReport& report) {
        return compiler::traced_run(program, name, c.graph(), report, *c.target().hardware, inputs, c.threads());
    };
    Aligned ours(compiled.pte);
    std::optional<compiler::TracedRun> traced;
    bool same_streams = true;
    if (options.compiled.empty()) {
        TRY_ASSIGN(traced, run(ours.bytes(), "the program", compiled.report));
    } else {
        TRY_ASSIGN(const auto file, host::MappedFile::open(options.compiled));
        Aligned theirs(file.bytes());
        same_streams = streams_of(theirs.bytes()) == streams_of(ours.bytes());
        // Without the map, what is inside cannot be named; its outputs still count.
        TRY_ASSIGN(traced,
                   run(theirs.bytes(), options.compiled, same_streams ? compiled.report : compiler::CompileReport{}));
    }
    TRY_ASSIGN(const auto comparison,
               compiler::compare_layers(c.real(), c.graph(), inputs, &*traced, options.least_db));
    const Printer printer(options, c.graph(), comparison, c.came_quantized());
    printer.layers();
    if (!same_streams) {
        TRY_ASSIGN(const auto mine, run(ours.bytes(), "the program", compiled.report));
        const bool equal = mine.outputs == traced->outputs;
        fmt::print(
            "{} is not what {} compiles to with these options: only its outputs were compared. They are {} what that "
            "would give\n",
            options.compiled, options.program, equal ? "exactly" : "not");
        return equal && !comparison.first_noisy ? host::kExitSuccess : host::kExitFailed;
    }
    printer.verdict();
    return comparison.first_noisy || comparison.first_wrong ? host::kExitFailed : host::kExitSuccess;
}

}  // namespace talpa::cli
