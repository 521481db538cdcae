// ADD, SUB, MUL, MIN and MAX of two 8-bit tensors (ethos-u65, sections 5.6 and 5.7): each operand becomes a 32-bit
// number that depends on its byte alone, the two are combined, and the result is requantized like a convolution's.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/core/checked_math.h"
#include "npu_model/fast/loop_nest.h"
#include "npu_model/fast/memory_span.h"
#include "npu_model/fast/plan.h"
#include "npu_model/fast/requantization.h"
#include "npu_model/rounding.h"

namespace talpa::npu_model::fast {
namespace {

using npu::OperandScaling;
using npu::OpKind;
using npu::Rounding;

constexpr std::int64_t kLimit = std::int64_t{1} << 31;

struct OperandTable {
    std::array<std::int32_t, 256> values{};
    OperandScale scale;
    std::int64_t largest = 0;
};

// What happens to (byte - zero point) before the operands meet.
struct OperandStep {
    bool scaled = false;  // scale(x << 20, multiplier, shift + 20), else x * multiplier
    std::uint32_t multiplier = 1;
    unsigned shift = 0;
    Rounding rounding = Rounding::Natural;
    bool negated = false;
};

constexpr unsigned kPreShift = 20;  // of 8-bit operands (section 5.6)

std::optional<OperandTable> operand_table(const npu::FeatureMap& fm, std::int32_t zero_point, const OperandStep& step) {
    OperandTable t;
    for (int byte = 0; byte < 256; ++byte) {
        const std::int64_t x = (fm.type.is_signed ? static_cast<std::int8_t>(byte) : byte) - zero_point;
        std::int64_t v = step.scaled
                             ? scale(x * (1 << kPreShift), step.multiplier, step.shift + kPreShift, step.rounding)
                             : x * step.multiplier;
        if (step.negated) v = -v;
        t.largest = std::max(t.largest, std::abs(v));
        if (t.largest >= kLimit) return std::nullopt;
        t.values[static_cast<std::size_t>(byte)] = static_cast<std::int32_t>(v);
    }
    t.scale.is_signed = fm.type.is_signed;
    t.scale.zero_point = zero_point;
    // Forms that vectors compute faster than they look up.
    if (!step.scaled && step.multiplier < 0x80000000u) {
        t.scale.kind = OperandScale::Kind::Multiplied;
        t.scale.multiplier = static_cast<std::int32_t>(step.multiplier) * (step.negated ? -1 : 1);
    } else if (step.scaled && !step.negated && step.rounding == Rounding::Natural && step.multiplier < 0x80000000u &&
               step.shift >= 1 && step.shift <= 62) {
        // The pre-shift cancels under natural rounding.
        t.scale.kind = OperandScale::Kind::Scaled;
        t.scale.multiplier = static_cast<std::int32_t>(step.multiplier);
        t.scale.shift = static_cast<std::int32_t>(step.shift);
    }
    return t;
}

class BinaryPlan final : public Plan {
  public:
    BinaryPlan(std::vector<LoopNest> nests, const OperandTable& a, const OperandTable& b, Combine combine,
               const Requantization& requantization, const Microkernels& kernels)
        : nests_(std::move(nests)),
          a_(a),
          b_(b),
          combine_(combine),
          block_(requantization.blocks[0]),
          epilogue_(requantization.epilogue),
          kernels_(kernels) {
        a_.scale.table = a_.values.data();
        b_.scale.table = b_.values.data();
    }

    bool run(const Context& context) const override {
        const npu::Operation& op = context.op;
        const MemorySpan out = span_of(context, op.ofm);
        for (const npu::FeatureMap* fm : {&op.ifm, &op.ifm2})
            if (!same_elements(context, *fm) && span_of(context, *fm).overlaps(out)) return false;
        std::uint8_t table[256];
        BinaryTask task;
        task.scale_a = a_.scale;
        task.scale_b = b_.scale;
        task.combine = combine_;
        task.block = &block_;
        task.epilogue = epilogue_;
        if (!context.lut.empty()) {
            byte_table(context, table);
            task.epilogue.lut = table;
        }
        for (const LoopNest& nest : nests_) {
            task.a = context.memory(op.ifm) + nest.start[0];
            task.b = context.memory(op.ifm2) + nest.start[1];
            task.out = context.memory(op.ofm) + nest.start[2];
            run_nest(context, nest, task);
        }
        return true;
    }

  private:
    // Where the output lies over an input, each element must lie over its own.
    static bool same_elements(const Context& context, const npu::FeatureMap& in) {
        const npu::FeatureMap& out = context.op.ofm;
        return context.memory(in) + in.base[0] == context.memory(out) + out.base[0] && in.layout == out.layout &&
               in.height == out.height && in.width == out.width && in.depth == out.depth &&
               in.stride_x == out.stride_x && in.stride_y == out.stride_y && in.stride_c == out.stride_c;
    }

