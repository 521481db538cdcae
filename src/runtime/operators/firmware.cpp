#include "runtime/operators/firmware.h"

#include "runtime/operators/quantize.h"
#include "runtime/operators/rows.h"

namespace talpa::runtime {
namespace operators {
namespace {

constexpr Operator kFirmware[] = {
    kQuantizeOperators[0],
    kQuantizeOperators[1],
    kQuantizeOperators[2],
    kQuantizeOperators[3],
    row("aten::argmax.out"),
    row("aten::topk.values"),
    row("aten::_softmax.out"),
    row("aten::hardtanh.out"),
    row("aten::clamp.out"),
    row("aten::view_copy.out"),
    row("aten::permute_copy.out"),
    row("aten::squeeze_copy.dims_out"),
    row("aten::unsqueeze_copy.out"),
    row("aten::flip.out"),
    row("dim_order_ops::_to_dim_order_copy.out"),
    row("dim_order_ops::_clone_dim_order.out"),
};

}  // namespace
}  // namespace operators

OperatorTable firmware_operators() {
    return operators::kFirmware;
}

}  // namespace talpa::runtime
