// Add, subtract, multiply, minimum, maximum. (ethos-u65, sections 5.6, 5.7, 9.5 and 9.7)
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

constexpr unsigned kPreShift8 = 20;  // P of section 5.6 for 8 bits

Clamp clamp_of(const Node& node) {
    const auto* attr = std::get_if<BinaryAttr>(&node.attributes);
    return attr != nullptr ? attr->clamp : Clamp{};
}

// LiteRT's: operands of one scale need no multiplier of their own if the result's has its low bits free.
void tflite_scaling(npu::Operation& op, double a, double b, double out) {
    const double larger = std::max(a, b), smaller = std::min(a, b);
    op.ofm_rounding = op.ifm_rounding = npu::Rounding::Tfl;
    if (op.ifm.type.bytes == 2 && a == b) {
        op.ofm_scale = to_scale(2 * larger / (out * 65536.0), Arithmetic::TfLite);
        op.ofm_scale.shift = static_cast<std::uint8_t>(std::max(1, int{op.ofm_scale.shift}) - 1);
        op.opa_scale = {1u << 14, 0};
        op.opb_scale = 1u << 14;
        return;
    }
    if (a == b) {
        const npu::Scale s = to_scale(2 * larger / (out * 65536.0), Arithmetic::TfLite);
        if ((s.multiplier & 0xFFF) == 0) {
            op.ofm_scale = s;
            op.opa_scale = {1u << 15, 0};
            op.opb_scale = 1u << 15;
            return;
        }
    }
    const double pre = op.ifm.type.bytes == 2 ? 1 << 15 : 1 << kPreShift8;
    op.ofm_scale = to_scale(2 * larger / (out * pre), Arithmetic::TfLite);
    // The factor holds the 2^P that the hardware's own shift by P takes back (section 5.6).
    op.opa_scale = to_scale(pre * smaller / (2 * larger), Arithmetic::TfLite);
    op.operand_scaling = a <= b ? npu::OperandScaling::Opa32 : npu::OperandScaling::Opb32;
    op.opb_scale = 0;
}

// PT2E's: both operands in units of twice the larger scale over 2^20. The larger is then shifted by 19, which the
// operand scaling does to the operand that it does not scale: no approximation.
void tosa_scaling(npu::Operation& op, double a, double b, double out) {
    const double unit = 2 * std::max(a, b) / (1 << kPreShift8);
    op.operand_scaling = a <= b ? npu::OperandScaling::Opa32 : npu::OperandScaling::Opb32;
    op.opa_scale = to_scale(std::min(a, b) / unit, Arithmetic::Tosa);
    op.opb_scale = 0;
    op.ofm_scale = to_scale(unit / out, Arithmetic::Tosa);
    op.ofm_rounding = op.ifm_rounding = npu::Rounding::Natural;
}

// A 32-bit number as memory that every position reads.
Operand word_constant(Lowerer& l, const Shape& shape, std::int32_t number) {
    Operand o;
    o.type = {4, true};
    std::vector<std::uint8_t> bytes(4);
    std::memcpy(bytes.data(), &number, 4);
    o.place = {l.constant_tensor("multiplier", o.type, {1}, std::move(bytes)), 0,
               std::vector<std::int64_t>(shape.size(), 0)};
    return o;
}

// 16 bits: operands in units of twice the larger scale over 2^12. Where one scale is a power of two times the other,
// both are whole numbers in a larger unit, so one operation has all of it: nothing is rounded before the sum. False
// otherwise.
bool exact_scaling(npu::Operation& op, double a, double b, double out) {
    int exponent = 0;
    const double larger = std::max(a, b);
    constexpr int kUnits = 11;  // the larger operand times 2^11 is in the framework's unit
    if (std::frexp(std::min(a, b) / larger, &exponent) != 0.5 || 1 - exponent > kUnits) return false;
    const int apart = 1 - exponent;
    const npu::Scale s = to_scale(2 * larger / (1 << (kUnits + 1)) / out, Arithmetic::Tosa);
    if (s.shift <= kUnits - apart) return false;
    op.opa_scale = {a >= b ? 1u << apart : 1u, 0};
    op.opb_scale = b >= a ? 1u << apart : 1u;
    op.ofm_scale = {s.multiplier, static_cast<std::uint8_t>(s.shift - (kUnits - apart))};
    return true;
}

