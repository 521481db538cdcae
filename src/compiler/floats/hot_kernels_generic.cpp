#include "compiler/floats/hot_kernels_body.h"

namespace talpa::compiler {
namespace {
struct IsaGeneric {};
}  // namespace

const HotKernels kHotGeneric = HotBody<IsaGeneric, 2>::kernels("generic");

}  // namespace talpa::compiler
