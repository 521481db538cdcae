// Operations that make one byte of one byte: copies, requantizations, look-up tables, leaky ReLU, arithmetic with a
// constant. Whatever the arithmetic, it is a table of 256 bytes; what is left is moving data: runs, or blocked
// transpositions. (Compilers write transpositions as hundreds of 1x1 average pools with strides.)
#include <algorithm>
#include <array>
#include <cstring>

#include "npu_model/fast/loop_nest.h"
#include "npu_model/fast/memory_span.h"
#include "npu_model/fast/plan.h"
#include "npu_model/fast/requantization.h"

namespace talpa::npu_model::fast {
namespace {

using Table = std::array<std::uint8_t, 256>;

// The operation without its LUT on all 256 bytes, by the reference kernels.
std::optional<Table> table_of(const Context& context) {
    npu::Operation op = context.op;
    alignas(16) std::uint8_t memory[512];
    for (unsigned i = 0; i < 256; ++i) memory[i] = static_cast<std::uint8_t>(i);
    for (npu::FeatureMap* fm : {&op.ifm, &op.ofm}) {
        fm->layout = npu::Layout::Nhwc;
        fm->region = 1;
        fm->height = fm->width = fm->height0 = fm->height1 = fm->width0 = 1;
        fm->depth = 256;
        fm->base = {};
        fm->stride_y = fm->stride_x = 256;
    }
    op.ofm.base[0] = 256;
    if (op.activation.function == npu::Activation::Function::Lut)
        op.activation.function = npu::Activation::Function::None;
    Findings findings;
    findings.start_operation(op);
    Context one{op, {}, nullptr, {}, context.pool, findings};
    one.regions[1] = {memory, sizeof memory};
    if (!run_reference(one)) return std::nullopt;
    Table table;
    std::memcpy(table.data(), memory + 256, 256);
    return table;
}

// Average pools that copy, by far the most: no need to try all bytes.
bool is_copy(const npu::Operation& op) {
    const auto range = byte_range(op, op.ofm.zero_point);
    const bool unit = (op.ofm_scale.multiplier == 0x80000001u && op.ofm_scale.shift == 31) ||
                      (op.ofm_scale.multiplier == 1 && op.ofm_scale.shift == 0);
    return op.kind == npu::OpKind::AvgPool && op.ofm_global_scale && unit && op.ifm.type == op.ofm.type &&
           op.ifm.zero_point == op.ofm.zero_point && range && range->low == -128 && range->high == 127;
}

bool is_byte_map(const npu::Operation& op) {
    if (op.ifm.type.bytes != 1 || op.ofm.type.bytes != 1) return false;
    if (op.kind == npu::OpKind::AvgPool || op.kind == npu::OpKind::MaxPool)
        return op.kernel.height == 1 && op.kernel.width == 1 && op.kernel.stride_y == 1 && op.kernel.stride_x == 1 &&
               !op.padding.any() && op.upscale == npu::Upscale::None;
    return npu::is_elementwise(op.kind) && (!npu::has_ifm2(op.kind) || (op.ifm2_is_scalar && op.ifm2.type.bytes == 1));
}

class ByteMapPlan final : public Plan {
  public:
    ByteMapPlan(std::vector<LoopNest> nests, bool identity, const Table& table, const Microkernels& kernels)
        : nests_(std::move(nests)), identity_(identity), table_(table), kernels_(kernels) {}

    bool run(const Context& context) const override {
        const npu::Operation& op = context.op;
        if (!is_in_place(context) && span_of(context, op.ifm).overlaps(span_of(context, op.ofm))) return false;
        Table composed;
        const std::uint8_t* table = identity_ ? nullptr : table_.data();
        if (!context.lut.empty()) {
            Table lut;
            byte_table(context, lut.data());
            for (unsigned i = 0; i < 256; ++i) composed[i] = lut[table_[i]];
            table = composed.data();
        }
        for (const LoopNest& nest : nests_)
            walk(nest, 0, context.memory(op.ifm) + nest.start[0], context.memory(op.ofm) + nest.start[1], table);
        return true;
    }

  private:
    // Each byte is replaced where it lies.
    static bool is_in_place(const Context& context) {
        const npu::FeatureMap &in = context.op.ifm, &out = context.op.ofm;
        return context.memory(in) + in.base[0] == context.memory(out) + out.base[0] && in.layout == out.layout &&
               in.stride_x == out.stride_x && in.stride_y == out.stride_y && in.stride_c == out.stride_c;
    }

    void walk(const LoopNest& nest, std::size_t depth, const std::uint8_t* in, std::uint8_t* out,
              const std::uint8_t* table) const {
        const std::size_t left = nest.loops.size() - depth;
        if (left == 0) {
            *out = table != nullptr ? table[*in] : *in;
            return;
        }
        const Loop& loop = nest.loops[depth];
        if (left == 1 && loop.stride[0] == 1 && loop.stride[1] == 1) {
            const auto count = static_cast<std::size_t>(loop.count);
            if (table != nullptr)
                kernels_.map_bytes(in, out, count, table);
            else
                std::memmove(out, in, count);
            return;
        }
        if (left == 2) {
            const Loop& inner = nest.loops[depth + 1];
            if (loop.stride[0] == 1 && inner.stride[1] == 1) {
                kernels_.transpose(in, inner.stride[0], out, loop.stride[1], static_cast<std::size_t>(loop.count),
                                   static_cast<std::size_t>(inner.count));
                if (table != nullptr)
                    for (std::int64_t i = 0; i < loop.count; ++i)
                        kernels_.map_bytes(out + i * loop.stride[1], out + i * loop.stride[1],
                                           static_cast<std::size_t>(inner.count), table);
                return;
            }
        }
        for (std::int64_t i = 0; i < loop.count; ++i, in += loop.stride[0], out += loop.stride[1])
            walk(nest, depth + 1, in, out, table);
    }

    std::vector<LoopNest> nests_;
    bool identity_;
    Table table_;
    const Microkernels& kernels_;
};

}  // namespace

std::unique_ptr<Plan> plan_byte_map(const Context& context, Isa isa) {
    const npu::Operation& op = context.op;
    if (!is_byte_map(op)) return nullptr;
    const npu::FeatureMap* maps[] = {&op.ifm, &op.ofm};
    auto nests = loop_nests(maps);
    if (!nests) return nullptr;
    Table table;
    for (unsigned i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(i);
    bool identity = is_copy(op);
    if (!identity) {
        const auto made = table_of(context);
        if (!made) return nullptr;
        identity = *made == table;
        table = *made;
    }
    return std::make_unique<ByteMapPlan>(std::move(*nests), identity, table, microkernels(isa));
}

}  // namespace talpa::npu_model::fast
