#include "npu_model/legality.h"

#include "npu/validate.h"

namespace talpa::npu_model {

namespace {

using npu::Operation;

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

}  // namespace talpa::npu_model
