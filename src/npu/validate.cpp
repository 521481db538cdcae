#include "npu/validate.h"

#include <algorithm>

#include "base/core/checked_math.h"
#include "npu/block.h"
#include "npu/extent.h"

namespace talpa::npu {

namespace {

template <typename... Args>
std::unexpected<Error> illegal(const Operation& op, const char* sentence, Args... args) {
    return (fail)(ErrorCode::CommandStream, sentence, op.offset_bytes, op_kind_name(op.kind), args...);
}

bool is_multiple(std::int64_t v, std::int64_t step) {
    return v % step == 0;
}

// Section 4.1: bricks begin at multiples of 16 bytes, elements at multiples of their size. Only tiles in use count.
Result<void> check_map(const Operation& op, const FeatureMap& fm, const char* name) {
    const bool bricks = fm.layout == Layout::Nhcwb16;
    const std::int64_t step = bricks ? 16 : fm.type.bytes;
    const bool below = fm.height > fm.height0, beside = fm.width > fm.width0;
    const std::array<bool, 4> used{true, beside, below, beside && fm.height > fm.height1};
    for (std::size_t i = 0; i < 4; ++i)
        if (used[i] && !is_multiple(static_cast<std::int64_t>(fm.base[i]), step))
            return illegal(op, "command stream offset {}: {}: {} base {} is no multiple of {}", name, hex(fm.base[i]),
                           step);
    if (!is_multiple(fm.stride_y, step))
        return illegal(op, "command stream offset {}: {}: {} row stride {} is no multiple of {}", name, fm.stride_y,
                       step);
    if (bricks && !is_multiple(fm.stride_c, step))
        return illegal(op, "command stream offset {}: {}: {} brick stride {} is no multiple of {}", name, fm.stride_c,
                       step);
    if (!bricks && !is_multiple(fm.stride_x, step))
        return illegal(op, "command stream offset {}: {}: {} column stride {} is no multiple of {}", name, fm.stride_x,
                       step);
    return {};
}

// What each operation may read and write, in bits 1, 2 and 4 for 8, 16 and 32-bit elements (sections 5 and 9.2).
struct TypeRule {
    OpKind kind;
    unsigned ifm, ofm;
};
constexpr TypeRule kTypeRules[] = {
    {OpKind::Conv, 3, 7},      {OpKind::Depthwise, 3, 7}, {OpKind::MaxPool, 3, 7}, {OpKind::AvgPool, 3, 7},
    {OpKind::ReduceSum, 7, 7}, {OpKind::Mul, 7, 7},       {OpKind::Add, 7, 7},     {OpKind::Sub, 7, 7},
    {OpKind::Min, 7, 7},       {OpKind::Max, 7, 7},       {OpKind::Lrelu, 3, 3},   {OpKind::Abs, 7, 7},
    {OpKind::Clz, 4, 4},       {OpKind::Shr, 4, 7},       {OpKind::Shl, 4, 4},
};

const TypeRule& type_rule(OpKind kind) {
    return *std::find_if(std::begin(kTypeRules), std::end(kTypeRules),
                         [&](const TypeRule& r) { return r.kind == kind; });
}

Result<void> check_input_types(const Operation& op) {
    const unsigned ifm_bits = op.ifm.type.bytes * 8u;
    if ((type_rule(op.kind).ifm & op.ifm.type.bytes) == 0)
        return illegal(op, "command stream offset {}: {} does not read {}-bit elements", ifm_bits);
    if (has_ifm2(op.kind) && op.ifm2.type.bytes != op.ifm.type.bytes)
        return illegal(op, "command stream offset {}: {} has operands of {} and {} bits", ifm_bits,
                       op.ifm2.type.bytes * 8u);
    if (op.kind == OpKind::ReduceSum && op.ifm.type.bytes == 4 && op.ifm.layout == Layout::Nhcwb16)
        return illegal(op, "command stream offset {}: {} reads 32-bit elements in bricks, only NHWC is possible");
    return {};
}

Result<void> check_types(const Operation& op) {
    const unsigned ifm_bits = op.ifm.type.bytes * 8u, ofm_bits = op.ofm.type.bytes * 8u;
    if ((type_rule(op.kind).ofm & op.ofm.type.bytes) == 0)
        return illegal(op, "command stream offset {}: {} does not write {}-bit elements", ofm_bits);
    if (op.ifm.type.bytes == 4 && !op.ifm.type.is_signed)
        return illegal(op, "command stream offset {}: {} reads unsigned {}-bit elements", ifm_bits);
    if (op.acc_format == AccFormat::Fp16) return illegal(op, "command stream offset {}: {} asks for fp16 accumulators");
    if (op.acc_format == AccFormat::Int40 && !is_elementwise(op.kind) && op.ifm.type.bytes != 2)
        return illegal(
            op, "command stream offset {}: {} asks for 40-bit accumulators with {}-bit input, they are for 16-bit",
            ifm_bits);
    return {};
}

Result<void> check_kernel_size(const Operation& op) {
    const std::uint64_t kh = op.kernel.dilated_height(), kw = op.kernel.dilated_width();
    const bool pool = !has_weights(op.kind);
    const std::uint32_t max_height = pool ? 256 : 64, max_area = pool ? 65536 : 4096;
    if (kh > max_height || kh * kw > max_area)
        return illegal(op, "command stream offset {}: {} has a kernel of {} x {}, at most height {} is possible", kh,
                       kw, max_height);
    return {};
}

Result<void> check_window(const Operation& op) {
    const Kernel& k = op.kernel;
    const std::uint32_t kh = k.dilated_height(), kw = k.dilated_width();
    if (k.stride_x > 4 || k.stride_y > 4)
        return illegal(op, "command stream offset {}: {} has strides {} x {}, at most 4 is possible",
                       unsigned{k.stride_y}, unsigned{k.stride_x});
    if (op.padding.top >= kh || op.padding.left >= kw)
        return illegal(op, "command stream offset {}: {} is padded by {} x {}, more than its kernel", op.padding.top,
                       op.padding.left);
    // Rows and columns at the far end may exceed the kernel only by what the stride leaves unread.
    if (op.padding.bottom >= kh + k.stride_y || op.padding.right >= kw + k.stride_x)
        return illegal(op, "command stream offset {}: {} is padded at the end by {} x {}, more than its kernel",
                       op.padding.bottom, op.padding.right);
    if (op.ifm.height > 65536 || op.ifm.width > 65536)
        return illegal(op, "command stream offset {}: {} reads {} x {} elements, at most 65536 is possible",
                       op.ifm.height, op.ifm.width);
    return {};
}

// Section 6.2: the last two banks of the shared RAM.
Result<void> check_table_place(const Operation& op) {
    constexpr std::int64_t kTableBytes = 2048;
    if (op.activation.function != Activation::Function::Lut) return {};
    const std::int64_t end = kLutSlotBytes * op.activation.lut_slot + lut_bytes(op);
    if (end > kTableBytes)
        return illegal(
            op,
            "command stream offset {}: {} with a table of {} bytes at LUT slot {}, beyond the end of the 2048 bytes",
            lut_bytes(op), unsigned{op.activation.lut_slot});
    return {};
}

Result<void> check_weight_ranges(const Operation& op) {
    for (unsigned core = 0; core < op.cores; ++core)
        if (op.weights[core].offset % 16 != 0 || op.weights[core].size % 16 != 0)
            return illegal(op, "command stream offset {}: {}: weights at {}, {} bytes: both must be multiples of 16",
                           hex(op.weights[core].offset), op.weights[core].size);
    return {};
}

Result<void> check_weights(const Operation& op) {
    for (unsigned core = 0; core < op.cores; ++core) {
        const Range& w = op.weights[core];
        const Range& s = op.scales[core];
        if (w.size == 0) {
            if (core == 0) return illegal(op, "command stream offset {}: {} has no weights");
            continue;  // that core idles
        }
        if (op.ofm_global_scale) continue;
        if (s.offset % 16 != 0)
            return illegal(op, "command stream offset {}: {}: scale records at {}, no multiple of 16", hex(s.offset));
        const std::uint64_t channels = (op.ofm.depth + op.cores - 1 - core) / op.cores,
                            wanted = channels * 10;  // 10 bytes each, 6.1
        if (s.size < wanted)
            return illegal(op, "command stream offset {}: {}: {} bytes of scale records for {} channels, wanted {}",
                           s.size, channels, wanted);
    }
    return {};
}

Result<void> check_activation(const Operation& op) {
    const Activation& a = op.activation;
    if (a.function == Activation::Function::Lut) {
        // A table of several slots begins at a multiple of its size (6.2).
        const auto slots = static_cast<unsigned>(lut_bytes(op) / kLutSlotBytes);
        if (a.lut_slot % slots != 0)
            return illegal(op, "command stream offset {}: {} reads a table of {} slots at slot {}", slots,
                           unsigned{a.lut_slot});
    } else if (a.function != Activation::Function::None && op.ofm.type.bytes == 4) {
        return illegal(op, "command stream offset {}: {} has tanh or sigmoid on 32-bit output");
    }
    const bool is_signed = a.clip_range == 0 ? op.ofm.type.is_signed : a.clip_range != 2;
    if (a.min(is_signed) > a.max(is_signed))
        return illegal(op, "command stream offset {}: {} clamps from {} to {}", a.min(is_signed), a.max(is_signed));
    return {};
}

// Section 9.4. More than the layout needs may be reserved (compilers do, now and then); less makes buffers overlap.
Result<void> check_shram(const Operation& op, const Hardware& hardware) {
    const std::uint32_t h = op.block_height, w = op.block_width, d = op.block_depth;
    if (h > kMaxBlockHeight || w > kMaxBlockWidth || d > kMaxBlockDepth)
        return illegal(
            op, "command stream offset {}: {} has a block of {} x {} x {}, at most 32 x 64 x 128 is possible", h, w, d);
    if (h % hardware.ublock_height != 0 || w % hardware.ublock_width != 0 || d % hardware.ublock_depth != 0)
        return illegal(
            op, "command stream offset {}: {} has a block of {} x {} x {}, which its smallest block does not divide", h,
            w, d);
    const ShramLayout need = shram_layout(op, hardware);
    if (is_elementwise(op.kind)) {
        const bool two_maps = has_ifm2(op.kind) && !op.ifm2_is_scalar;
        const std::uint32_t last = two_maps ? op.ifm2_ib_start : need.ib_start;
        if (two_maps && op.ifm2_ib_start < need.ib_start + need.ifm_banks)
            return illegal(op, "command stream offset {}: {}: IFM2_IB_START {} lies in the IFM buffer of {} banks",
                           unsigned{op.ifm2_ib_start}, need.ifm_banks);
        if (op.ib_end < last + need.ifm_banks || op.ib_end > need.end)
            return illegal(op, "command stream offset {}: {}: IFM_IB_END {} for buffers of {} banks from {}",
                           unsigned{op.ib_end}, need.ifm_banks, last);
        return {};
    }
    if (op.ib_end < need.ib_start + need.ifm_banks)
        return illegal(op, "command stream offset {}: {}: IFM_IB_END {}, the block needs {} banks from {}",
                       unsigned{op.ib_end}, need.ifm_banks, need.ib_start);
    if (op.ab_start < op.ib_end)
        return illegal(op, "command stream offset {}: {}: AB_START {} lies below IFM_IB_END {}", unsigned{op.ab_start},
                       unsigned{op.ib_end});
    if (op.ab_start + need.acc_banks > need.end)
        return illegal(
            op, "command stream offset {}: {}: AB_START {} leaves too little for accumulators of {} banks below {}",
            unsigned{op.ab_start}, need.acc_banks, need.end);
    return {};
}

Result<void> check_kernel(const Operation& op, const Hardware& hardware) {
    TRY(check_operands(op, hardware));
    TRY(check_types(op));
    if (!is_elementwise(op.kind)) TRY(check_window(op));
    if (has_weights(op.kind)) TRY(check_weights(op));
    TRY(check_activation(op));
    return check_shram(op, hardware);
}

Result<void> check_dma(const Operation& op, const Hardware& hardware) {
    const Dma& d = op.dma;
    if (op.parameter != 0)
        return illegal(op, "command stream offset {}: {} has parameter {}, there is only channel 0 and mode 0",
                       unsigned{op.parameter});
    if (d.src_internal && d.dst_internal)
        return illegal(op, "command stream offset {}: {} copies within the shared RAM");
    if (d.dimensions() > 0 && hardware.product == Product::EthosU55)
        return illegal(op, "command stream offset {}: {} is strided, which {} cannot", hardware.name);
    if (d.length == 0 || (d.dimensions() >= 1 && d.size0 == 0) || (d.dimensions() >= 2 && d.size1 == 0))
        return illegal(op, "command stream offset {}: {} copies nothing");
    const std::int64_t shram = std::int64_t{hardware.shram_banks} * 1024;
    for (const bool source : {true, false}) {
        if (!(source ? d.src_internal : d.dst_internal)) continue;
        const Extent e = (source ? source_box(d) : destination_box(d)).hull();
        if (e.begin < 0 || e.end > shram)
            return illegal(op, "command stream offset {}: {} uses shared RAM from {} to {}, it has {}", e.begin, e.end,
                           shram);
        // Below the tables lie buffers that running kernels use.
        if (!source && e.begin < hardware.lut_base())
            return illegal(op, "command stream offset {}: {} writes shared RAM from {}, the LUT begins at {}",
                           hex(static_cast<std::uint64_t>(e.begin)),
                           hex(static_cast<std::uint64_t>(hardware.lut_base())));
    }
    return {};
}

}  // namespace

Result<void> check_operands(const Operation& op, const Hardware& hardware) {
    if (op.cores > hardware.cores)
        return illegal(op, "command stream offset {}: {} asks for {} cores, {} has {}", unsigned{op.cores},
                       hardware.name, unsigned{hardware.cores});
    TRY(check_input_types(op));
    TRY(check_map(op, op.ifm, "IFM"));
    if (has_ifm2(op.kind) && !op.ifm2_is_scalar) TRY(check_map(op, op.ifm2, "IFM2"));
    TRY(check_map(op, op.ofm, "OFM"));
    TRY(check_table_place(op));
    if (!is_elementwise(op.kind)) TRY(check_kernel_size(op));
    return has_weights(op.kind) ? check_weight_ranges(op) : Result<void>();
}

Result<void> check(const Operation& op, const Hardware& hardware) {
    if (is_kernel(op.kind)) return check_kernel(op, hardware);
    switch (op.kind) {
        case OpKind::Dma:
            return check_dma(op, hardware);
        case OpKind::DmaWait:
            if (op.parameter >= 16)
                return illegal(op, "command stream offset {}: {} has parameter {}, there is only channel 0",
                               unsigned{op.parameter});
            return {};
        default:
            return {};
    }
}

}  // namespace talpa::npu
