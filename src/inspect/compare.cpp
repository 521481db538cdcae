#include "inspect/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "inspect/trace.h"

namespace talpa::inspect {
namespace {

namespace rt = runtime::host;
using runtime::Value;

struct RanOutput {
    rt::PortInfo port;
    std::vector<std::uint8_t> bytes;
    std::string written_by;
};

struct Ran {
    std::vector<TracePoint> points;
    std::optional<CapturedTensor> captured;
    std::vector<RanOutput> outputs;
};

bool lists_value(const pte::MethodView& method, pte::Vector<std::int32_t> args, std::int32_t value) {
    for (std::uint32_t i = 0; i < args.size(); ++i) {
        if (args[i] == value) return true;
        if (args[i] < 0 || static_cast<std::uint32_t>(args[i]) >= method.values().size()) continue;
        const pte::ValueView view = method.value(static_cast<std::uint32_t>(args[i]));
        if (view.type() != pte::ValueType::TensorList) continue;
        for (std::uint32_t k = 0; k < view.tensor_list().size(); ++k)
            if (view.tensor_list()[k] == value) return true;
    }
    return false;
}

/// The last instruction that has the value among its arguments, or moves to it.
std::string writer_of(const pte::MethodView& method, std::int32_t value) {
    for (std::uint32_t chain = method.chain_count(); chain-- > 0;)
        for (std::uint32_t i = method.instructions(chain).size(); i-- > 0;) {
            const pte::InstructionView view(method.instructions(chain)[i]);
            const bool calls =
                view.type() == pte::InstructionType::KernelCall || view.type() == pte::InstructionType::DelegateCall;
            if ((calls && lists_value(method, view.args(), value)) ||
                (view.type() == pte::InstructionType::MoveCall && view.move_to() == value))
                return instruction_name(method, chain, i);
        }
    return "nothing: it is an input or a constant";
}

host::Result<Ran> run_traced(const ProgramOptions& options, const std::vector<std::string>& paths,
                             std::optional<std::size_t> capture) {
    Tracer tracer(capture);
    TRY_ASSIGN(const OpenProgram program, open_program(options, &tracer));
    rt::Session& session = *program.session;
    TRY_ASSIGN(const InputFiles inputs, InputFiles::open(session, paths));
    TRY(inputs.set(session));
    TRY(session.run());
    Ran ran{.points = tracer.points(), .captured = tracer.captured(), .outputs = {}};
    const pte::MethodView& method = session.method().view();
    for (std::uint32_t i = 0; i < session.output_count(); ++i) {
        RanOutput output{.port = session.output(i), .bytes = {}, .written_by = writer_of(method, method.outputs()[i])};
        if (output.port.kind != Value::Kind::Tensor) continue;
        TRY_ASSIGN(output.bytes, output_in_c_order(session, i));
        ran.outputs.push_back(std::move(output));
    }
    return ran;
}

host::Result<Ran> run_named(const ProgramOptions& options, const std::vector<std::string>& inputs,
                            std::optional<std::size_t> capture = {}) {
    auto ran = run_traced(options, inputs, capture);
    // Most errors name the program already.
    if (ran || ran.error().context.starts_with(options.path) ||
        ran.error().message.find(options.path) != std::string::npos)
        return ran;
    return host::with_context(std::move(ran), options.path);
}

std::vector<OutputComparison> compare_outputs(const Ran& a, const Ran& b) {
    std::vector<OutputComparison> outputs;
    for (std::size_t i = 0; i < std::max(a.outputs.size(), b.outputs.size()); ++i) {
        OutputComparison c;
        c.index = static_cast<std::uint32_t>(i);
        if (i >= a.outputs.size() || i >= b.outputs.size()) {
            c.problem =
                fmt::format("only one side has it: {} and {} tensor outputs", a.outputs.size(), b.outputs.size());
            outputs.push_back(std::move(c));
            continue;
        }
        const RanOutput &x = a.outputs[i], &y = b.outputs[i];
        c.description = x.port.describe();
        c.written_by = x.written_by;
        c.shape = x.port.sizes;
        if (x.port.type != y.port.type || x.bytes.size() != y.bytes.size())
            c.problem = fmt::format("it is {} on one side, {} on the other", x.port.describe(), y.port.describe());
        else
            c.difference = difference(x.port.type, x.bytes, y.bytes);
        outputs.push_back(std::move(c));
    }
    return outputs;
}

bool same_keys(const std::vector<TracePoint>& a, const std::vector<TracePoint>& b) {
    return std::ranges::equal(a, b, {}, &TracePoint::key, &TracePoint::key);
}

/// Indices of the points outside the NPU.
std::vector<std::size_t> instruction_points(const std::vector<TracePoint>& points) {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < points.size(); ++i)
        if (!points[i].inside_npu) indices.push_back(i);
    return indices;
}

struct Pair {
    std::size_t a, b;
};

/// The first points that differ; `note` says on what level they were looked for.
std::optional<Pair> first_difference(const std::vector<TracePoint>& a, const std::vector<TracePoint>& b,
                                     std::string& note) {
    if (same_keys(a, b)) {
        for (std::size_t i = 0; i < a.size(); ++i)
            if (a[i].hash != b[i].hash) return Pair{i, i};
        note = "every tensor inside is equal";
        return std::nullopt;
    }
    const auto x = instruction_points(a), y = instruction_points(b);
    const bool same = std::ranges::equal(x, y, [&](std::size_t i, std::size_t k) { return a[i].key == b[k].key; });
    if (!same) {
        note = "the programs have different instructions, so nothing inside them can be held against each other";
        return std::nullopt;
    }
    note = "the NPU operations are not the same on both sides, so only the tensors between instructions were compared";
    for (std::size_t i = 0; i < x.size(); ++i)
        if (a[x[i]].hash != b[y[i]].hash) return Pair{x[i], y[i]};
    return std::nullopt;
}

/// The file that holds output `index`: there, or the one that is missed.
std::filesystem::path recorded_output(const std::filesystem::path& folder, const std::string& stem, std::size_t index) {
    auto plain = folder / fmt::format("out{}.bin", index), named = folder / fmt::format("{}.out{}.bin", stem, index);
    return !std::filesystem::exists(plain) && std::filesystem::exists(named) ? named : plain;
}

host::Result<Comparison> compared(Comparison comparison) {
    if (comparison.outputs.empty())
        return host::failure(ErrorCode::InvalidArgument, "nothing was compared: there are no tensor outputs");
    return comparison;
}

}  // namespace

