// Test support: random block operations that are legal and have memory to run on, so that two sets of kernels can be
// compared on thousands of them. Everything follows from the seed.
//
//   Random random(seed);
//   RandomOperation a = random_operation(random, Profile::Any), b = a;
//   run_reference(a.context(pool, findings)); fast::try_run(b.context(pool, findings)); then a.memory == b.memory
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "npu/extent.h"
#include "npu_model/aligned_memory_for_test.h"
#include "npu_model/kernels.h"

namespace talpa::npu_model::testing {

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    [[nodiscard]] std::uint64_t bits() { return engine_(); }
    /// lo..hi, both included.
    [[nodiscard]] std::int64_t in(std::int64_t lo, std::int64_t hi) {
        return lo + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(hi - lo + 1));
    }
    [[nodiscard]] std::uint32_t size(std::uint32_t lo, std::uint32_t hi) {
        return static_cast<std::uint32_t>(in(lo, hi));
    }
    /// True once in n.
    [[nodiscard]] bool once_in(unsigned n) { return engine_() % n == 0; }
    template <typename T>
    [[nodiscard]] T pick(std::initializer_list<T> of) {
        return of.begin()[engine_() % of.size()];
    }

  private:
    std::mt19937_64 engine_;
};

enum class Profile : std::uint8_t {
    Any,     ///< everything that is legal: types, layouts, tiles, gaps and negative strides, odd scales and zero points
    Common,  ///< what compilers emit for classifiers: int8, dense maps or bricks, ordinary scales; larger sizes
};

struct RandomOperation {
    npu::Operation op;
    /// Region 1 holds the feature maps (region 2 some IFM2s); all other bytes are random too, and must not change.
    std::array<AlignedMemory, npu::kRegionCount> memory;
    std::shared_ptr<const Filter> filter;
    std::vector<std::uint8_t> lut;

    /// Points into this object.
    [[nodiscard]] Context context(ThreadPool& pool, Findings& findings) {
        Context c{op, {}, filter.get(), lut, pool, findings};
        for (std::size_t r = 0; r < npu::kRegionCount; ++r) c.regions[r] = memory[r].region();
        return c;
    }
    /// One line for a failure's message.
    [[nodiscard]] std::string describe() const;
};

namespace detail {

using npu::ElementType;
using npu::FeatureMap;
using npu::Layout;
using npu::OpKind;

class Maker {
  public:
    Maker(Random& random, Profile profile, OpKind kind) : r_(random), any_(profile == Profile::Any) { op_.kind = kind; }

    RandomOperation make() {
        choose_types();
        choose_shapes();
        choose_output();
        for (FeatureMap* fm : {&op_.ifm, &op_.ofm}) place(*fm, 1);
        if (npu::has_ifm2(op_.kind) && !op_.ifm2_is_scalar) place(op_.ifm2, r_.once_in(3) ? 2 : 1);
        // Elementwise results may lie over an input of the same form.
        if (npu::is_elementwise(op_.kind) && op_.ifm.type.bytes == op_.ofm.type.bytes && r_.once_in(4)) {
            const FeatureMap& in = op_.ifm;
            FeatureMap out = in;
            out.type = op_.ofm.type;
            out.zero_point = op_.ofm.zero_point;
            op_.ofm = out;
        }
        result_.op = op_;
        fill_memory();
        if (npu::has_weights(op_.kind)) make_filter();
        if (op_.activation.function == npu::Activation::Function::Lut) {
            result_.lut.resize(static_cast<std::size_t>(npu::lut_bytes(op_)));
            for (auto& byte : result_.lut) byte = static_cast<std::uint8_t>(r_.bits());
        }
        return std::move(result_);
    }

  private:
    static constexpr ElementType kInt8{1, true}, kUint8{1, false}, kInt16{2, true}, kInt32{4, true};

    [[nodiscard]] bool wide_only() const {
        return op_.kind == OpKind::Clz || op_.kind == OpKind::Shr || op_.kind == OpKind::Shl;
    }

