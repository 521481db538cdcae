#include "compiler/floats/executor.h"

#include <algorithm>

#include "compiler/floats/hot_kernels.h"
#include "compiler/floats/kernel.h"
#include "compiler/graph/constant.h"

namespace talpa::compiler {

namespace {

/// Each number by up to a tenth of its step, either way.
void move(const Value& value, std::vector<float>& numbers, std::uint32_t& random) {
    if (!value.quantization || !value.quantization->per_tensor()) return;
    const float most = 0.1F * static_cast<float>(value.quantization->scales[0]);
    for (float& x : numbers) {
        random ^= random << 13;
        random ^= random >> 17;
        random ^= random << 5;
        x += (static_cast<float>(random) * 0x1p-31F - 1.0F) * most;
    }
}

bool weights_are_packed(const Node& node) {
    return node.op == Op::Conv2d || node.op == Op::FullyConnected;
}

}  // namespace

host::Result<std::vector<float>> real_values(const Value& value) {
    const auto count = static_cast<std::size_t>(element_count(value.shape));
    if (!value.constant || value.constant->size() != count * dtype_size(value.stored_type()))
        return host::failure(ErrorCode::InvalidArgument, "constant '{}' has not {} elements of {}", value.name, count,
                             dtype_name(value.stored_type()));
    return real_numbers(value);
}

void round_to_quantization(const Value& value, std::span<float> numbers) {
    if (!value.quantization || !value.quantization->per_tensor()) return;
    const auto& q = *value.quantization;
    const auto zero = q.zero_points[0];
    hot_kernels().round(numbers.data(), numbers.size(), static_cast<float>(q.scales[0]),
                        static_cast<float>(q.min - zero), static_cast<float>(q.max - zero));
}

struct FloatExecutor::Prepared {
    const Graph* graph = nullptr;
    Rounding rounding = Rounding::None;
    std::vector<std::vector<float>> constants;  ///< by value; empty where computed, or only needed packed
    std::vector<std::vector<float>> packed;     ///< by node
    std::vector<Kernel> kernels;                ///< by node
    std::vector<std::vector<ValueId>> dead;     ///< values that no later node reads, by node
};

FloatExecutor::FloatExecutor(std::unique_ptr<Prepared> prepared) : prepared_(std::move(prepared)) {}
FloatExecutor::FloatExecutor(FloatExecutor&&) noexcept = default;
FloatExecutor& FloatExecutor::operator=(FloatExecutor&&) noexcept = default;
FloatExecutor::~FloatExecutor() = default;

host::Result<FloatExecutor> FloatExecutor::create(const Graph& graph, Rounding rounding) {
    auto p = std::make_unique<Prepared>();
    p->graph = &graph;
    p->rounding = rounding;
    p->constants.resize(graph.values.size());
    p->packed.resize(graph.nodes.size());
    p->dead.resize(graph.nodes.size());
    const auto uses = find_uses(graph);
    for (ValueId id = 0; id < graph.values.size(); ++id)
        if (graph[id].is_constant()) {
            TRY_ASSIGN(p->constants[id], real_values(graph[id]));
        }
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const auto& node = graph.nodes[n];
        const auto kernel = find_kernel(node.op);
        if (kernel == nullptr || node.outputs.size() != 1)
            return host::failure(ErrorCode::NotSupported, "node '{}': {} has no float kernel", node.source.node,
                                 op_name(node.op));
        p->kernels.push_back(kernel);
        if (weights_are_packed(node) && graph[node.inputs[1]].is_constant())
            p->packed[n] = pack_weights(graph, node, p->constants[node.inputs[1]]);
    }
    for (ValueId id = 0; id < graph.values.size(); ++id) {
        const auto& readers = uses.readers[id];
        if (graph[id].is_constant()) {
            const bool only_packed = !readers.empty() && std::ranges::all_of(readers, [&](std::uint32_t n) {
                return !p->packed[n].empty() && graph.nodes[n].inputs[1] == id;
            });
            if (only_packed) p->constants[id] = {};
        } else if (!readers.empty() && std::ranges::find(graph.outputs, id) == graph.outputs.end()) {
            p->dead[readers.back()].push_back(id);
        }
    }
    return FloatExecutor(std::move(p));
}

host::Result<std::vector<std::vector<float>>> FloatExecutor::run(std::span<const std::vector<float>> inputs,
                                                                 Workspace& workspace, const ValueObserver& observer,
                                                                 std::uint32_t dither) const {
    const auto& p = *prepared_;
    const auto& graph = *p.graph;
    if (inputs.size() != graph.inputs.size())
        return host::failure(ErrorCode::InvalidArgument, "the model takes {} inputs, {} were given",
                             graph.inputs.size(), inputs.size());
    std::vector<std::vector<float>> buffers(graph.values.size());
    const auto take = [&](std::size_t size) {
        // The smallest free buffer that holds it: fresh pages cost more than a search through a few.
        auto best = workspace.free_.end();
        for (auto it = workspace.free_.begin(); it != workspace.free_.end(); ++it)
            if (it->capacity() >= size && (best == workspace.free_.end() || it->capacity() < best->capacity()))
                best = it;
        std::vector<float> buffer;
        if (best != workspace.free_.end()) {
            buffer = std::move(*best);
            workspace.free_.erase(best);
        }
        buffer.resize(size);
        return buffer;
    };
    std::uint32_t random = dither;
    const auto finish = [&](ValueId id) {
        if (dither != 0) move(graph[id], buffers[id], random);
        if (p.rounding == Rounding::Quantized) round_to_quantization(graph[id], buffers[id]);
        if (observer) observer(id, buffers[id]);
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const auto id = graph.inputs[i];
        if (inputs[i].size() != static_cast<std::size_t>(element_count(graph[id].shape)))
            return host::failure(ErrorCode::InvalidArgument, "input '{}' has {} elements, {} were given",
                                 graph[id].name, element_count(graph[id].shape), inputs[i].size());
        buffers[id] = take(inputs[i].size());
        std::ranges::copy(inputs[i], buffers[id].begin());
        finish(id);
    }
    std::vector<float> scratch;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const auto& node = graph.nodes[n];
        const auto result = node.outputs[0];
        buffers[result] = take(static_cast<std::size_t>(element_count(graph[result].shape)));
        KernelCall call{.graph = graph,
                        .node = node,
                        .inputs = {},
                        .output = buffers[result],
                        .packed = &p.packed[n],
                        .scratch = scratch};
        for (const auto id : node.inputs)
            call.inputs.push_back(id == kNoValue            ? std::span<const float>{}
                                  : graph[id].is_constant() ? std::span<const float>(p.constants[id])
                                                            : std::span<const float>(buffers[id]));
        p.kernels[n](call);
        finish(result);
        for (const auto id : p.dead[n]) workspace.free_.push_back(std::move(buffers[id]));
    }
    std::vector<std::vector<float>> outputs;
    for (const auto id : graph.outputs) {
        const auto& from = graph[id].is_constant() ? p.constants[id] : buffers[id];
        outputs.emplace_back(from.begin(), from.end());
    }
    for (auto& buffer : buffers)
        if (buffer.capacity() > 0) workspace.free_.push_back(std::move(buffer));
    return outputs;
}

}  // namespace talpa::compiler
