// Elementwise operations, plain (ethos-u65, sections 5.6 and 5.7).
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "npu_model/feature_map_access.h"
#include "npu_model/output.h"
#include "npu_model/reference.h"
#include "npu_model/rounding.h"

namespace talpa::npu_model {

namespace {

using npu::OperandScaling;
using npu::OpKind;
using npu::Rounding;

// ADD and SUB of 8 and 16 bits: operands to a common scale, sum, output scale.
std::int64_t add_scaled(const npu::Operation& op, std::int64_t a, std::int64_t b) {
    const unsigned pre_shift = op.ifm.type.bytes == 1 ? 20 : 15;
    std::int64_t x = 0, y = 0;
    switch (op.operand_scaling) {
        case OperandScaling::OpaOpb16:
            x = a * op.opa_scale.multiplier;
            y = b * op.opb_scale;
            break;
        case OperandScaling::Opa32:  // a is rescaled, b only shifted to the same place
            x = scale(a * (1 << pre_shift), op.opa_scale.multiplier, op.opa_scale.shift + pre_shift, op.ifm_rounding);
            y = b * (1 << (pre_shift - 1));
            break;
        case OperandScaling::Opb32:  // the scale comes from OPA_SCALE here too
            x = a * (1 << (pre_shift - 1));
            y = scale(b * (1 << pre_shift), op.opa_scale.multiplier, op.opa_scale.shift + pre_shift, op.ifm_rounding);
            break;
    }
    const std::int64_t sum = op.kind == OpKind::Add ? x + y : x - y;
    if (op.operand_scaling == OperandScaling::OpaOpb16 && op.ifm.type.bytes == 1 && op.ofm_rounding == Rounding::Tfl)
        return scale_half_away(sum, op.ofm_scale);
    return scale(sum, op.ofm_scale, op.ofm_rounding);
}

// Operands of 8 or 16 bits, zero points already taken off (not for MIN and MAX).
std::int64_t combine_narrow(const npu::Operation& op, std::int64_t a, std::int64_t b) {
    switch (op.kind) {
        case OpKind::Add:
        case OpKind::Sub:
            return add_scaled(op, a, b);
        case OpKind::Mul:
            return scale(a * b, op.ofm_scale, op.ofm_rounding);
        case OpKind::Min:
            return std::min(a, b);
        case OpKind::Max:
            return std::max(a, b);
        case OpKind::Lrelu:
            return a >= 0 ? a : scale(a, op.ofm_scale, op.ofm_rounding);
        default:
            return scale(std::abs(a), op.ofm_scale, op.ofm_rounding);  // ABS; check_legal lets nothing else come here
    }
}

// Operands of 32 bits. The multiplier of OFM_SCALE is not used, only its shift.
std::int64_t combine_wide(const Context& context, std::int64_t a, std::int64_t b) {
    const npu::Operation& op = context.op;
    const auto shift_by = [&](std::int64_t by) {
        if (by < 0 || by > 31) context.findings.note(Finding::Kind::ShiftOutOfRange);
        return static_cast<unsigned>(by & 31);
    };
    switch (op.kind) {
        case OpKind::Add:
            return scale(a + b, 1, op.ofm_scale.shift, op.ofm_rounding);
        case OpKind::Sub:
            return scale(a - b, 1, op.ofm_scale.shift, op.ofm_rounding);
        case OpKind::Mul:
            return scale(a * b, 1, op.ofm_scale.shift, op.ofm_rounding);
        case OpKind::Min:
            return std::min(a, b);
        case OpKind::Max:
            return std::max(a, b);
        case OpKind::Abs:
            return std::abs(a);
        case OpKind::Clz:
            return std::countl_zero(static_cast<std::uint32_t>(a));
        case OpKind::Shr:
            return scale(a, 1, shift_by(b), op.ofm_rounding);  // there is no shift without rounding
        default:
            return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << shift_by(b));  // SHL wraps
    }
}

DenseMap scalar_map(std::int32_t value) {
    return {1, 1, 1, {value}};
}

}  // namespace

Result<void> elementwise(const Context& context) {
    const npu::Operation& op = context.op;
    const bool raw = op.kind == OpKind::Min || op.kind == OpKind::Max;
    const bool wide = op.ifm.type.bytes == 4;
    const auto zero_point = [&](const npu::FeatureMap& fm) { return raw || wide ? 0 : fm.zero_point; };

    const DenseMap ifm = load_map(context.memory(op.ifm), op.ifm, zero_point(op.ifm));
    const DenseMap ifm2 = !npu::has_ifm2(op.kind) ? scalar_map(0)
                          : op.ifm2_is_scalar     ? scalar_map(op.ifm2_scalar - zero_point(op.ifm2))
                                                  : load_map(context.memory(op.ifm2), op.ifm2, zero_point(op.ifm2));
    const OutputStage output(context, raw ? OutputZeroPoint::Ignored : OutputZeroPoint::Added);
    // Both inputs are loaded whole before the first store: an OFM may lie over them. A broadcast direction has size 1.
    for (std::uint32_t y = 0; y < op.ofm.height; ++y)
        for (std::uint32_t x = 0; x < op.ofm.width; ++x) {
            const std::int32_t* first = ifm.at(y, x);
            const std::int32_t* second = ifm2.at(ifm2.height == 1 ? 0 : y, ifm2.width == 1 ? 0 : x);
            for (std::uint32_t c = 0; c < op.ofm.depth; ++c) {
                std::int64_t a = first[c], b = second[ifm2.depth == 1 ? 0 : c];
                if (op.operands_reversed) std::swap(a, b);
                output.store(y, x, c, wide ? combine_wide(context, a, b) : combine_narrow(op, a, b));
            }
        }
    return {};
}

}  // namespace talpa::npu_model
