#include "compiler/lower/network.h"

#include <fmt/format.h>

#include <algorithm>

namespace talpa::compiler {
namespace {

// Row y of the result needs row y of the operands, and no more.
bool moves_rows_alone(npu::OpKind kind) {
    return npu::is_elementwise(kind) || kind == npu::OpKind::Dma;
}

std::uint32_t extent_read(std::uint32_t ofm, std::uint32_t stride, std::uint32_t kernel, std::uint32_t padding,
                          npu::Upscale upscale) {
    const std::int64_t need = (std::int64_t{ofm} - 1) * stride + kernel - padding;
    const std::int64_t factor = upscale == npu::Upscale::None ? 1 : 2;
    return static_cast<std::uint32_t>(std::max<std::int64_t>(1, (need + factor - 1) / factor));
}

}  // namespace

std::uint32_t columns_read(const npu::Operation& op, std::uint32_t ofm_width) {
    if (moves_rows_alone(op.kind)) return ofm_width;
    return extent_read(ofm_width, op.kernel.stride_x, op.kernel.dilated_width(), op.padding.left + op.padding.right,
                       op.upscale);
}

RowWindow input_rows(const Step& step, std::uint32_t first, std::uint32_t end) {
    const npu::Operation& op = step.op;
    if (moves_rows_alone(op.kind)) return {first, end, 0, 0};
    const std::int64_t factor = op.upscale == npu::Upscale::None ? 1 : 2;
    const std::int64_t height = std::int64_t{step.ifm.height} * factor;  // of the upscaled grid
    const std::int64_t from = std::int64_t{first} * op.kernel.stride_y - op.padding.top;
    const std::int64_t to = (std::int64_t{end} - 1) * op.kernel.stride_y - op.padding.top + op.kernel.dilated_height();
    RowWindow w;
    w.pad_top = static_cast<std::uint32_t>(std::max<std::int64_t>(0, -from));
    w.pad_bottom = static_cast<std::uint32_t>(std::max<std::int64_t>(0, to - height));
    const std::int64_t low = std::clamp<std::int64_t>(from, 0, height - 1),
                       high = std::clamp<std::int64_t>(to, 1, height);
    w.first = static_cast<std::uint32_t>(low / factor);
    w.end = static_cast<std::uint32_t>(std::max((high + factor - 1) / factor, low / factor + 1));
    return w;
}

std::string describe(const Network& network, const Step& step) {
    const auto map = [&](const View& v) {
        if (v.tensor == kNoTensor) return std::string("-");
        const Tensor& t = network.tensors[v.tensor];
        return fmt::format("{}[{}x{}x{}]{}", t.name, v.height, v.width, v.depth,
                           t.layout == npu::Layout::Nhcwb16 ? "b" : "");
    };
    std::string text = fmt::format("{:<10} {} <- {}", npu::op_kind_name(step.op.kind), map(step.ofm), map(step.ifm));
    if (npu::has_ifm2(step.op.kind))
        text += step.op.ifm2_is_scalar ? fmt::format(", {}", step.op.ifm2_scalar) : ", " + map(step.ifm2);
    if (!moves_rows_alone(step.op.kind))
        text += fmt::format("  kernel {}x{} stride {}x{} pad {},{},{},{}", step.op.kernel.height, step.op.kernel.width,
                            unsigned{step.op.kernel.stride_y}, unsigned{step.op.kernel.stride_x}, step.op.padding.top,
                            step.op.padding.left, step.op.padding.bottom, step.op.padding.right);
    if (step.table) text += "  lut";
    return text;
}

}  // namespace talpa::compiler