host::Result<Comparison> compare_programs(const ProgramOptions& a, const ProgramOptions& b,
                                          const std::vector<std::string>& inputs) {
    TRY_ASSIGN(const Ran ran_a, run_named(a, inputs));
    TRY_ASSIGN(const Ran ran_b, run_named(b, inputs));
    Comparison comparison{.outputs = compare_outputs(ran_a, ran_b), .first = {}, .note = {}};
    if (comparison.equal()) return compared(std::move(comparison));
    const auto at = first_difference(ran_a.points, ran_b.points, comparison.note);
    if (!at) return comparison;
    TRY_ASSIGN(const Ran again_a, run_named(a, inputs, at->a));
    TRY_ASSIGN(const Ran again_b, run_named(b, inputs, at->b));
    if (!again_a.captured || !again_b.captured)
        return host::failure(ErrorCode::Internal, "a second run took another way than the first");
    const CapturedTensor& tensor = *again_a.captured;
    const auto found = difference(tensor.type, tensor.bytes, again_b.captured->bytes);
    if (!found) return host::failure(ErrorCode::Internal, "a second run gave other tensors than the first");
    comparison.first = PointDifference{
        .a = ran_a.points[at->a].what,
        .b = ran_b.points[at->b].what,
        .description = fmt::format("{} [{}]", runtime::scalar_name(tensor.type), fmt::join(tensor.shape, ", ")),
        .shape = tensor.shape,
        .difference = *found};
    return comparison;
}

host::Result<Comparison> compare_with_recorded(const ProgramOptions& program, const std::filesystem::path& folder,
                                               const std::vector<std::string>& inputs) {
    TRY_ASSIGN(const Ran ran, run_named(program, inputs));
    Ran recorded;
    const std::string stem = std::filesystem::path(program.path).stem().string();
    for (std::size_t i = 0; i < ran.outputs.size(); ++i) {
        TRY_ASSIGN(auto bytes, host::with_context(host::read_file(recorded_output(folder, stem, i)),
                                                  fmt::format("recorded output {}", i)));
        const RanOutput& ours = ran.outputs[i];
        if (bytes.size() != ours.bytes.size())
            return host::failure(ErrorCode::InvalidArgument,
                                 "recorded output {} in {} has {} bytes; the program's is {}, {} bytes", i,
                                 folder.string(), bytes.size(), ours.port.describe(), ours.bytes.size());
        recorded.outputs.push_back({ours.port, std::move(bytes), {}});
    }
    Comparison comparison{.outputs = compare_outputs(ran, recorded), .first = {}, .note = {}};
    for (std::size_t i = ran.outputs.size();; ++i) {
        const auto surplus = recorded_output(folder, stem, i);
        if (!std::filesystem::exists(surplus)) break;
        OutputComparison c;
        c.index = static_cast<std::uint32_t>(i);
        c.problem =
            fmt::format("{} is recorded, and the program has {} tensor outputs", surplus.string(), ran.outputs.size());
        comparison.outputs.push_back(std::move(c));
    }
    return compared(std::move(comparison));
}

}  // namespace talpa::inspect
