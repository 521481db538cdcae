#include "compiler/floats/hot_kernels_body.h"

#if defined(__x86_64__)
namespace talpa::compiler {
namespace {
struct IsaAvx2 {};
}  // namespace

const HotKernels kHotAvx2 = HotBody<IsaAvx2, 6>::kernels("avx2");

}  // namespace talpa::compiler
#endif
