// Operators that move elements, as they are stored where both sides store alike, and that change how they are stored.
// (pte-format, section 6)
#include <fmt/format.h>

#include "compiler/backend/cpu_call.h"

namespace talpa::compiler {
namespace {

std::optional<std::string> requantize_obstacle(const Graph& graph, const Node& node) {
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    for (const Value* v : {&in, &out})
        if (v->quantization && !v->quantization->per_tensor()) return "it is quantized per channel";
    return std::nullopt;
}

void call_requantize(CpuCall& c, const char*) {
    const Value &in = c.value(0), &out = c.result();
    if (!in.quantization && out.quantization) {
        call_quantize(c.p, c.raw(0), *out.quantization, c.raw_result());
    } else if (in.quantization && !out.quantization) {
        call_dequantize(c.p, c.raw(0), *in.quantization, c.raw_result());
    } else {
        const std::int32_t t = c.temporary(in.shape);
        call_dequantize(c.p, c.raw(0), *in.quantization, t);
        call_quantize(c.p, t, *out.quantization, c.raw_result());
    }
}

std::optional<std::string> pad_obstacle(const Graph&, const Node& node) {
    if (node.as<PadAttr>().mode != PadAttr::Mode::Constant) return "it pads with reflections";
    return std::nullopt;
}

void call_pad(CpuCall& c, const char*) {
    const auto& a = c.as<PadAttr>();
    std::vector<std::int64_t> pads;  // last dimension first
    for (std::size_t d = a.before.size(); d-- > 0;) pads.insert(pads.end(), {a.before[d], a.after[d]});
    const std::int32_t x = c.operand(0), to = c.out();
    c.p.call("aten::constant_pad_nd.out", {x, c.p.integers(pads), c.p.real(a.value), to, to});
    c.finish();
}

void call_concat(CpuCall& c, const char*) {
    std::vector<std::int32_t> parts;
    for (std::size_t i = 0; i < c.node().inputs.size(); ++i) parts.push_back(c.operand(i));
    const std::int32_t list = c.p.tensors(parts), to = c.out();
    c.p.call("aten::cat.out", {list, c.p.number(c.as<AxisAttr>().axis), to, to});
    c.finish();
}

/// One call for each dimension that is cut.
void call_slice(CpuCall& c, const char*) {
    const auto& a = c.as<SliceAttr>();
    std::int32_t x = c.moved();
    const std::int32_t out = c.moved_out();
    Shape shape = c.value(0).shape;
    std::vector<std::size_t> cut;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (a.steps[d] != 1 || a.starts[d] != 0 || a.ends[d] != shape[d]) cut.push_back(d);
    if (cut.empty()) c.p.call("aten::clone.out", {x, c.p.null(), out, out});
    for (const std::size_t d : cut) {
        shape[d] = c.result().shape[d];
        const std::int32_t to = d == cut.back() ? out : c.p.tensor(c.moved_type(), shape);
        c.p.call("aten::slice_copy.Tensor_out", {x, c.p.number(static_cast<std::int64_t>(d)), c.p.number(a.starts[d]),
                                                 c.p.number(a.ends[d]), c.p.number(a.steps[d]), to, to});
        x = to;
    }
    c.finish();
}

void call_reshape(CpuCall& c, const char*) {
    const std::int32_t x = c.moved(), to = c.moved_out();
    c.p.call("aten::view_copy.out", {x, c.p.integers(c.result().shape), to, to});
    c.finish();
}

void call_permute(CpuCall& c, const char*) {
    const auto& order = c.as<PermuteAttr>().order;
    const std::int32_t x = c.moved(), to = c.moved_out();
    c.p.call("aten::permute_copy.out",
             {x, c.p.integers(std::vector<std::int64_t>(order.begin(), order.end())), to, to});
    c.finish();
}

void call_expand(CpuCall& c, const char*) {
    const std::int32_t x = c.moved(), to = c.moved_out();
    c.p.call("aten::expand_copy.out", {x, c.p.integers(c.result().shape), c.p.boolean(false), to, to});
    c.finish();
}

std::optional<std::string> gather_obstacle(const Graph& graph, const Node& node) {
    const Value& index = graph[node.inputs[1]];
    if (index.shape.size() != 1) return fmt::format("its indices have {} dimensions", index.shape.size());
    if (index.quantization || (index.type != DType::Int64 && index.type != DType::Int32))
        return fmt::format("its indices are {}", dtype_name(index.stored_type()));
    return std::nullopt;
}

void call_gather(CpuCall& c, const char*) {
    const std::int32_t x = c.moved(), index = c.raw(1), to = c.moved_out();
    c.p.call("aten::index_select.out", {x, c.p.number(c.as<AxisAttr>().axis), index, to, to});
    c.finish();
}

constexpr CpuOperator kMovement[] = {
    {.op = Op::Requantize, .call = call_requantize, .obstacle = requantize_obstacle},
    {.op = Op::Pad, .call = call_pad, .obstacle = pad_obstacle},
    {.op = Op::Concat, .call = call_concat},
    {.op = Op::Slice, .call = call_slice},
    {.op = Op::Reshape, .call = call_reshape},
    {.op = Op::Permute, .call = call_permute},
    {.op = Op::Expand, .call = call_expand},
    {.op = Op::Gather, .call = call_gather, .obstacle = gather_obstacle},
};

}  // namespace

std::span<const CpuOperator> cpu_movement_operators() {
    return kMovement;
}

}  // namespace talpa::compiler