    void choose_types() {
        const auto narrow = [&] { return any_ ? r_.pick({kInt8, kInt8, kUint8, kInt16}) : kInt8; };
        const bool may_be_wide =
            op_.kind == OpKind::ReduceSum || (npu::is_elementwise(op_.kind) && op_.kind != OpKind::Lrelu);
        op_.ifm.type = wide_only() || (may_be_wide && r_.once_in(any_ ? 4 : 10)) ? kInt32 : narrow();
        op_.ifm2.type = op_.ifm.type;
        if (op_.ifm.type.bytes == 1 && any_ && r_.once_in(4)) op_.ifm2.type = r_.pick({kInt8, kUint8});
        op_.ofm.type = op_.ifm.type;
        if (any_ && r_.once_in(3)) op_.ofm.type = r_.pick({kInt8, kUint8, kInt16, kInt32});
        if (!any_ && op_.kind == OpKind::Conv && r_.once_in(10)) op_.ofm.type = kInt32;
        for (FeatureMap* fm : {&op_.ifm, &op_.ifm2, &op_.ofm}) fm->zero_point = zero_point(fm->type);
    }

    std::int32_t zero_point(ElementType type) {
        if (type.bytes == 4) return any_ && r_.once_in(8) ? static_cast<std::int32_t>(r_.in(-200, 200)) : 0;
        if (type.bytes == 2)
            return any_ && r_.once_in(3) ? static_cast<std::int32_t>(r_.in(type.min(), type.max())) : 0;
        if (any_ && r_.once_in(40))
            return static_cast<std::int32_t>(type.is_signed ? r_.in(-32768, 32767) : r_.in(0, 65535));
        return static_cast<std::int32_t>(r_.once_in(4) ? r_.pick({type.min(), type.max(), std::int64_t{0}})
                                                       : r_.in(type.min(), type.max()));
    }

    [[nodiscard]] std::uint32_t depth() {
        if (r_.once_in(3)) return 16 * r_.size(1, any_ ? 5 : 12);
        return r_.once_in(4) ? r_.size(1, 4) : r_.size(1, any_ ? 100 : 200);
    }

    void choose_shapes() {
        const std::uint32_t side = any_ ? 14 : 24;
        op_.ofm.height = r_.size(1, side);
        op_.ofm.width = r_.size(1, side);
        op_.ofm.depth = op_.kind == OpKind::ReduceSum ? 1 : depth();
        op_.block_depth = 8 * r_.size(1, 16);
        if (npu::is_elementwise(op_.kind)) {
            op_.ifm.height = op_.ofm.height;
            op_.ifm.width = op_.ofm.width;
            op_.ifm.depth = op_.ofm.depth;
            if (npu::has_ifm2(op_.kind)) choose_second_operand();
            return;
        }
        op_.ifm.depth = op_.kind == OpKind::Conv || op_.kind == OpKind::ReduceSum ? depth() : op_.ofm.depth;
        npu::Kernel& k = op_.kernel;
        if (op_.kind == OpKind::ReduceSum) {
            k = {};
        } else if (!r_.once_in(3) || op_.kind == OpKind::Depthwise) {
            k.height = r_.once_in(2) ? 3 : r_.size(1, any_ ? 9 : 5);
            k.width = r_.once_in(2) ? k.height : r_.size(1, any_ ? 9 : 5);
        }
        k.stride_y = static_cast<std::uint8_t>(r_.once_in(3) ? r_.size(1, 3) : 1);
        k.stride_x = static_cast<std::uint8_t>(r_.once_in(6) ? r_.size(1, 3) : k.stride_y);
        if (npu::has_weights(op_.kind) && r_.once_in(any_ ? 6 : 20)) {
            k.dilation_y = 2;
            k.dilation_x = r_.once_in(4) ? 1 : 2;
        }
        k.part_kernel_first = r_.once_in(2);
        k.decompose_4x4 = any_ && r_.once_in(8);
        if (any_ ? r_.once_in(6) : r_.once_in(25)) op_.upscale = r_.pick({npu::Upscale::Nearest, npu::Upscale::Zeros});
        if (!r_.once_in(3)) {
            const auto pad = [&](std::uint32_t extent) {
                return r_.size(0, any_ && r_.once_in(10) ? extent + 2 : extent / 2);
            };
            op_.padding = {pad(k.dilated_height()), pad(k.dilated_width()), pad(k.dilated_width()),
                           pad(k.dilated_height())};
        }
        const auto need = [](std::uint32_t out, std::uint32_t stride, std::uint32_t extent, std::uint32_t before,
                             std::uint32_t after) { return std::int64_t{out - 1} * stride + extent - before - after; };
        std::int64_t need_h = need(op_.ofm.height, k.stride_y, k.dilated_height(), op_.padding.top, op_.padding.bottom);
        std::int64_t need_w = need(op_.ofm.width, k.stride_x, k.dilated_width(), op_.padding.left, op_.padding.right);
        if (need_h < 1 || need_w < 1) {
            op_.padding = {};
            need_h = need(op_.ofm.height, k.stride_y, k.dilated_height(), 0, 0);
            need_w = need(op_.ofm.width, k.stride_x, k.dilated_width(), 0, 0);
        }
        const std::int64_t factor = op_.upscale == npu::Upscale::None ? 1 : 2;
        op_.ifm.height = static_cast<std::uint32_t>((need_h + factor - 1) / factor);
        op_.ifm.width = static_cast<std::uint32_t>((need_w + factor - 1) / factor);
    }

