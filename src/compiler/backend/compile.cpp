#include "compiler/backend/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/backend/cpu_call.h"
#include "compiler/backend/cpu_operators.h"
#include "compiler/backend/partition.h"
#include "compiler/backend/program_builder.h"
#include "compiler/backend/untouched.h"
#include "compiler/emit/operations.h"
#include "compiler/lower/lowering.h"
#include "npu_model/cycles/network_cost.h"
#include "pte/host/delegate_blob_writer.h"

namespace talpa::compiler {

const char* const kUnsupportedHint =
    "Express them by other operators, within the limits that are named, or let the model end before them and do the "
    "rest on the host.";

namespace {

host::Result<void> check_supported(const Graph& graph, const Partition& parts, std::vector<Unsupported>* list) {
    std::string problems;
    for (const Part& part : parts.parts) {
        if (part.on_npu) continue;
        for (const std::uint32_t n : part.nodes) {
            const Node& node = graph.nodes[n];
            const auto why = cpu_obstacle(graph, node);
            if (!why) continue;
            std::string what =
                fmt::format("not on the NPU because {}; not on the CPU because {}", parts.reasons[n], *why);
            problems += fmt::format("\n  {} '{}'{}: {}", op_name(node.op), node.source.node,
                                    node.source.line.empty() ? "" : " (" + node.source.line + ")", what);
            if (list != nullptr) list->push_back({node.source, std::move(what)});
        }
    }
    if (problems.empty()) return {};
    return std::unexpected(host::Error(
        ErrorCode::NotSupported, "the model has operators that cannot be compiled:" + problems, kUnsupportedHint));
}

pte::host::IoRecordSpec io_record(const Graph& graph, ValueId id, const Placement& placement) {
    const Value& v = graph[id];
    pte::host::IoRecordSpec r;
    for (std::size_t i = 0; i < v.shape.size(); ++i)
        r.shape[6 - v.shape.size() + i] = static_cast<std::int32_t>(v.shape[i]);
    r.element_size = static_cast<std::int32_t>(dtype_size(v.stored_type()));
    r.offset = static_cast<std::int32_t>(placement.address);
    r.region = placement.region;
    return r;
}

class Compilation {
  public:
    Compilation(const Graph& graph, const CompileOptions& options)
        : graph_(graph), options_(options), program_(options.method) {}

    host::Result<Compiled> run() {
        const Partition parts = partition(graph_);
        TRY(check_supported(graph_, parts, options_.unsupported));
        TRY_ASSIGN(const std::vector<Emitted> delegates, emit_all(parts));
        choose_io();
        for (const ValueId id : graph_.inputs) program_.input(program_input(id));
        std::size_t next_delegate = 0;
        for (const Part& part : parts.parts) {
            if (part.on_npu) {
                result_.report.npu_nodes += static_cast<std::uint32_t>(part.nodes.size());
                call(part, delegates[next_delegate++]);
                continue;
            }
            for (const std::uint32_t n : part.nodes) {
                if (skipped_.contains(n) || parts.absorbed[n]) continue;
                const Node& node = graph_.nodes[n];
                if (node.op != Op::Requantize) result_.report.cpu_nodes.push_back({n, parts.reasons[n]});
                const auto beyond = parts.channels_first.find(n);
                TRY(call_cpu_operator(program_, graph_, node,
                                      beyond == parts.channels_first.end() ? ChannelsFirst() : beyond->second,
                                      [&](ValueId v) { return value(v); }));
            }
        }
        for (const ValueId id : graph_.outputs) program_.output(program_output(id));
        write();
        for (const auto& [id, index] : values_) result_.report.program_values.emplace_back(index, id);
        return std::move(result_);
    }

    /// After run(): the SRAM that the part that needs most needs, if that is what was lacking.
    [[nodiscard]] const SramNeed& need() const { return need_; }

    [[nodiscard]] host::Error too_little_sram(const SramNeed& need) const {
        return host::Error(
            ErrorCode::OutOfResources,
            fmt::format("{}{} bytes of SRAM are required, {} are available; most is needed at {}",
                        need.found ? "" : "at least ", need.bytes, options_.target.sram_bytes, need.peak_step));
    }