// 16 bits, else: the pre-shift of the hardware is not the framework's 2^12, so every rescale is an operation of its
// own.
host::Result<void> add_in_words(Lowerer& l, const Node& node, npu::OpKind kind, Limits limits) {
    const Graph& graph = l.graph();
    const Value &a = graph[node.inputs[0]], &b = graph[node.inputs[1]], &out = graph[node.outputs[0]];
    const double sa = a.quantization->scales[0], sb = b.quantization->scales[0];
    const double unit = 2 * std::max(sa, sb) / (1 << 12);
    const npu::ElementType word{4, true};
    const auto widened = [&](ValueId id, double factor) -> host::Result<Operand> {
        const Value& v = graph[id];
        Operand o;
        o.type = word;
        const TensorId t = l.new_tensor(v.name + "/int32", word, v.shape);
        const Place p = l.dense_place(t, v.shape);
        TRY(l.rescale(v.shape, l.operand(id, v.shape), p, word, 0, l.scale(factor), {}));
        o.place = broadcast(p, v.shape, out.shape);
        return o;
    };
    TRY_ASSIGN(const Operand wa, widened(node.inputs[0], sa / unit));
    TRY_ASSIGN(const Operand wb, widened(node.inputs[1], sb / unit));
    const Place sum = l.dense_place(l.new_tensor(out.name + "/int32", word, out.shape), out.shape);
    TRY(l.elementwise(plain_operation(kind, word, word), out.shape, sum, 0, wa, wb));
    const npu::Scale s = l.scale(unit / out.quantization->scales[0]);
    npu::Operation mul = plain_operation(npu::OpKind::Mul, word, element_type(out.stored_type()));
    mul.ofm_scale = {1, s.shift};
    mul.ofm_rounding = l.rounding();
    set_limits(mul, element_type(out.stored_type()), limits);
    Operand from;
    from.type = word;
    from.place = sum;
    return l.elementwise(mul, out.shape, l.home(node.outputs[0]), out.quantization->zero_points[0], from,
                         word_constant(l, out.shape, static_cast<std::int32_t>(s.multiplier)));
}

std::array<std::int32_t, 256> rescale_table(const Value& in, const Value& out, Arithmetic arithmetic) {
    // To a common unit, the smaller of the scales, and from there to the result's (section 9.7).
    std::array<std::int32_t, 256> table{};
    const Quantization &qi = *in.quantization, &qo = *out.quantization;
    const npu::Scale direct = to_scale(qi.scales[0] / qo.scales[0], arithmetic);
    for (int i = 0; i < 256; ++i) {
        const int stored = in.stored_type() == DType::UInt8 ? i : i - 128;
        const std::int64_t v = apply_scale(stored - qi.zero_points[0], direct, rounding_of(arithmetic));
        table[static_cast<std::size_t>(i)] =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(v + qo.zero_points[0], qo.min, qo.max));
    }
    return table;
}

// An operand of minimum or maximum in the result's scale: both functions are monotone, so rescaling before or after
// comes to the same, and a table does it exactly.
std::array<std::int32_t, 256> min_max_table(const Value& in, double common, const Value& out, Arithmetic arithmetic) {
    std::array<std::int32_t, 256> table{};
    const Quantization &qi = *in.quantization, &qo = *out.quantization;
    const npu::Scale first = to_scale(qi.scales[0] / common, arithmetic),
                     second = to_scale(common / qo.scales[0], arithmetic);
    for (int i = 0; i < 256; ++i) {
        const int stored = in.stored_type() == DType::UInt8 ? i : i - 128;
        std::int64_t v = apply_scale(stored - qi.zero_points[0], first, rounding_of(arithmetic));
        v = apply_scale(v, second, rounding_of(arithmetic)) + qo.zero_points[0];
        table[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(std::clamp<std::int64_t>(v, qo.min, qo.max));
    }
    return table;
}

}  // namespace