    void choose_second_operand() {
        FeatureMap& fm = op_.ifm2;
        op_.operands_reversed = r_.once_in(4);
        op_.ifm2_is_scalar = r_.once_in(5);
        if (op_.ifm2_is_scalar) {
            fm.height = fm.width = fm.depth = 1;
            const std::int64_t limit_bits = std::min<std::int64_t>(fm.type.bytes, 2) * 8;
            const bool s = fm.type.is_signed;
            op_.ifm2_scalar = static_cast<std::int32_t>(
                op_.kind == OpKind::Shr || op_.kind == OpKind::Shl
                    ? r_.in(0, 31)
                    : r_.in(s ? -(1 << (limit_bits - 1)) : 0, (1 << (limit_bits - (s ? 1 : 0))) - 1));
            return;
        }
        op_.ifm2_broadcast_h = r_.once_in(4);
        op_.ifm2_broadcast_w = r_.once_in(4);
        op_.ifm2_broadcast_c = r_.once_in(4);
        fm.height = op_.ifm2_broadcast_h ? 1 : op_.ofm.height;
        fm.width = op_.ifm2_broadcast_w ? 1 : op_.ofm.width;
        fm.depth = op_.ifm2_broadcast_c ? 1 : op_.ofm.depth;
    }

    // A scale that brings values of about `magnitude` into the range of the OFM, or any at all.
    npu::Scale scale_for(double magnitude) {
        if (any_ && r_.once_in(8))
            return {static_cast<std::uint32_t>(r_.bits()), static_cast<std::uint8_t>(r_.in(0, 63))};
        if (any_ && r_.once_in(10))
            return r_.pick({npu::Scale{1, 0}, npu::Scale{0x80000001u, 31}, npu::Scale{1u << 30, 30}});
        const double target = op_.ofm.type.bytes == 1 ? 100.0 : op_.ofm.type.bytes == 2 ? 20000.0 : 1e6;
        const auto multiplier = static_cast<std::uint32_t>(r_.in(std::int64_t{1} << 30, (std::int64_t{1} << 31) - 1));
        const int shift = 31 - std::ilogb(target / magnitude) + static_cast<int>(r_.in(-1, 1));
        return {multiplier, static_cast<std::uint8_t>(std::clamp(shift, 0, 63))};
    }

    // About how large the values before the output scale are.
    [[nodiscard]] double magnitude() const {
        const double in = op_.ifm.type.bytes == 1 ? 100 : op_.ifm.type.bytes == 2 ? 20000 : 1e6;
        const double window = double{1} * op_.kernel.height * op_.kernel.width;
        switch (op_.kind) {
            case OpKind::Conv:
                return in * 40 * std::sqrt(window * op_.ifm.depth);
            case OpKind::Depthwise:
                return in * 40 * std::sqrt(window);
            case OpKind::AvgPool:
                return in * std::sqrt(window);
            case OpKind::ReduceSum:
                return in * std::sqrt(op_.ifm.depth);
            case OpKind::Mul:
                return in * in;
            case OpKind::Add:
            case OpKind::Sub:
                return op_.operand_scaling == npu::OperandScaling::OpaOpb16
                           ? in * op_.opb_scale
                           : in * (op_.ifm.type.bytes == 1 ? 1 << 19 : 1 << 14);
            default:
                return in;
        }
    }

