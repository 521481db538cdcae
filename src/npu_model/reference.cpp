#include "npu_model/reference.h"

namespace talpa::npu_model {

using npu::Operation;
using npu::OpKind;

Result<void> run_reference(const Context& context) {
    constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 28;
    const Operation& op = context.op;
    for (const npu::FeatureMap* fm : {&op.ifm, &op.ifm2, &op.ofm}) {
        unsigned __int128 elements = fm->height;
        elements *= fm->width;
        elements *= fm->depth;
        if (elements > kMaxElements)
            return fail(ErrorCode::OutOfResources,
                        "command stream offset {}: {} on a feature map of {} x {} x {} elements", op.offset_bytes,
                        npu::op_kind_name(op.kind), fm->height, fm->width, fm->depth);
    }
    switch (op.kind) {
        case OpKind::Conv:
            return convolution(context);
        case OpKind::Depthwise:
            return depthwise(context);
        case OpKind::MaxPool:
            return max_pool(context);
        case OpKind::AvgPool:
            return average_pool(context);
        case OpKind::ReduceSum:
            return reduce_sum(context);
        default:
            return elementwise(context);
    }
}

}  // namespace talpa::npu_model