  private:
    // Quantized inputs and outputs: the quantize and dequantize nodes at the ends go, the integers come in and out.
    void choose_io() {
        if (options_.io != IoType::Quantized) return;
        const Uses uses = find_uses(graph_);
        for (const ValueId id : graph_.inputs) {
            if (graph_[id].quantization || uses.readers[id].size() != 1) continue;
            const std::uint32_t n = uses.readers[id][0];
            const Node& node = graph_.nodes[n];
            if (node.op != Op::Requantize || !graph_[node.outputs[0]].quantization ||
                std::count(graph_.outputs.begin(), graph_.outputs.end(), id) != 0)
                continue;
            skipped_.insert(n);
            replaced_[id] = node.outputs[0];
        }
        for (const ValueId id : graph_.outputs) {
            if (graph_[id].quantization || uses.producer[id] < 0 || !uses.readers[id].empty()) continue;
            const auto n = static_cast<std::uint32_t>(uses.producer[id]);
            const Node& node = graph_.nodes[n];
            if (node.op != Op::Requantize || !graph_[node.inputs[0]].quantization) continue;
            skipped_.insert(n);
            replaced_[id] = node.inputs[0];
        }
    }

    std::int32_t value(ValueId id) {
        const auto [at, added] = values_.try_emplace(id, 0);
        if (!added) return at->second;
        const Value& v = graph_[id];
        at->second = v.is_constant() ? program_.constant(v.stored_type(), v.shape, *v.constant)
                                     : program_.tensor(v.stored_type(), v.shape);
        return at->second;
    }

    // The program's input for a graph input, with a conversion behind it where the types differ.
    std::int32_t program_input(ValueId id) {
        const auto found = replaced_.find(id);
        const ValueId real = found == replaced_.end() ? id : found->second;
        const Value& v = graph_[real];
        if (v.quantization && options_.io == IoType::Float) {
            const std::int32_t in = program_.tensor(DType::Float32, v.shape);
            call_quantize(program_, in, *v.quantization, value(real));
            return in;
        }
        if (v.quantization) describe_io("input", input_count_, *v.quantization);
        ++input_count_;
        return value(real);
    }
    std::int32_t program_output(ValueId id) {
        const auto found = replaced_.find(id);
        const ValueId real = found == replaced_.end() ? id : found->second;
        const Value& v = graph_[real];
        if (v.quantization && options_.io == IoType::Float) {
            const std::int32_t out = program_.tensor(DType::Float32, v.shape);
            call_dequantize(program_, value(real), *v.quantization, out);
            return out;
        }
        if (v.quantization) describe_io("output", output_count_, *v.quantization);
        ++output_count_;
        return value(real);
    }

    // Scale and zero point as constant methods (pte-format, section 5.5).
    void describe_io(const char* side, std::size_t index, const Quantization& q) {
        const auto method = [&](const char* what, pte::host::ValueSpec v) {
            extra_methods_.push_back(
                pte::host::constant_method_spec(fmt::format("{}{}_{}", side, index, what), std::move(v)));
        };
        method("scale", q.scales[0]);
        method("zp", std::int64_t{q.zero_points[0]});
        method("quant_min", q.min);
        method("quant_max", q.max);
        method("dtype", std::int64_t{scalar_type(q.type)});
    }

    struct Emitted {
        Plan plan;
        std::vector<EmittedOperation> operations;
        EncodedStream stream;
    };

    // `taken`: of the SRAM, by what is not this part's.
    host::Result<Emitted> emit(const Part& part, OutputPlaces output_places, std::uint64_t taken, SramNeed& need) {
        TRY_ASSIGN(Network network, lower(graph_, part.nodes, part.inputs, part.outputs));
        Target target = options_.target;
        target.sram_bytes -= std::min(target.sram_bytes, taken);
        const Judge judge = [&](const Plan& tried) {
            std::vector<npu::Operation> ops;
            for (const EmittedOperation& e : emit_operations(tried, target)) ops.push_back(e.op);
            return npu_model::network_cost(ops, target.config).cycles_total;
        };
        TRY_ASSIGN(Plan plan, schedule(std::move(network), target, judge, output_places, &need));
        // Sizes and places in a program are 31-bit numbers.
        for (const std::uint64_t bytes : {plan.arena_bytes, plan.fast_bytes, std::uint64_t{plan.constants.size()}})
            if (bytes > INT32_MAX)
                return host::failure(ErrorCode::OutOfResources,
                                     "{} bytes of memory would be needed, at most {} are possible", bytes, INT32_MAX);
        std::vector<EmittedOperation> operations = emit_operations(plan, options_.target);
        TRY_ASSIGN(EncodedStream stream, encode_operations(operations, options_.target));
        return Emitted{std::move(plan), std::move(operations), std::move(stream)};
    }

    // Nothing where SRAM was lacking, which need_ knows then: the parts behind it may need still more.
    host::Result<std::optional<Emitted>> emit(const Part& part, std::uint64_t taken) {
        SramNeed need;
        auto made = emit(part, OutputPlaces::Anywhere, taken, need);
        if (made && made->plan.copy_on_input && may_look_untouched(made->plan, made->stream, options_.target))
            made = emit(part, OutputPlaces::NotOnInputs, taken, need);
        if (made) return std::move(*made);
        if (need.bytes == 0) return std::unexpected(std::move(made.error()));
        need.bytes += taken;
        if (need.bytes > need_.bytes) need_ = std::move(need);
        return std::nullopt;
    }