    void choose_output() {
        using npu::Rounding;
        op_.ofm_rounding = any_ && r_.once_in(20) ? Rounding::Truncate : r_.pick({Rounding::Tfl, Rounding::Natural});
        op_.ifm_rounding = r_.pick({Rounding::Tfl, Rounding::Natural});
        op_.acc_format = op_.ifm.type.bytes == 2 ? npu::AccFormat::Int40 : npu::AccFormat::Int32;
        op_.ofm_global_scale = op_.kind == OpKind::Conv || op_.kind == OpKind::Depthwise
                                   ? any_ && r_.once_in(20)
                                   : !(op_.kind == OpKind::AvgPool && r_.once_in(3));
        if (op_.kind == OpKind::Add || op_.kind == OpKind::Sub) choose_operand_scaling();
        op_.ofm_scale = scale_for(magnitude());
        if (op_.ifm.type.bytes == 4)
            op_.ofm_scale.shift = static_cast<std::uint8_t>(r_.once_in(2)             ? 0
                                                            : op_.kind == OpKind::Mul ? r_.in(20, 40)
                                                                                      : r_.in(0, 12));
        choose_activation();
    }

    void choose_operand_scaling() {
        using npu::OperandScaling;
        op_.operand_scaling = r_.pick({OperandScaling::OpaOpb16, OperandScaling::Opa32, OperandScaling::Opb32});
        if (op_.operand_scaling == OperandScaling::OpaOpb16) {
            const std::uint32_t factor = op_.ifm.type.bytes == 1 ? 1u << 15 : 1u << 14;
            op_.opa_scale = {any_ && r_.once_in(3) ? r_.size(1, 65535) : factor, 0};
            op_.opb_scale = any_ && r_.once_in(3) ? r_.size(1, 65535) : factor;
            return;
        }
        const unsigned pre_shift = op_.ifm.type.bytes == 1 ? 20 : 15;
        op_.opa_scale.multiplier =
            static_cast<std::uint32_t>(r_.in(std::int64_t{1} << 30, (std::int64_t{1} << 31) - 1));
        op_.opa_scale.shift =
            static_cast<std::uint8_t>(any_ && r_.once_in(6) ? r_.in(0, 63) : r_.in(32 - pre_shift, 36 - pre_shift));
        op_.opb_scale = static_cast<std::uint32_t>(r_.in(0, 70000));  // not used; streams leave anything here
    }

    void choose_activation() {
        using Function = npu::Activation::Function;
        npu::Activation& a = op_.activation;
        const ElementType out = op_.ofm.type;
        if (any_ ? r_.once_in(6) : r_.once_in(12)) {
            a.function = Function::Lut;
            if (out.bytes == 4) a.clip_range = 3;
            if (out.bytes == 2 && op_.ifm.type.bytes == 1) a.clip_range = 3;
        } else if (out.bytes == 2 && r_.once_in(8)) {
            a.function = r_.pick({Function::Tanh, Function::Sigmoid});
        }
        if (any_ && a.function == Function::None && r_.once_in(10)) a.clip_range = r_.pick<std::uint8_t>({2, 3, 5});
        const bool is_signed = a.clip_range == 0 ? out.is_signed : a.clip_range != 2;
        const std::int64_t low = is_signed ? -32768 : 0, high = is_signed ? 32767 : 65535;
        std::int64_t min = std::max(low, out.min()), max = std::min(high, out.max());
        if (r_.once_in(3)) {  // ReLU and its kin
            min = std::clamp<std::int64_t>(op_.ofm.zero_point, min, max);
            if (r_.once_in(2)) max = r_.in(min, max);
        }
        a.raw_min = static_cast<std::uint16_t>(min);
        a.raw_max = static_cast<std::uint16_t>(max);
    }

