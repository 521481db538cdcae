// Operators over whole axes: sums, extremes, softmax, norms. (pte-format, section 6)
#include "compiler/backend/cpu_call.h"

namespace talpa::compiler {
namespace {

/// Sums take a type between the axes and the result, extremes do not.
void call_reduction(CpuCall& c, const char* name, bool with_type) {
    const auto& r = c.as<ReduceAttr>();
    const std::vector<std::int64_t> axes(r.axes.begin(), r.axes.end());
    const std::int32_t x = c.operand(0), to = c.out();
    std::vector<std::int32_t> args{x, c.p.integers(axes), c.p.boolean(r.keep_dims)};
    if (with_type) args.push_back(c.p.null());
    args.insert(args.end(), {to, to});
    c.p.call(name, args);
    c.finish();
}

void call_sum_over(CpuCall& c, const char* name) {
    call_reduction(c, name, true);
}

void call_extreme(CpuCall& c, const char* name) {
    call_reduction(c, name, false);
}

void call_softmax(CpuCall& c, const char* name) {
    const std::int32_t x = c.operand(0), to = c.out();
    c.p.call(name, {x, c.p.number(c.as<AxisAttr>().axis), c.p.boolean(false), to, to});
    c.finish();
}

void call_cumsum(CpuCall& c, const char*) {
    const std::int32_t x = c.operand(0), to = c.out();
    c.p.call("aten::cumsum.out", {x, c.p.number(c.as<ReduceAttr>().axes[0]), c.p.null(), to, to});
    c.finish();
}

void call_argmax(CpuCall& c, const char*) {
    const std::int32_t x = c.operand(0);
    const auto& r = c.as<ReduceAttr>();
    const Value& out = c.result();
    const std::int32_t wide = out.type == DType::Int64 ? c.raw_result() : c.p.tensor(DType::Int64, out.shape);
    c.p.call("aten::argmax.out", {x, c.p.number(r.axes[0]), c.p.boolean(r.keep_dims), wide, wide});
    if (out.type == DType::Int64) return;
    const std::int32_t to = c.raw_result();
    c.p.call("aten::_to_copy.out", {wide, c.p.boolean(false), c.p.null(), to, to});
}

void call_group_norm(CpuCall& c, const char*) {
    const auto& attr = c.as<NormAttr>();
    const Shape& s = c.value(0).shape;
    // Channels first, and back.
    std::vector<std::int64_t> first{0, static_cast<std::int64_t>(s.size()) - 1}, last{0};
    Shape turned{s[0], s.back()};
    for (std::size_t d = 1; d + 1 < s.size(); ++d) {
        first.push_back(static_cast<std::int64_t>(d));
        last.push_back(static_cast<std::int64_t>(d) + 1);
        turned.push_back(s[d]);
    }
    last.push_back(1);
    const std::int32_t x = c.operand(0), g = c.optional_operand(1), b = c.optional_operand(2), in = c.temporary(turned),
                       made = c.temporary(turned), mean = c.temporary({s[0], attr.groups}),
                       deviation = c.temporary({s[0], attr.groups}), to = c.out();
    c.p.call("aten::permute_copy.out", {x, c.p.integers(first), in, in});
    c.p.call(
        "aten::native_group_norm.out",
        {in, g, b, c.p.number(s[0]), c.p.number(s.back()), c.p.number(element_count(s) / (s[0] * s.back())),
         c.p.number(attr.groups), c.p.real(attr.epsilon), made, mean, deviation, c.p.tensors({made, mean, deviation})});
    c.p.call("aten::permute_copy.out", {made, c.p.integers(last), to, to});
    c.finish();
}

void call_layer_norm(CpuCall& c, const char*) {
    const auto& attr = c.as<NormAttr>();
    const Shape& s = c.value(0).shape;
    std::vector<std::int64_t> normalized;
    Shape reduced = s;
    for (const int axis : attr.axes) {
        normalized.push_back(s[static_cast<std::size_t>(axis)]);
        reduced[static_cast<std::size_t>(axis)] = 1;
    }
    const std::int32_t x = c.operand(0), g = c.optional_operand(1), b = c.optional_operand(2), to = c.out(),
                       mean = c.temporary(reduced), deviation = c.temporary(reduced);
    c.p.call("aten::native_layer_norm.out", {x, c.p.integers(normalized), g, b, c.p.real(attr.epsilon), to, mean,
                                             deviation, c.p.tensors({to, mean, deviation})});
    c.finish();
}

constexpr CpuOperator kReductions[] = {
    {Op::Mean, call_sum_over, "aten::mean.out"},
    {Op::Sum, call_sum_over, "aten::sum.IntList_out"},
    {Op::ReduceMax, call_extreme, "aten::amax.out"},
    {Op::ReduceMin, call_extreme, "aten::amin.out"},
    {Op::Softmax, call_softmax, "aten::_softmax.out"},
    {Op::LogSoftmax, call_softmax, "aten::_log_softmax.out"},
    {Op::CumSum, call_cumsum},
    {Op::ArgMax, call_argmax},
    {Op::GroupNorm, call_group_norm},
    {Op::LayerNorm, call_layer_norm},
};

}  // namespace

std::span<const CpuOperator> cpu_reduction_operators() {
    return kReductions;
}

}  // namespace talpa::compiler