    // Every part for the NPU, in order.
    host::Result<std::vector<Emitted>> emit_all(const Partition& parts) {
        std::vector<const Part*> which;
        std::vector<Emitted> all;
        for (const Part& part : parts.parts) {
            if (!part.on_npu) continue;
            TRY_ASSIGN(auto made, emit(part, 0));
            if (!made) continue;
            which.push_back(&part);
            all.push_back(std::move(*made));
        }
        const Target& target = options_.target;
        if (need_.bytes == 0 && target.mode == MemoryMode::SramOnly && target.sram_bytes < kUnlimited)
            TRY(share_sram(which, all));
        if (need_.bytes != 0) return std::unexpected(too_little_sram(need_));
        return all;
    }

    // Where all is in SRAM, the constants of all delegates lie there at once, beside the arena of the one that runs.
    // Each had the limit to itself; those for which it does not suffice with the others' constants are made anew.
    host::Result<void> share_sram(const std::vector<const Part*>& which, std::vector<Emitted>& all) {
        constexpr unsigned kMostRounds = 4;  // another plan's weights may be longer by some bytes
        for (unsigned round = 0;; ++round) {
            std::uint64_t constants = 0;
            for (const Emitted& e : all) constants += e.plan.constants.size();
            bool fits = true;
            for (std::size_t i = 0; i < all.size(); ++i) {
                const Plan& plan = all[i].plan;
                const std::uint64_t bytes = plan.arena_bytes + constants;
                if (bytes <= options_.target.sram_bytes) continue;
                fits = false;
                if (round == kMostRounds) {
                    if (bytes > need_.bytes) need_ = {bytes, true, plan.peak_step};
                    continue;
                }
                const std::uint64_t own = plan.constants.size();
                TRY_ASSIGN(auto made, emit(*which[i], constants - own));
                if (!made) continue;
                all[i] = std::move(*made);
                constants += all[i].plan.constants.size() - own;
            }
            if (fits || need_.bytes != 0) return {};
        }
    }

    void call(const Part& part, const Emitted& made) {
        const auto& [plan, operations, stream] = made;

        pte::host::DelegateBlobSpec blob;
        const npu::Hardware& hw = *options_.target.hardware;
        blob.command_data = pte::host::write_command_data(hw.config, hw.id, stream.words);
        blob.weights = plan.constants;
        blob.scratch_size = static_cast<std::uint32_t>(plan.arena_bytes);
        std::vector<std::int32_t> arguments;
        for (std::size_t i = 0; i < part.inputs.size(); ++i) {
            blob.inputs.push_back(io_record(graph_, part.inputs[i], plan.tensors[plan.network.inputs[i]]));
            arguments.push_back(value(part.inputs[i]));
        }
        for (std::size_t i = 0; i < part.outputs.size(); ++i) {
            blob.outputs.push_back(io_record(graph_, part.outputs[i], plan.tensors[plan.network.outputs[i]]));
            arguments.push_back(value(part.outputs[i]));
        }
        pte::host::DelegateSpec spec;
        spec.payload = pte::host::write_delegate_blob(blob);
        spec.compile_specs = {
            {"target", options_.target.npu},
            {"compile_flags", fmt::format("--system-config={} --memory-mode={} --talpa", options_.target.system,
                                          memory_mode_name(options_.target.mode))}};
        program_.call_delegate(std::move(spec), std::move(arguments));
        report(plan, operations, stream);
    }

