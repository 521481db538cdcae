#include <fmt/format.h>

#include "inspect/network.h"

namespace talpa::inspect {

using npu::OpKind;

std::string operation_title(const npu::Operation& op) {
    const npu::Kernel& k = op.kernel;
    const bool one = k.height == 1 && k.width == 1;
    std::string window;
    if (!one) window = fmt::format(" {}x{}", k.height, k.width);
    if (k.stride_y != 1 || k.stride_x != 1)
        window +=
            k.stride_y == k.stride_x ? fmt::format(" s{}", k.stride_y) : fmt::format(" s{}x{}", k.stride_y, k.stride_x);
    if (k.dilation_y != 1 || k.dilation_x != 1) window += fmt::format(" d{}", std::max(k.dilation_y, k.dilation_x));
    const char* upscaled = op.upscale == npu::Upscale::Zeros     ? "Transposed conv"
                           : op.upscale == npu::Upscale::Nearest ? "Upsample conv"
                                                                 : nullptr;
    switch (op.kind) {
        case OpKind::Conv:
            if (upscaled != nullptr) return upscaled + window;
            if (one && op.ofm.height == 1 && op.ofm.width == 1) return "Fully connected";
            return one ? "Conv 1x1" + window : "Conv" + window;
        case OpKind::Depthwise:
            return (op.upscale == npu::Upscale::None ? "Depthwise" : "Upsample depthwise") +
                   (one ? " 1x1" + window : window);
        case OpKind::MaxPool:
            return "Max pool" + window;
        case OpKind::AvgPool:
            if (npu_model::is_transposing_copy(op)) return "Transpose";
            if (op.upscale != npu::Upscale::None) return "Upsample" + window;
            if (!one || k.stride_y != 1 || k.stride_x != 1) return "Average pool" + window;
            if (op.activation.function != npu::Activation::Function::None) return "Table";
            return op.ifm.region == 0 ? "Fill border" : "Copy";
        case OpKind::ReduceSum:
            return "Reduce sum";
        case OpKind::Mul:
            return "Mul";
        case OpKind::Add:
            return "Add";
        case OpKind::Sub:
            return "Sub";
        case OpKind::Min:
            return "Min";
        case OpKind::Max:
            return "Max";
        case OpKind::Lrelu:
            return "Leaky ReLU";
        case OpKind::Abs:
            return "Abs";
        case OpKind::Clz:
            return "Count zeros";
        case OpKind::Shr:
            return "Shift right";
        case OpKind::Shl:
            return "Shift left";
        case OpKind::Dma:
            return op.dma.dst_internal ? "Load table" : "Copy";
        default:
            return npu::op_kind_name(op.kind);
    }
}

std::uint64_t raw_weight_bytes(const npu::Operation& op) {
    if (!npu::has_weights(op.kind)) return 0;
    const std::uint64_t elements = std::uint64_t{op.kernel.height} * op.kernel.width * op.ofm.depth;
    return op.kind == OpKind::Conv ? elements * op.ifm.depth : elements;
}

std::uint64_t copied_bytes(const npu_model::OperationCost& cost) {
    std::uint64_t read = 0, written = 0;
    for (const npu_model::Traffic& t : cost.traffic) read += t.read_bytes, written += t.write_bytes;
    return std::max(read, written);
}

}  // namespace talpa::inspect