host::Result<void> lower_add(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &a = graph[node.inputs[0]], &b = graph[node.inputs[1]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(a.stored_type()), ofm = element_type(out.stored_type());
    const npu::OpKind kind = node.op == Op::Add ? npu::OpKind::Add : npu::OpKind::Sub;
    const Limits limits = limits_of(out, clamp_of(node));
    npu::Operation op = plain_operation(kind, type, ofm);
    const double sa = a.quantization->scales[0], sb = b.quantization->scales[0], so = out.quantization->scales[0];
    if (type.bytes == 2 && l.arithmetic() == Arithmetic::Tosa) {
        if (!exact_scaling(op, sa, sb, so)) return add_in_words(l, node, kind, limits);
        op.ofm_rounding = npu::Rounding::Natural;
    } else if (l.arithmetic() == Arithmetic::Tosa)
        tosa_scaling(op, sa, sb, so);
    else
        tflite_scaling(op, sa, sb, so);
    set_limits(op, ofm, limits);
    return l.elementwise(op, out.shape, l.home(node.outputs[0]), out.quantization->zero_points[0],
                         l.operand(node.inputs[0], out.shape), l.operand(node.inputs[1], out.shape));
}

host::Result<void> lower_mul(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &a = graph[node.inputs[0]], &b = graph[node.inputs[1]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(a.stored_type()), ofm = element_type(out.stored_type());
    npu::Operation op = plain_operation(npu::OpKind::Mul, type, ofm);
    op.ofm_scale = l.scale(a.quantization->scales[0] * b.quantization->scales[0] / out.quantization->scales[0]);
    op.ofm_rounding = l.rounding();
    set_limits(op, ofm, limits_of(out, clamp_of(node)));
    return l.elementwise(op, out.shape, l.home(node.outputs[0]), out.quantization->zero_points[0],
                         l.operand(node.inputs[0], out.shape), l.operand(node.inputs[1], out.shape));
}

std::optional<std::string> min_max_obstacle(const Graph& graph, const Node& node) {
    const Value& out = graph[node.outputs[0]];
    for (const ValueId id : node.inputs)
        if (dtype_size(graph[id].stored_type()) != 1 && graph[id].quantization != out.quantization)
            return "its operands are 16-bit numbers of different scales";
    return std::nullopt;
}

host::Result<void> lower_min_max(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value& out = graph[node.outputs[0]];
    const npu::ElementType ofm = element_type(out.stored_type());
    const double common =
        std::min(graph[node.inputs[0]].quantization->scales[0], graph[node.inputs[1]].quantization->scales[0]);
    std::array<Operand, 2> operands;
    for (std::size_t i = 0; i < 2; ++i) {
        const ValueId id = node.inputs[i];
        const Value& v = graph[id];
        operands[i] = l.operand(id, out.shape);
        const bool same = v.quantization->scales[0] == out.quantization->scales[0] &&
                          v.quantization->zero_points == out.quantization->zero_points &&
                          v.stored_type() == out.stored_type();
        if (same) continue;
        const auto table = min_max_table(v, common, out, l.arithmetic());
        if (operands[i].is_scalar) {
            operands[i].scalar =
                table[static_cast<std::size_t>(operands[i].scalar + (v.stored_type() == DType::UInt8 ? 0 : 128))];
        } else {
            const Place p = l.dense_place(l.new_tensor(v.name + "/rescaled", ofm, v.shape), v.shape);
            // One of the two factors being 1, it is one multiplication, without a table to keep and to bring in. (What
            // another operation makes gets its table there, and needs no operation at all.)
            const double scale = v.quantization->scales[0], result = out.quantization->scales[0];
            const bool once = (scale == common || common == result) && operands[i].type.is_signed == ofm.is_signed;
            if (once && l.is_given(id))
                TRY(l.rescale(v.shape, l.operand(id, v.shape), p, ofm, out.quantization->zero_points[0],
                              l.scale(scale / result), limits_of(out, {})));
            else
                TRY(l.map_bytes(v.shape, l.place(id), operands[i].type, p, ofm, table));
            operands[i].place = broadcast(p, v.shape, out.shape);
        }
        operands[i].type = ofm;
    }
    npu::Operation op = plain_operation(node.op == Op::Minimum ? npu::OpKind::Min : npu::OpKind::Max, ofm, ofm);
    set_limits(op, ofm, limits_of(out, clamp_of(node)));
    for (Operand& o : operands) o.zero_point = 0;
    return l.elementwise(op, out.shape, l.home(node.outputs[0]), 0, operands[0], operands[1]);
}

std::optional<std::string> requantize_obstacle(const Graph&, const Node&) {
    return std::nullopt;
}

host::Result<void> lower_requantize(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    if (in.quantization == out.quantization) {
        l.alias(node.outputs[0], l.place(node.inputs[0]));
        return {};
    }
    const npu::ElementType from = element_type(in.stored_type()), to = element_type(out.stored_type());
    // Equal scales only move the zero point, which the rescale below does exactly.
    const bool moves = in.quantization->scales == out.quantization->scales;
    if (!moves && from.bytes == 1 && to.bytes == 1 && from.is_signed != to.is_signed)
        return l.map_bytes(in.shape, l.place(node.inputs[0]), from, l.home(node.outputs[0]), to,
                           rescale_table(in, out, l.arithmetic()));
    return l.rescale(in.shape, l.operand(node.inputs[0], in.shape), l.home(node.outputs[0]), to,
                     out.quantization->zero_points[0],
                     l.scale(in.quantization->scales[0] / out.quantization->scales[0]), limits_of(out, {}));
}

}  // namespace talpa::compiler
