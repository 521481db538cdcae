#include "compiler/floats/hot_kernels_body.h"

#if defined(__x86_64__)
namespace talpa::compiler {
namespace {
struct IsaAvx512 {};
}  // namespace

const HotKernels kHotAvx512 = HotBody<IsaAvx512, 12>::kernels("avx512");

}  // namespace talpa::compiler
#endif
