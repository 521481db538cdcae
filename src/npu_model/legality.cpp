#include "npu_model/legality.h"

#include "npu/block.h"
#include "npu/validate.h"

namespace talpa::npu_model {

namespace {

using npu::FeatureMap;
using npu::Operation;
using npu::OpKind;

Result<void> check_activation(const Operation& op) {
    using Function = npu::Activation::Function;
    const Function f = op.activation.function;
    if ((f == Function::Tanh || f == Function::Sigmoid) && op.ofm.type.bytes != 2)
        return fail(ErrorCode::NotSupported,
                    "command stream offset {}: {} with the internal tanh or sigmoid on {} bits, only 16 are described",
                    op.offset_bytes, npu::op_kind_name(op.kind), 8 * op.ofm.type.bytes);
    return {};
}

}  // namespace

Result<void> check_legal(const Operation& op, const npu::Hardware& hardware) {
    if (!npu::is_kernel(op.kind)) return {};
    TRY(npu::check_operands(op, hardware));
    TRY(check_activation(op));
    if (npu::is_elementwise(op.kind)) return {};

    if (op.acc_format == npu::AccFormat::Fp16)
        return fail(ErrorCode::NotSupported, "command stream offset {}: {} with fp16 accumulators", op.offset_bytes,
                    npu::op_kind_name(op.kind));
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
            work += elements(op.ofm) * window * (npu::sums_over_depth(op.kind) ? op.ifm.depth : 1);
        }
    }
    return work > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(work);
}

}  // namespace talpa::npu_model