    // Strides, tiles and bases: a piece of the region for each tile.
    void place(FeatureMap& fm, std::uint8_t region) {
        const std::int64_t es = fm.type.bytes;
        fm.region = region;
        const bool bricks = r_.once_in(2) && !(op_.kind == OpKind::ReduceSum && es == 4);
        fm.layout = bricks ? Layout::Nhcwb16 : Layout::Nhwc;
        const auto gap = [&](std::int64_t step) { return any_ && r_.once_in(4) ? step * r_.in(1, 5) : 0; };
        if (bricks) {
            fm.stride_x = any_ ? static_cast<std::int64_t>(r_.in(-3, 1000)) : 16 * es;  // not used
            fm.stride_c = 16 * es * fm.width + gap(16);
            fm.stride_y = fm.stride_c * ceil_div<std::int64_t>(fm.depth, 16) + gap(16);
        } else {
            fm.stride_x = fm.depth * es + gap(es);
            fm.stride_y = fm.stride_x * fm.width + gap(es);
            fm.stride_c = any_ ? static_cast<std::int64_t>(r_.in(-3, 1000)) : es;  // not used
            if (any_ && r_.once_in(8)) fm.stride_x = -fm.stride_x;
        }
        if (any_ && r_.once_in(8)) fm.stride_y = -fm.stride_y;
        fm.height0 = fm.height1 = fm.height;
        fm.width0 = fm.width;
        if (any_ && r_.once_in(3)) fm.height0 = fm.height1 = r_.size(1, fm.height);
        if (any_ && r_.once_in(6)) {
            fm.width0 = r_.size(1, fm.width);
            fm.height1 = r_.size(1, fm.height);
        }
        fm.base = {};
        std::int64_t& end = end_[region];
        // Each tile is placed alone: a copy of the map that has only this tile tells how far it reaches from its base.
        for (std::size_t t = 0; t < 4; ++t) {
            const bool right = t % 2 == 1, below = t >= 2;
            const std::uint32_t split = right ? fm.height1 : fm.height0;
            if ((right && fm.width0 >= fm.width) || (below && split >= fm.height)) continue;
            FeatureMap tile = fm;
            tile.base = {};
            tile.width = right ? fm.width - fm.width0 : std::min(fm.width, fm.width0);
            tile.height = below ? fm.height - split : std::min(fm.height, split);
            tile.width0 = tile.width;
            tile.height0 = tile.height1 = tile.height;
            const npu::Extent extent = npu::hull(tile);
            const std::int64_t odd = any_ && !bricks && r_.once_in(2) ? es * r_.in(0, 15) : 0;
            fm.base[t] = static_cast<std::uint64_t>(round_up<std::int64_t>(end - extent.begin, 16) + odd);
            end = static_cast<std::int64_t>(fm.base[t]) + extent.end + r_.in(0, 32);
        }
    }

    void fill_memory() {
        for (std::size_t region = 1; region <= 2; ++region) {
            result_.memory[region] = AlignedMemory(static_cast<std::size_t>(end_[region] + 16));
            for (std::size_t i = 0; i < result_.memory[region].size(); ++i)
                result_.memory[region].data()[i] = static_cast<std::uint8_t>(r_.bits());
        }
        if (op_.ifm.type.bytes != 4) return;
        // 32-bit inputs: mostly smaller numbers, or every sum would overflow; shift counts in their range.
        const bool small = !r_.once_in(4);
        const auto fill = [&](const FeatureMap& fm, auto value) {
            for (std::uint32_t y = 0; y < fm.height; ++y)
                for (std::uint32_t x = 0; x < fm.width; ++x)
                    for (std::uint32_t c = 0; c < fm.depth; ++c)
                        store_le(result_.memory[fm.region].data() + fm.offset_of(y, x, c),
                                 static_cast<std::uint32_t>(value()));
        };
        const bool shifts = op_.kind == OpKind::Shr || op_.kind == OpKind::Shl;
        const auto number = [&] { return small ? r_.in(-2'000'000, 2'000'000) : static_cast<std::int64_t>(r_.bits()); };
        const auto count = [&] { return r_.in(0, 31); };
        shifts&& op_.operands_reversed ? fill(op_.ifm, count) : fill(op_.ifm, number);
        if (npu::has_ifm2(op_.kind) && !op_.ifm2_is_scalar)
            shifts && !op_.operands_reversed ? fill(op_.ifm2, count) : fill(op_.ifm2, number);
    }