    // The outermost loop in as many parts as there are threads: rows, as convolutions are shared out, so that what a
    // thread wrote there it reads here.
    void run_nest(const Context& context, const LoopNest& nest, const BinaryTask& task) const {
        constexpr std::int64_t kMinParallelElements = 1 << 13, kGrain = 64;
        std::int64_t elements = 1;
        for (const Loop& loop : nest.loops) elements *= loop.count;
        const std::int64_t threads = context.pool.threads();
        if (threads == 1 || elements < kMinParallelElements) return walk(nest, 0, task);
        const std::int64_t count = nest.loops[0].count, part = nest.loops.size() == 1
                                                                   ? round_up(ceil_div(count, threads), kGrain)
                                                                   : ceil_div(count, threads);
        context.pool.run(static_cast<std::uint32_t>(ceil_div(count, part)), [&](std::uint32_t i) {
            const std::int64_t first = i * part;
            LoopNest mine = nest;
            mine.loops[0].count = std::min(part, count - first);
            BinaryTask shifted = task;
            shifted.a += first * nest.loops[0].stride[0];
            shifted.b += first * nest.loops[0].stride[1];
            shifted.out += first * nest.loops[0].stride[2];
            walk(mine, 0, shifted);
        });
    }

    void walk(const LoopNest& nest, std::size_t depth, BinaryTask task) const {
        const std::size_t left = nest.loops.size() - depth;
        if (left == 0) {
            task.count = 1;
            kernels_.binary(task);
            return;
        }
        const Loop& loop = nest.loops[depth];
        if (left == 1 && loop.stride[2] == 1) {
            task.count = static_cast<std::size_t>(loop.count);
            task.step_a = loop.stride[0];
            task.step_b = loop.stride[1];
            kernels_.binary(task);
            return;
        }
        // Bricks whose last channels are padding: 16 at a time, of which some are stored.
        if (left == 2 && is_brick_row(loop, nest.loops[depth + 1])) {
            task.count = static_cast<std::size_t>(loop.count) * 16;
            task.valid = static_cast<int>(nest.loops[depth + 1].count);
            kernels_.binary(task);
            return;
        }
        for (std::int64_t i = 0; i < loop.count; ++i) {
            walk(nest, depth + 1, task);
            task.a += loop.stride[0];
            task.b += loop.stride[1];
            task.out += loop.stride[2];
        }
    }
    static bool is_brick_row(const Loop& outer, const Loop& inner) {
        return inner.count < 16 &&
               std::ranges::all_of(
                   outer.stride, [](std::int64_t s) { return s == 16; }) &&
               std::ranges::all_of(inner.stride, [](std::int64_t s) { return s == 1; });
    }

    std::vector<LoopNest> nests_;
    OperandTable a_, b_;
    Combine combine_;
    ChannelBlock block_;
    Epilogue epilogue_;
    const Microkernels& kernels_;
};

}  // namespace

std::unique_ptr<Plan> plan_elementwise(const Context& context, Isa isa) {
    const npu::Operation& op = context.op;
    const bool sum = op.kind == OpKind::Add || op.kind == OpKind::Sub,
               raw = op.kind == OpKind::Min || op.kind == OpKind::Max;
    if ((!sum && !raw && op.kind != OpKind::Mul) || op.ifm2_is_scalar || op.ifm.type.bytes != 1 ||
        op.ifm2.type.bytes != 1)
        return nullptr;
    const auto range = byte_range(op, raw ? 0 : op.ofm.zero_point);
    if (!range) return nullptr;

    OperandStep first, second;  // operands A and B, after reversal
    npu::Scale out_scale = raw ? npu::Scale{1u << 30, 30} : op.ofm_scale;
    if (sum) {
        second.negated = op.kind == OpKind::Sub;
        const OperandStep scaled{true, op.opa_scale.multiplier, op.opa_scale.shift, op.ifm_rounding, false};
        const OperandStep shifted{false, 1u << (kPreShift - 1), 0, Rounding::Natural, false};
        switch (op.operand_scaling) {
            case OperandScaling::OpaOpb16:
                if (op.ofm_rounding == Rounding::Tfl && out_scale.shift > 0)
                    return nullptr;  // rounds half away from zero there
                first.multiplier = op.opa_scale.multiplier;
                second.multiplier = op.opb_scale;
                break;
            case OperandScaling::Opa32:
                first = scaled;
                second.multiplier = shifted.multiplier;
                break;
            case OperandScaling::Opb32: {
                const bool negated = second.negated;
                first = shifted;
                second = scaled;
                second.negated = negated;
                break;
            }
        }
    }
    if (op.operands_reversed) std::swap(first, second);
    const auto a = operand_table(op.ifm, raw ? 0 : op.ifm.zero_point, first),
               b = operand_table(op.ifm2, raw ? 0 : op.ifm2.zero_point, second);
    if (!a || !b) return nullptr;
    const std::int64_t largest = sum ? a->largest + b->largest : raw ? 255 : a->largest * b->largest;
    const auto requantization =
        uniform_requantization(op, out_scale, raw ? Rounding::Natural : op.ofm_rounding, *range, largest);
    if (!requantization) return nullptr;

    const npu::FeatureMap* maps[] = {&op.ifm, &op.ifm2, &op.ofm};
    auto nests = loop_nests(maps);
    if (!nests) return nullptr;
    const Combine combine = sum                      ? Combine::Add
                            : op.kind == OpKind::Mul ? Combine::Multiply
                            : op.kind == OpKind::Min ? Combine::Min
                                                     : Combine::Max;
    return std::make_unique<BinaryPlan>(std::move(*nests), *a, *b, combine, *requantization, microkernels(isa));
}

}  // namespace talpa::npu_model::fast