    void report(const Plan& plan, const std::vector<EmittedOperation>& operations, const EncodedStream& stream) {
        DelegateReport r;
        std::vector<npu::Operation> ops;
        for (const EmittedOperation& e : operations) ops.push_back(e.op);
        const npu_model::NetworkCost cost = npu_model::network_cost(ops, options_.target.config);
        r.cycles = cost.cycles_total;
        r.macs = cost.macs;
        r.command_bytes = stream.words.size() * 4;
        r.constant_bytes = plan.constants.size();
        r.arena_bytes = plan.arena_bytes;
        r.fast_bytes = plan.fast_bytes;
        r.steps = static_cast<std::uint32_t>(plan.network.steps.size());
        r.operations = static_cast<std::uint32_t>(operations.size());
        r.peak_step = plan.peak_step;
        for (std::size_t i = 0; i < plan.network.steps.size(); ++i) {
            if (!plan.network.steps[i].filter) continue;
            r.plain_weight_bytes += plan.network.steps[i].filter->shape.size();
            for (const npu::Range& w : plan.filters[i].weights) r.weight_bytes += w.size;
        }
        for (std::size_t i = 0; i < operations.size(); ++i) {
            if (operations[i].step < 0) continue;
            const Step& s = plan.network.steps[static_cast<std::size_t>(operations[i].step)];
            OperationOrigin origin{static_cast<std::uint32_t>(result_.report.delegates.size()), stream.offsets[i],
                                   static_cast<std::uint32_t>(operations[i].step), s.node, describe(plan.network, s)};
            if (s.op.kind == npu::OpKind::Dma)
                origin.copied = {s.ifm.tensor, s.ofm.tensor};
            else if (operations[i].op.kind != npu::OpKind::Dma)
                origin.written = {s.ofm.tensor, s.ofm.offset + operations[i].first_row * s.ofm.stride_y, s.ofm.stride_y,
                                  s.ofm.stride_x};
            result_.report.origins.push_back(std::move(origin));
        }
        DelegateMap map{.tensor_elements = {}, .values = plan.network.values};
        for (const Tensor& t : plan.network.tensors) map.tensor_elements.push_back(t.elements());
        result_.report.maps.push_back(std::move(map));
        if (options_.dump_after == "lower" || options_.dump_after == "schedule") {
            result_.report.dump += fmt::format("delegate {}\n", result_.report.delegates.size());
            for (std::size_t i = 0; i < plan.network.steps.size(); ++i)
                result_.report.dump += fmt::format("  {:>4}  {}\n", i, describe(plan.network, plan.network.steps[i]));
        }
        if (options_.dump_after == "schedule" || options_.dump_after == "emit") {
            for (std::size_t i = 0; i < operations.size(); ++i) {
                const auto& e = operations[i];
                const auto& c = cost.operations[i];
                result_.report.dump +=
                    fmt::format("  {:>9} {:>8} {:<7} {:<10} step {:>3}  {}x{}x{}  block {}x{}x{} dep {}\n", c.start,
                                c.end - c.start, npu_model::bound_name(c.cost.bound), npu::op_kind_name(e.op.kind),
                                e.step, e.op.ofm.height, e.op.ofm.width, e.op.ofm.depth, e.op.block_height,
                                e.op.block_width, e.op.block_depth, unsigned{e.op.blockdep});
            }
        }
        result_.report.delegates.push_back(r);
    }

    void write() {
        pte::host::ProgramSpec spec;
        spec.methods.push_back(program_.finish());
        for (auto& m : extra_methods_) spec.methods.push_back(std::move(m));
        for (const auto& [name, text] : options_.metadata)
            spec.methods.push_back(pte::host::constant_method_spec(name, text));
        // A list is an output for each number, as ExecuTorch's exporter has it: its loader knows no output that is a
        // list.
        for (const auto& [name, numbers] : options_.number_metadata) {
            pte::host::MethodSpec list;
            list.name = name;
            for (const double number : numbers) {
                list.outputs.push_back(static_cast<std::int32_t>(list.values.size()));
                list.values.emplace_back(number);
            }
            spec.methods.push_back(std::move(list));
        }
        spec.constants = program_.take_constants();
        result_.pte = pte::host::write_program(spec);
    }

    const Graph& graph_;
    const CompileOptions& options_;
    ProgramBuilder program_;
    Compiled result_;
    std::map<ValueId, std::int32_t> values_;
    std::map<ValueId, ValueId> replaced_;
    std::set<std::uint32_t> skipped_;
    std::vector<pte::host::MethodSpec> extra_methods_;
    std::size_t input_count_ = 0, output_count_ = 0;
    SramNeed need_;
};

}  // namespace

host::Result<Compiled> compile(const Graph& graph, const CompileOptions& options) {
    Compilation compilation(graph, options);
    auto compiled = compilation.run();
    SramNeed need = compilation.need();
    if (compiled || !need.found) return compiled;
    // Each part was asked alone, and one whose output may look untouched is scheduled a second time. What is said to
    // be required is what all of it was compiled with.
    constexpr unsigned kMostTries = 8;
    for (unsigned i = 0; need.found; ++i) {
        CompileOptions more = options;
        more.target.sram_bytes = need.bytes;
        Compilation with_more(graph, more);
        if (with_more.run()) break;
        // Ended for another reason, or not within these tries: nothing proves that it suffices.
        const bool lacks_sram = with_more.need().bytes != 0;
        if (lacks_sram) need = with_more.need();
        if (!lacks_sram || i + 1 == kMostTries) need.found = false;
    }
    return std::unexpected(compilation.too_little_sram(need));
}

}  // namespace talpa::compiler
