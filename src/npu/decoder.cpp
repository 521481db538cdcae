#include "npu/decoder.h"

#include "npu/block.h"

namespace talpa::npu {

const char* op_kind_name(OpKind kind) {
    static constexpr const char* kNames[] = {
        "CONV", "DEPTHWISE", "POOL_MAX", "POOL_AVERAGE", "REDUCE_SUM", "MUL", "ADD",
        "SUB",  "MIN",       "MAX",      "LRELU",        "ABS",        "CLZ", "SHR",
        "SHL",  "DMA",       "DMA_WAIT", "KERNEL_WAIT",  "PMU_MASK",   "IRQ", "STOP"};
    return kNames[static_cast<std::size_t>(kind)];
}

Result<std::optional<Command>> CommandReader::next() {
    if (position_ == words_.size()) return std::nullopt;
    const std::uint32_t offset = offset_bytes();
    const std::uint32_t word = words_[position_++];
    const unsigned control = (word >> 14) & 3;
    Command command{offset, static_cast<std::uint16_t>(word & 0x3FF), control == 1,
                    static_cast<std::uint16_t>(word >> 16), 0};
    if (control > 1)
        return fail(ErrorCode::CommandStream, "command stream offset {}: word {} has the reserved control value {}",
                    offset, hex(word), control);
    if ((word & 0x3C00) != 0)
        return fail(ErrorCode::CommandStream, "command stream offset {}: word {} sets reserved bits", offset,
                    hex(word));
    if (!is_command(command))
        return fail(ErrorCode::CommandStream, "command stream offset {}: no command has code {}", offset,
                    hex(word & 0xFFFF));
    if (command.has_payload) {
        if (position_ == words_.size())
            return fail(ErrorCode::CommandStream,
                        "command stream offset {}: command {} needs a payload beyond the end of the stream", offset,
                        hex(word & 0xFFFF));
        command.payload = words_[position_++];
    }
    return command;
}

void RegisterState::apply(const Command& c) {
    if (c.has_payload) {
        cmd1_[c.code] = c;
        written1_[c.code] = true;
    } else {
        cmd0_[c.code - 0x100u] = c.parameter;
        written0_[c.code - 0x100u] = true;
    }
}

namespace {

std::unexpected<Error> reserved(const Command& op, const char* what, unsigned value) {
    return fail(ErrorCode::CommandStream, "command stream offset {}: {} has the reserved value {}", op.offset_bytes,
                what, value);
}

Result<std::uint8_t> region(const Command& op, const char* what, unsigned value) {
    if (value >= kRegionCount) return reserved(op, what, value);
    return static_cast<std::uint8_t>(value);
}

std::int32_t zero_point(std::uint16_t raw, ElementType type) {
    return type.is_signed ? static_cast<std::int16_t>(raw) : static_cast<std::int32_t>(raw);
}

Scale scale(const Command& c) {
    return {c.payload, static_cast<std::uint8_t>(c.parameter & 0x3F)};
}

// 8-bit fields [0] signed, log2 of the size at `size_bit`, [6] bricks.
Result<void> element_type(const Command& op, std::uint16_t precision, unsigned size_bit, FeatureMap& fm) {
    const unsigned log2 = (precision >> size_bit) & 3;
    if (log2 == 3) return reserved(op, TALPA_SENTENCE("the precision of a feature map"), log2);
    fm.type = {static_cast<std::uint8_t>(1u << log2), (precision & 1) != 0};
    fm.layout = (precision & 0x40) != 0 ? Layout::Nhcwb16 : Layout::Nhwc;
    return {};
}

Result<Rounding> rounding(const Command& op, std::uint16_t precision) {
    const unsigned mode = precision >> 14;
    if (mode == 3) return reserved(op, TALPA_SENTENCE("the rounding mode"), mode);
    return static_cast<Rounding>(mode);
}

Result<Activation> activation(const Command& op, std::uint16_t word, std::uint16_t min, std::uint16_t max) {
    Activation a;
    a.raw_min = min;
    a.raw_max = max;
    a.clip_range = static_cast<std::uint8_t>(word >> 12);
    if (a.clip_range != 0 && a.clip_range != 2 && a.clip_range != 3 && a.clip_range != 5)
        return reserved(op, TALPA_SENTENCE("the clip range of ACTIVATION"), a.clip_range);
    const unsigned function = word & 0x1F;
    if (function == 0) {
        a.function = Activation::Function::None;
    } else if (function == 3) {
        a.function = Activation::Function::Tanh;
    } else if (function == 4) {
        a.function = Activation::Function::Sigmoid;
    } else if (function >= 16 && function <= 23) {
        a.function = Activation::Function::Lut;
        a.lut_slot = static_cast<std::uint8_t>(function - 16);
    } else {
        return reserved(op, TALPA_SENTENCE("the function of ACTIVATION"), function);
    }
    return a;
}

Result<OpKind> kind_of(const Command& c) {
    switch (static_cast<Op>(c.code)) {
        case Op::STOP:
            return OpKind::Stop;
        case Op::IRQ:
            return OpKind::Irq;
        case Op::CONV:
            return OpKind::Conv;
        case Op::DEPTHWISE:
            return OpKind::Depthwise;
        case Op::POOL: {
            static constexpr OpKind kPools[] = {OpKind::MaxPool, OpKind::AvgPool, OpKind::ReduceSum};
            if (c.parameter >= 3) return reserved(c, TALPA_SENTENCE("the mode of POOL"), c.parameter);
            return kPools[c.parameter];
        }
        case Op::ELEMENTWISE: {
            static constexpr OpKind kOps[] = {OpKind::Mul,   OpKind::Add, OpKind::Sub, OpKind::Min, OpKind::Max,
                                              OpKind::Lrelu, OpKind::Abs, OpKind::Clz, OpKind::Shr, OpKind::Shl};
            if (c.parameter >= 10) return reserved(c, TALPA_SENTENCE("the mode of ELEMENTWISE"), c.parameter);
            return kOps[c.parameter];
        }
        case Op::DMA_START:
            return OpKind::Dma;
        case Op::DMA_WAIT:
            return OpKind::DmaWait;
        case Op::KERNEL_WAIT:
            return OpKind::KernelWait;
        case Op::PMU_MASK:
            return OpKind::PmuMask;
    }
    return reserved(c, TALPA_SENTENCE("the operation"), c.code);
}

}  // namespace

void RegisterState::resolve_tiles(FeatureMap& fm, Cmd1 base0, Cmd1 stride_x, Cmd0 width0) const {
    const std::size_t b = index(base0), s = index(stride_x), w = index(width0);
    for (std::size_t i = 0; i < 4; ++i) fm.base[i] = cmd1_[b + i].address();
    fm.stride_x = cmd1_[s].signed_address();
    fm.stride_y = cmd1_[s + 1].signed_address();
    fm.stride_c = cmd1_[s + 2].signed_address();
    fm.width0 = cmd0_[w] + 1u;
    fm.height0 = cmd0_[w + 1] + 1u;
    fm.height1 = cmd0_[w + 2] + 1u;
}

Result<void> RegisterState::resolve_dma(Operation& op, const Command& c) const {
    const std::uint16_t src = get(Cmd0::DMA0_SRC_REGION), dst = get(Cmd0::DMA0_DST_REGION);
    Dma& d = op.dma;
    d.src_internal = (src & 0x100) != 0;
    d.dst_internal = (dst & 0x100) != 0;
    // Of the shared RAM there is only one: its region number means nothing.
    if (!d.src_internal) {
        TRY_ASSIGN(d.src_region, region(c, TALPA_SENTENCE("DMA0_SRC_REGION"), src & 0xFF));
    }
    if (!d.dst_internal) {
        TRY_ASSIGN(d.dst_region, region(c, TALPA_SENTENCE("DMA0_DST_REGION"), dst & 0xFF));
    }
    d.src_stride_mode = static_cast<std::uint8_t>((src >> 9) & 3);
    d.dst_stride_mode = static_cast<std::uint8_t>((dst >> 9) & 3);
    if (d.src_stride_mode == 3 || d.dst_stride_mode == 3)
        return reserved(c, TALPA_SENTENCE("the stride mode of the DMA"), 3);
    d.src = get(Cmd1::DMA0_SRC).address();
    d.dst = get(Cmd1::DMA0_DST).address();
    d.length = get(Cmd1::DMA0_LEN).address();
    if (d.dimensions() >= 1) {
        d.size0 = get(Cmd0::DMA0_SIZE0);
        d.skip0 = get(Cmd1::DMA0_SKIP0).signed_address();
    }
    if (d.dimensions() >= 2) {
        d.size1 = get(Cmd0::DMA0_SIZE1);
        d.skip1 = get(Cmd1::DMA0_SKIP1).signed_address();
    }
    return {};
}

Result<void> RegisterState::resolve_output(Operation& op, const Command& c) const {
    const std::uint16_t precision = get(Cmd0::OFM_PRECISION);
    TRY(element_type(c, precision, 1, op.ofm));
    TRY_ASSIGN(op.ofm_rounding, rounding(c, precision));
    op.ofm_global_scale = (precision & 0x100) != 0;
    if (op.ofm_global_scale) op.ofm_scale = scale(get(Cmd1::OFM_SCALE));
    op.ofm.zero_point = zero_point(get(Cmd0::OFM_ZERO_POINT), op.ofm.type);
    op.ofm.height = get(Cmd0::OFM_HEIGHT_M1) + 1u;
    op.ofm.width = get(Cmd0::OFM_WIDTH_M1) + 1u;
    op.ofm.depth = get(Cmd0::OFM_DEPTH_M1) + 1u;
    resolve_tiles(op.ofm, Cmd1::OFM_BASE0, Cmd1::OFM_STRIDE_X, Cmd0::OFM_WIDTH0_M1);
    TRY_ASSIGN(op.ofm.region, region(c, TALPA_SENTENCE("OFM_REGION"), get(Cmd0::OFM_REGION)));
    TRY_ASSIGN(op.activation,
               activation(c, get(Cmd0::ACTIVATION), get(Cmd0::ACTIVATION_MIN), get(Cmd0::ACTIVATION_MAX)));
    op.block_height = get(Cmd0::OFM_BLK_HEIGHT_M1) + 1u;
    op.block_width = get(Cmd0::OFM_BLK_WIDTH_M1) + 1u;
    op.block_depth = get(Cmd0::OFM_BLK_DEPTH_M1) + 1u;
    op.blockdep = static_cast<std::uint8_t>(get(Cmd0::BLOCKDEP) & 3);
    op.ib_end = get(Cmd0::IFM_IB_END);
    op.ab_start = get(Cmd0::AB_START);
    if (get(Cmd0::PARALLEL_MODE) >= kMaxCores)
        return reserved(c, TALPA_SENTENCE("PARALLEL_MODE"), get(Cmd0::PARALLEL_MODE));
    op.cores = static_cast<std::uint8_t>(get(Cmd0::PARALLEL_MODE) + 1);
    const unsigned acc = get(Cmd0::ACC_FORMAT);
    if (acc > 2) return reserved(c, TALPA_SENTENCE("ACC_FORMAT"), acc);
    op.acc_format = static_cast<AccFormat>(acc);
    return {};
}

Result<void> RegisterState::resolve_ifm(Operation& op, const Command& c) const {
    TRY(element_type(c, get(Cmd0::IFM_PRECISION), 2, op.ifm));
    op.ifm.zero_point = zero_point(get(Cmd0::IFM_ZERO_POINT), op.ifm.type);
    resolve_tiles(op.ifm, Cmd1::IFM_BASE0, Cmd1::IFM_STRIDE_X, Cmd0::IFM_WIDTH0_M1);
    TRY_ASSIGN(op.ifm.region, region(c, TALPA_SENTENCE("IFM_REGION"), get(Cmd0::IFM_REGION)));
    return {};
}

Result<void> RegisterState::resolve_elementwise(Operation& op, const Command& c) const {
    op.ifm.height = op.ofm.height;
    op.ifm.width = op.ofm.width;
    op.ifm.depth = op.ofm.depth;
    const std::uint16_t precision = get(Cmd0::IFM_PRECISION);
    TRY_ASSIGN(op.ifm_rounding, rounding(c, precision));
    const unsigned mode = (precision >> 8) & 3;
    if (mode == 3) return reserved(c, TALPA_SENTENCE("the operand scale mode of IFM_PRECISION"), mode);
    op.operand_scaling = static_cast<OperandScaling>(mode);
    if (op.kind == OpKind::Add || op.kind == OpKind::Sub) {
        op.opa_scale = scale(get(Cmd1::OPA_SCALE));
        op.opb_scale = get(Cmd1::OPB_SCALE).payload;
    }
    if (!has_ifm2(op.kind)) return {};
    TRY(element_type(c, get(Cmd0::IFM2_PRECISION), 2, op.ifm2));
    op.ifm2.zero_point = zero_point(get(Cmd0::IFM2_ZERO_POINT), op.ifm2.type);
    const std::uint16_t broadcast = get(Cmd0::IFM2_BROADCAST);
    op.ifm2_broadcast_h = (broadcast & 1) != 0;
    op.ifm2_broadcast_w = (broadcast & 2) != 0;
    op.ifm2_broadcast_c = (broadcast & 4) != 0;
    op.operands_reversed = (broadcast & 0x40) != 0;
    op.ifm2_is_scalar = (broadcast & 0x80) != 0;
    if (op.ifm2_is_scalar) {
        op.ifm2.height = op.ifm2.width = op.ifm2.depth = 1;
        const std::uint16_t raw = get(Cmd0::IFM2_SCALAR);
        const bool byte = op.ifm2.type.bytes == 1;
        if (op.ifm2.type.is_signed)
            op.ifm2_scalar = byte ? static_cast<std::int8_t>(raw) : static_cast<std::int16_t>(raw);
        else
            op.ifm2_scalar = byte ? raw & 0xFF : raw;
        return {};
    }
    op.ifm2.height = op.ifm2_broadcast_h ? 1 : op.ofm.height;
    op.ifm2.width = op.ifm2_broadcast_w ? 1 : op.ofm.width;
    op.ifm2.depth = op.ifm2_broadcast_c ? 1 : op.ofm.depth;
    resolve_tiles(op.ifm2, Cmd1::IFM2_BASE0, Cmd1::IFM2_STRIDE_X, Cmd0::IFM2_WIDTH0_M1);
    TRY_ASSIGN(op.ifm2.region, region(c, TALPA_SENTENCE("IFM2_REGION"), get(Cmd0::IFM2_REGION)));
    op.ifm2_ib_start = get(Cmd0::IFM2_IB_START);
    return {};
}

Result<void> RegisterState::resolve_window(Operation& op, const Command& c) const {
    op.ifm.depth = get(Cmd0::IFM_DEPTH_M1) + 1u;
    // Where input and output channels correspond, both registers hold the same depth (section 4.2).
    if (!sums_over_depth(op.kind) && op.ifm.depth != op.ofm.depth)
        return fail(ErrorCode::CommandStream, "command stream offset {}: {} has {} input and {} output channels",
                    c.offset_bytes, op_kind_name(op.kind), op.ifm.depth, op.ofm.depth);
    if (op.kind == OpKind::ReduceSum && op.ofm.depth != 1)
        return fail(ErrorCode::CommandStream, "command stream offset {}: REDUCE_SUM has {} output channels, wanted 1",
                    c.offset_bytes, op.ofm.depth);

    const std::uint16_t stride = get(Cmd0::KERNEL_STRIDE);
    Kernel& k = op.kernel;
    k.stride_x = static_cast<std::uint8_t>(1 + (stride & 1) + 2 * ((stride >> 6) & 7));
    k.stride_y = static_cast<std::uint8_t>(1 + ((stride >> 1) & 1) + 2 * ((stride >> 9) & 7));
    k.part_kernel_first = (stride & 4) != 0;
    k.dilation_x = static_cast<std::uint8_t>(1 + ((stride >> 3) & 1));
    k.dilation_y = static_cast<std::uint8_t>(1 + ((stride >> 4) & 1));
    k.decompose_4x4 = (stride & 0x20) != 0;
    const unsigned kw = get(Cmd0::KERNEL_WIDTH_M1), kh = get(Cmd0::KERNEL_HEIGHT_M1);
    if (kw % k.dilation_x != 0 || kh % k.dilation_y != 0)
        return fail(ErrorCode::CommandStream,
                    "command stream offset {}: kernel extent {} x {} does not fit its dilation {} x {}", c.offset_bytes,
                    kh + 1, kw + 1, k.dilation_y, k.dilation_x);
    k.width = kw / k.dilation_x + 1;
    k.height = kh / k.dilation_y + 1;
    op.padding = {get(Cmd0::IFM_PAD_TOP) & 0x7Fu, get(Cmd0::IFM_PAD_LEFT) & 0x7Fu, get(Cmd0::IFM_PAD_RIGHT) & 0xFFu,
                  get(Cmd0::IFM_PAD_BOTTOM) & 0xFFu};
    const unsigned upscale = get(Cmd0::IFM_UPSCALE);
    if (upscale > 2) return reserved(c, TALPA_SENTENCE("IFM_UPSCALE"), upscale);
    op.upscale = static_cast<Upscale>(upscale);

    // What is read follows from the output (section 4.2); on an upscaled grid half as much is stored.
    const auto need = [](std::uint32_t outputs, std::uint32_t step, std::uint32_t extent, std::uint32_t padding) {
        return std::int64_t{outputs - 1} * step + extent - padding;
    };
    const std::int64_t need_h = need(op.ofm.height, k.stride_y, kh + 1, op.padding.top + op.padding.bottom);
    const std::int64_t need_w = need(op.ofm.width, k.stride_x, kw + 1, op.padding.left + op.padding.right);
    if (need_h <= 0 || need_w <= 0)
        return fail(ErrorCode::CommandStream,
                    "command stream offset {}: {} reads {} rows and {} columns: its padding covers the whole window",
                    c.offset_bytes, op_kind_name(op.kind), need_h, need_w);
    const bool halved = op.upscale != Upscale::None;
    op.ifm.height = static_cast<std::uint32_t>(halved ? (need_h + 1) >> 1 : need_h);
    op.ifm.width = static_cast<std::uint32_t>(halved ? (need_w + 1) >> 1 : need_w);
    return {};
}

Result<void> RegisterState::resolve_weights(Operation& op, const Command& c) const {
    TRY_ASSIGN(op.weight_region, region(c, TALPA_SENTENCE("WEIGHT_REGION"), get(Cmd0::WEIGHT_REGION)));
    op.weights[0] = {get(Cmd1::WEIGHT_BASE).address(), get(Cmd1::WEIGHT_LENGTH).payload};
    if (op.cores > 1) op.weights[1] = {get(Cmd1::WEIGHT1_BASE).address(), get(Cmd1::WEIGHT1_LENGTH).payload};
    if (op.ofm_global_scale) return {};
    TRY_ASSIGN(op.scale_region, region(c, TALPA_SENTENCE("SCALE_REGION"), get(Cmd0::SCALE_REGION)));
    op.scales[0] = {get(Cmd1::SCALE_BASE).address(), get(Cmd1::SCALE_LENGTH).payload};
    if (op.cores > 1) op.scales[1] = {get(Cmd1::SCALE1_BASE).address(), get(Cmd1::SCALE1_LENGTH).payload};
    return {};
}

Result<Operation> RegisterState::resolve(const Command& c) const {
    Operation op;
    TRY_ASSIGN(op.kind, kind_of(c));
    op.offset_bytes = c.offset_bytes;
    op.parameter = c.parameter;
    if (op.kind == OpKind::Dma) TRY(resolve_dma(op, c));
    if (!is_kernel(op.kind)) return op;
    TRY(resolve_output(op, c));
    TRY(resolve_ifm(op, c));
    if (is_elementwise(op.kind)) {
        TRY(resolve_elementwise(op, c));
        return op;
    }
    TRY(resolve_window(op, c));
    if (has_weights(op.kind)) TRY(resolve_weights(op, c));
    return op;
}

Result<std::optional<Operation>> Decoder::next() {
    while (!stopped_) {
        TRY_ASSIGN(const auto command, reader_.next());
        if (!command)
            return fail(ErrorCode::CommandStream, "the command stream of {} bytes ends without STOP",
                        reader_.offset_bytes());
        if (!command->is_operation()) {
            state_.apply(*command);
            continue;
        }
        TRY_ASSIGN(const auto operation, state_.resolve(*command));
        stopped_ = operation.kind == OpKind::Stop;
        return operation;
    }
    return std::nullopt;
}

}  // namespace talpa::npu