    void make_filter() {
        auto filter = std::make_shared<Filter>();
        WeightOrder& shape = filter->shape;
        shape.ofm_depth = op_.ofm.depth;
        shape.kernel_height = op_.kernel.height;
        shape.kernel_width = op_.kernel.width;
        shape.ifm_depth = op_.ifm.depth;
        shape.block_depth = op_.block_depth;
        shape.dilation_y = op_.kernel.dilation_y;
        shape.dilation_x = op_.kernel.dilation_x;
        shape.depthwise = op_.kind == OpKind::Depthwise;
        shape.part_kernel_first = op_.kernel.part_kernel_first;
        shape.ifm_16bit = op_.ifm.type.bytes == 2;
        shape.decompose_4x4 = op_.kernel.decompose_4x4;
        // uint8 models take the zero point off their weights, which makes nine bits of them.
        const int limit = any_ && r_.once_in(4) ? 255 : r_.once_in(8) ? 7 : 127;
        filter->weights.resize(static_cast<std::size_t>(shape.bank_size()));
        for (auto& w : filter->weights) w = static_cast<std::int16_t>(r_.in(limit == 127 ? -128 : -limit, limit));
        if (!op_.ofm_global_scale) {
            filter->records.resize(op_.ofm.depth);
            const double m = magnitude();
            for (auto& record : filter->records) {
                const npu::Scale s = scale_for(m);
                const std::int64_t bias = any_ && r_.once_in(30)
                                              ? static_cast<std::int64_t>(r_.bits()) >> 24
                                              : r_.in(-static_cast<std::int64_t>(m), static_cast<std::int64_t>(m));
                record = {bias, s.multiplier, s.shift};
            }
        }
        result_.filter = std::move(filter);
    }

    Random& r_;
    bool any_;
    npu::Operation op_;
    RandomOperation result_;
    std::array<std::int64_t, npu::kRegionCount> end_{};
};

}  // namespace detail

/// An operation of the given kind (a block operation).
[[nodiscard]] inline RandomOperation random_operation(Random& random, Profile profile, npu::OpKind kind) {
    return detail::Maker(random, profile, kind).make();
}

/// Of any kind; half of them convolutions and depthwise.
[[nodiscard]] inline RandomOperation random_operation(Random& random, Profile profile) {
    using npu::OpKind;
    const OpKind kind =
        random.once_in(2)
            ? random.pick({OpKind::Conv, OpKind::Conv, OpKind::Depthwise})
            : static_cast<OpKind>(random.in(static_cast<int>(OpKind::MaxPool), static_cast<int>(OpKind::Shl)));
    return random_operation(random, profile, kind);
}

inline std::string RandomOperation::describe() const {
    const auto map = [](const npu::FeatureMap& fm) {
        return std::to_string(fm.height) + "x" + std::to_string(fm.width) + "x" + std::to_string(fm.depth) +
               (fm.type.is_signed ? " int" : " uint") + std::to_string(8 * fm.type.bytes) +
               (fm.layout == npu::Layout::Nhwc ? " NHWC" : " NHCWB16") + " zp " + std::to_string(fm.zero_point) +
               (fm.height0 < fm.height || fm.width0 < fm.width ? " tiled" : "");
    };
    std::string s = std::string(npu::op_kind_name(op.kind)) + ": IFM " + map(op.ifm);
    if (npu::has_ifm2(op.kind))
        s += op.ifm2_is_scalar ? ", scalar " + std::to_string(op.ifm2_scalar) : ", IFM2 " + map(op.ifm2);
    s += ", OFM " + map(op.ofm) + ", kernel " + std::to_string(op.kernel.height) + "x" +
         std::to_string(op.kernel.width) + " stride " + std::to_string(op.kernel.stride_y) + "," +
         std::to_string(op.kernel.stride_x) + " dilation " + std::to_string(op.kernel.dilation_y) + "," +
         std::to_string(op.kernel.dilation_x) + " pad " + std::to_string(op.padding.top) + "," +
         std::to_string(op.padding.left) + "," + std::to_string(op.padding.right) + "," +
         std::to_string(op.padding.bottom) + ", upscale " + std::to_string(static_cast<int>(op.upscale)) +
         ", rounding " + std::to_string(static_cast<int>(op.ofm_rounding)) +
         (op.ofm_global_scale ? ", global scale " : ", records ") + std::to_string(op.ofm_scale.multiplier) + " >> " +
         std::to_string(op.ofm_scale.shift) + ", operand scaling " +
         std::to_string(static_cast<int>(op.operand_scaling)) + (op.operands_reversed ? " reversed" : "") +
         ", activation " + std::to_string(static_cast<int>(op.activation.function)) + " clip " +
         std::to_string(op.activation.clip_range);
    return s;
}

}  // namespace talpa::npu_model::testing
