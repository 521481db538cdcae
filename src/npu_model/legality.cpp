#include "npu_model/legality.h"

#include "npu/extent.h"
#include "npu/validate.h"

namespace talpa::npu_model {

namespace {

using npu::FeatureMap;
using npu::Layout;
using npu::Operation;
using npu::OpKind;

template <typename... Args>
std::unexpected<Error> illegal(const Operation& op, const char* sentence, Args... args) {
    return fail(ErrorCode::CommandStream, sentence, op.offset_bytes, npu::op_kind_name(op.kind), args...);
}

Result<void> check_kernel(const Operation& op) {
    const bool pool = !npu::has_weights(op.kind);
    const std::uint64_t max_height = pool ? 256 : 64, max_area = pool ? 65536 : 4096;
    const std::uint64_t h = op.kernel.dilated_height(), w = op.kernel.dilated_width();
    if (h > max_height || h * w > max_area)
        return illegal(op, "command stream offset {}: {} with a kernel of {} x {}, at most {} high", h, w, max_height);
    return {};
}

Result<void> check_types(const Operation& op) {
    const unsigned ifm = op.ifm.type.bytes;
    const char* wanted = nullptr;
    switch (op.kind) {
        case OpKind::Conv:
        case OpKind::Depthwise:
        case OpKind::MaxPool:
        case OpKind::AvgPool:
        case OpKind::Lrelu:
            wanted = ifm == 4 ? "8 or 16" : nullptr;
            break;
        case OpKind::Clz:
        case OpKind::Shr:
        case OpKind::Shl:
            wanted = ifm != 4 ? "32" : nullptr;
            break;
        default:
            break;
    }
    if (wanted != nullptr)
        return illegal(op, "command stream offset {}: {} with an IFM of {} bits, it takes {}", 8 * ifm, wanted);
    if (npu::has_ifm2(op.kind) && op.ifm2.type.bytes != op.ifm.type.bytes)
        return illegal(op, "command stream offset {}: {} of an IFM with {} bits and an IFM2 with {}", 8 * ifm,
                       8 * op.ifm2.type.bytes);
    return {};
}

Result<void> check_activation(const Operation& op, const npu::Hardware& hardware) {
    using Function = npu::Activation::Function;
    const Function f = op.activation.function;
    if ((f == Function::Tanh || f == Function::Sigmoid) && op.ofm.type.bytes != 2)
        return fail(ErrorCode::NotSupported,
                    "command stream offset {}: {} with the internal tanh or sigmoid on {} bits, only 16 are described",
                    op.offset_bytes, npu::op_kind_name(op.kind), 8 * op.ofm.type.bytes);
    if (f != Function::Lut) return {};
    const std::int64_t end = npu::kLutSlotBytes * op.activation.lut_slot + npu::lut_bytes(op);
    if (end > 2048 || hardware.lut_base() + end > hardware.shram_banks * 1024)
        return illegal(
            op,
            "command stream offset {}: {} with a table of {} bytes at LUT slot {}, beyond the end of the 2048 bytes",
            npu::lut_bytes(op), op.activation.lut_slot);
    return {};
}

}  // namespace

Result<void> check_legal(const Operation& op, const npu::Hardware& hardware) {
    if (!npu::is_kernel(op.kind)) return {};
    if (op.cores > hardware.cores)
        return illegal(op, "command stream offset {}: {} on {} cores, the {} has {}", op.cores, hardware.name,
                       hardware.cores);
    TRY(check_types(op));
    TRY(npu::check_alignment(op));
    TRY(check_activation(op, hardware));
    if (npu::is_elementwise(op.kind)) return {};

    TRY(check_kernel(op));
    if (op.acc_format == npu::AccFormat::Fp16)
        return fail(ErrorCode::NotSupported, "command stream offset {}: {} with fp16 accumulators", op.offset_bytes,
                    npu::op_kind_name(op.kind));
    if (op.kind == OpKind::ReduceSum && op.ofm.depth != 1)
        return illegal(op, "command stream offset {}: {} with {} output channels, it has one", op.ofm.depth);
    if (op.kind == OpKind::ReduceSum && op.ifm.type.bytes == 4 && op.ifm.layout == Layout::Nhcwb16)
        return illegal(op, "command stream offset {}: {} of 32-bit bricks, it needs NHWC");
    if (op.kind != OpKind::Conv && op.kind != OpKind::ReduceSum && op.ifm.depth != op.ofm.depth)
        return illegal(op, "command stream offset {}: {} from {} to {} channels", op.ifm.depth, op.ofm.depth);
    if (!npu::has_weights(op.kind)) return {};
    for (unsigned core = 0; core < op.cores; ++core)
        if (op.weights[core].offset % 16 != 0 || op.weights[core].size % 16 != 0)
            return illegal(op,
                           "command stream offset {}: {} with weights at {}, length {}: both must be multiples of 16",
                           op.weights[core].offset, op.weights[core].size);
    return {};
}

std::uint64_t work_of(const Operation& op) {
    using Wide = unsigned __int128;
    const auto elements = [](const FeatureMap& fm) { return Wide{fm.height} * fm.width * fm.depth; };
    Wide work = 64;  // an operation costs something even when it is tiny
    if (op.kind == OpKind::Dma) {
        work += Wide{op.dma.length} * (op.dma.src_stride_mode == 0 && op.dma.dst_stride_mode == 0
                                           ? 1
                                           : std::uint64_t{op.dma.size0} * (std::uint64_t{op.dma.size1} + 1));
    } else if (npu::is_kernel(op.kind)) {
        work += elements(op.ofm) + elements(op.ifm) + elements(op.ifm2);
        if (!npu::is_elementwise(op.kind)) {
            const Wide window = Wide{op.kernel.height} * op.kernel.width;
            const bool deep = op.kind == OpKind::Conv || op.kind == OpKind::ReduceSum;
            work += elements(op.ofm) * window * (deep ? op.ifm.depth : 1);
        }
    }
    return work > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(work);
}

}  // namespace talpa::npu_model
