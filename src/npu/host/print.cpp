#include "npu/host/print.h"

#include <fmt/format.h>

#include <array>

#include "npu/host/command_reference.h"

namespace talpa::npu {

namespace {

constexpr std::array<const char*, 4> kRoundings{"TFL", "truncate", "natural", "rounding?"};
constexpr std::array<const char*, 4> kUpscales{"none", "nearest 2x2", "zeros 2x2", "upscale?"};
constexpr std::array<const char*, 4> kAccFormats{"int32", "int40", "fp16", "format?"};
constexpr std::array<const char*, 4> kOperandScalings{"scale A and B", "scale A", "scale B", "scale?"};

std::string rendered(const Error& error) {
    std::array<char, 512> buffer;
    return std::string(error.render(buffer));
}

std::string precision_text(std::uint16_t v, unsigned size_bit) {
    static constexpr std::array<const char*, 4> kBits{"8", "16", "32", "?"};
    return fmt::format("{}{} {}", (v & 1) != 0 ? "int" : "uint", kBits[(v >> size_bit) & 3],
                       (v & 0x40) != 0 ? "NHCWB16" : "NHWC");
}

std::string clip_text(unsigned range) {
    switch (range) {
        case 0:
            return "";
        case 2:
            return " clip uint8";
        case 3:
            return " clip int8";
        case 5:
            return " clip int16";
        default:
            return fmt::format(" clip {}?", range);
    }
}

std::string activation_text(std::uint16_t v) {
    const unsigned function = v & 0x1F;
    const std::string name = function == 0                      ? "none"
                             : function == 3                    ? "tanh"
                             : function == 4                    ? "sigmoid"
                             : function >= 16 && function <= 23 ? fmt::format("LUT slot {}", function - 16)
                                                                : fmt::format("function {}?", function);
    return name + clip_text(v >> 12);
}

std::string stride_text(std::uint16_t v) {
    std::string text =
        fmt::format("stride {}x{}", 1 + ((v >> 1) & 1) + 2 * ((v >> 9) & 7), 1 + (v & 1) + 2 * ((v >> 6) & 7));
    if ((v & 0x18) != 0) text += fmt::format(" dilation {}x{}", 1 + ((v >> 4) & 1), 1 + ((v >> 3) & 1));
    text += (v & 4) != 0 ? " part-kernel-first" : " depth-first";
    if ((v & 0x20) != 0) text += " 4x4";
    return text;
}

std::string broadcast_text(bool h, bool w, bool c, bool reversed, bool scalar) {
    std::string text;
    if (h || w || c) text += fmt::format("broadcast {}{}{}", h ? "H" : "", w ? "W" : "", c ? "C" : "");
    if (reversed) text += text.empty() ? "reversed" : " reversed";
    if (scalar) text += text.empty() ? "scalar" : " scalar";
    return text.empty() ? "none" : text;
}

std::string dma_region_text(std::uint16_t v) {
    static constexpr std::array<const char*, 4> kModes{"", " 2D", " 3D", " mode?"};
    return ((v & 0x100) != 0 ? "shared RAM" : fmt::format("{}", v & 0xFF)) + std::string(kModes[(v >> 9) & 3]);
}

std::string value_text(const Command& c, RegisterFormat format) {
    const std::uint16_t v = c.parameter;
    switch (format) {
        case RegisterFormat::Number:
            return fmt::format("{}", v);
        case RegisterFormat::MinusOne:
            return fmt::format("{} + 1", v);
        case RegisterFormat::Signed:
            return fmt::format("{}", static_cast<std::int16_t>(v));
        case RegisterFormat::IfmPrecision:
            return fmt::format("{}, {}, {}", precision_text(v, 2), kOperandScalings[(v >> 8) & 3], kRoundings[v >> 14]);
        case RegisterFormat::Ifm2Precision:
            return precision_text(v, 2);
        case RegisterFormat::OfmPrecision:
            return fmt::format("{}, {}, {}", precision_text(v, 1), (v & 0x100) != 0 ? "one scale" : "scale per channel",
                               kRoundings[v >> 14]);
        case RegisterFormat::Upscale:
            return kUpscales[v < 3 ? v : 3];
        case RegisterFormat::KernelStride:
            return stride_text(v);
        case RegisterFormat::AccFormat:
            return kAccFormats[v < 3 ? v : 3];
        case RegisterFormat::Activation:
            return activation_text(v);
        case RegisterFormat::DmaRegion:
            return dma_region_text(v);
        case RegisterFormat::Broadcast:
            return broadcast_text((v & 1) != 0, (v & 2) != 0, (v & 4) != 0, (v & 0x40) != 0, (v & 0x80) != 0);
        case RegisterFormat::Address:
            return fmt::format("{:#x}", c.address());
        case RegisterFormat::Stride:
            return fmt::format("{}", c.signed_address());
        case RegisterFormat::Length:
            return fmt::format("{}", c.payload);
        case RegisterFormat::Length40:
            return fmt::format("{}", c.address());
        case RegisterFormat::Scale:
            return fmt::format("{} >> {}", c.payload, v & 0x3F);
        case RegisterFormat::Multiplier:
            return fmt::format("{}", c.payload);
    }
    return {};
}

std::string kernel_text(const Operation& op) {
    if (is_elementwise(op.kind)) return "";
    const Kernel& k = op.kernel;
    std::string text = fmt::format(" {}x{}", k.height, k.width);
    if (k.stride_y != 1 || k.stride_x != 1)
        text +=
            k.stride_y == k.stride_x ? fmt::format(" s{}", k.stride_y) : fmt::format(" s{}x{}", k.stride_y, k.stride_x);
    if (k.dilation_y != 1 || k.dilation_x != 1) text += fmt::format(" d{}x{}", k.dilation_y, k.dilation_x);
    if (op.upscale != Upscale::None) text += op.upscale == Upscale::Nearest ? " up-nearest" : " up-zeros";
    return text;
}

std::string dma_side_text(bool internal, unsigned region, std::uint64_t address) {
    return internal ? fmt::format("SHRAM:{:#x}", address) : fmt::format("{}:{:#x}", region, address);
}

std::string tiles_text(const FeatureMap& fm) {
    if (fm.height <= fm.height0 && fm.width <= fm.width0) return "";
    return fmt::format(", tiles {}x{} at {:#x}, {:#x}, {:#x}, {:#x}", fm.height0, fm.width0, fm.base[0], fm.base[1],
                       fm.base[2], fm.base[3]);
}

std::string map_details(const char* name, const FeatureMap& fm) {
    const std::string strides = fm.layout == Layout::Nhwc ? fmt::format("strides Y {} X {}", fm.stride_y, fm.stride_x)
                                                          : fmt::format("strides Y {} C {}", fm.stride_y, fm.stride_c);
    return fmt::format("    {:<8}{}, zero point {}, {}{}\n", name, feature_map_text(fm), fm.zero_point, strides,
                       tiles_text(fm));
}

std::string output_details(const Operation& op) {
    const Activation& a = op.activation;
    const bool is_signed = a.clip_range == 0 ? op.ofm.type.is_signed : a.clip_range != 2;
    std::string text = op.ofm_global_scale
                           ? fmt::format("    scale   {} >> {}, {}\n", op.ofm_scale.multiplier, op.ofm_scale.shift,
                                         kRoundings[static_cast<std::size_t>(op.ofm_rounding)])
                           : fmt::format("    scale   {}, {}\n", has_weights(op.kind) ? "per channel" : "none",
                                         kRoundings[static_cast<std::size_t>(op.ofm_rounding)]);
    static constexpr std::array<const char*, 4> kFunctions{"", "tanh, ", "sigmoid, ", ""};
    const std::string function = a.function == Activation::Function::Lut
                                     ? fmt::format("LUT slot {}, ", a.lut_slot)
                                     : kFunctions[static_cast<std::size_t>(a.function)];
    return text + fmt::format("    output  {}clamp {}..{}{}\n", function, a.min(is_signed), a.max(is_signed),
                              clip_text(a.clip_range));
}

std::string kernel_details(const Operation& op) {
    std::string text = map_details("IFM", op.ifm);
    if (has_ifm2(op.kind)) {
        text += op.ifm2_is_scalar
                    ? fmt::format("    IFM2    scalar {}, zero point {}\n", op.ifm2_scalar, op.ifm2.zero_point)
                    : map_details("IFM2", op.ifm2);
        const std::string how =
            broadcast_text(op.ifm2_broadcast_h, op.ifm2_broadcast_w, op.ifm2_broadcast_c, op.operands_reversed, false);
        if (how != "none") text += fmt::format("            {}\n", how);
    }
    text += map_details("OFM", op.ofm);
    if (op.kind == OpKind::Add || op.kind == OpKind::Sub)
        text += fmt::format("    operands  {}, A {} >> {}, B {}, {}\n",
                            kOperandScalings[static_cast<std::size_t>(op.operand_scaling)], op.opa_scale.multiplier,
                            op.opa_scale.shift, op.opb_scale, kRoundings[static_cast<std::size_t>(op.ifm_rounding)]);
    if (op.padding.any())
        text += fmt::format("    padding top {} left {} bottom {} right {}\n", op.padding.top, op.padding.left,
                            op.padding.bottom, op.padding.right);
    if (has_weights(op.kind)) {
        for (unsigned core = 0; core < op.cores; ++core) {
            text += fmt::format("    weights {}:{:#x} {} bytes", op.weight_region, op.weights[core].offset,
                                op.weights[core].size);
            if (!op.ofm_global_scale)
                text += fmt::format(", scales {}:{:#x} {} bytes", op.scale_region, op.scales[core].offset,
                                    op.scales[core].size);
            if (op.kind == OpKind::Conv) text += op.kernel.part_kernel_first ? ", part-kernel-first" : ", depth-first";
            text += op.cores > 1 ? fmt::format(", core {}\n", core) : "\n";
        }
    }
    text += output_details(op);
    return text + fmt::format("    block   {}x{}x{}, BLOCKDEP {}, {}, banks: IB_END {} AB_START {}{}\n",
                              op.block_height, op.block_width, op.block_depth, op.blockdep,
                              kAccFormats[static_cast<std::size_t>(op.acc_format)], op.ib_end, op.ab_start,
                              has_ifm2(op.kind) && !op.ifm2_is_scalar
                                  ? fmt::format(" IFM2_IB_START {}", op.ifm2_ib_start)
                                  : "");
}

}  // namespace

std::string type_text(ElementType type) {
    return fmt::format("{}{}", type.is_signed ? "int" : "uint", type.bytes * 8);
}

std::string feature_map_text(const FeatureMap& fm) {
    return fmt::format("{}:{:#x} {}x{}x{} {} {}", fm.region, fm.base[0], fm.height, fm.width, fm.depth,
                       type_text(fm.type), fm.layout == Layout::Nhwc ? "NHWC" : "NHCWB16");
}

std::string command_text(const Command& command) {
    const auto name = command_name(command).value_or("?");
    const RegisterReference* reference = find_register(command);
    const std::string value =
        reference != nullptr ? value_text(command, reference->format) : fmt::format("{}", command.parameter);
    return fmt::format("{:6}  {:<18}{}", command.offset_bytes, name, value);
}

std::string operation_summary(const Operation& op) {
    const char* name = op_kind_name(op.kind);
    if (op.kind == OpKind::Dma) {
        const Dma& d = op.dma;
        const std::string shape = d.dimensions() == 0   ? fmt::format("{}", d.length)
                                  : d.dimensions() == 1 ? fmt::format("{}x{}", d.size0, d.length)
                                                        : fmt::format("{}x{}x{}", d.size1, d.size0, d.length);
        return fmt::format("{}  {} -> {} {} bytes", name, dma_side_text(d.src_internal, d.src_region, d.src),
                           dma_side_text(d.dst_internal, d.dst_region, d.dst), shape);
    }
    if (!is_kernel(op.kind)) return fmt::format("{} {}", name, op.parameter);
    std::string operands = feature_map_text(op.ifm);
    if (has_ifm2(op.kind))
        operands += op.ifm2_is_scalar ? fmt::format(", scalar {}", op.ifm2_scalar) : ", " + feature_map_text(op.ifm2);
    return fmt::format("{}{}  {} -> {}", name, kernel_text(op), operands, feature_map_text(op.ofm));
}

std::string operation_text(const Operation& op) {
    std::string text = fmt::format("{:6}  {}\n", op.offset_bytes, operation_summary(op));
    if (is_kernel(op.kind)) return text + kernel_details(op);
    const Dma& d = op.dma;
    if (op.kind == OpKind::Dma && d.dimensions() > 0)
        text += fmt::format("    strides source {}D, destination {}D, skip {} after a row, {} after a plane\n",
                            d.src_stride_mode + 1, d.dst_stride_mode + 1, d.skip0, d.skip1);
    return text;
}

std::string stream_text(Words words, Listing listing) {
    std::string text;
    CommandReader reader{words};
    RegisterState state;
    while (true) {
        const auto command = reader.next();
        if (!command) return text + "error: " + rendered(command.error()) + "\n";
        if (!*command)
            return text +
                   fmt::format("error: the command stream of {} bytes ends without STOP\n", reader.offset_bytes());
        const Command& c = **command;
        if (listing != Listing::Operations && (!c.is_operation() || listing == Listing::Commands))
            text += command_text(c) + "\n";
        if (!c.is_operation()) {
            state.apply(c);
            continue;
        }
        const auto op = state.resolve(c);
        if (!op) return text + "error: " + rendered(op.error()) + "\n";
        if (listing != Listing::Commands) text += operation_text(*op);
        if (op->kind == OpKind::Stop) return text;
    }
}

}  // namespace talpa::npu
