#include "npu_model/work.h"

#include "npu/block.h"

namespace talpa::npu_model {

using npu::FeatureMap;
using npu::Operation;
using npu::OpKind;

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
