#include "compiler/floats/hot_kernels.h"

namespace talpa::compiler {

const HotKernels& hot_kernels() {
#if defined(__x86_64__)
    static const HotKernels& best = __builtin_cpu_supports("avx512f")                                 ? kHotAvx512
                                    : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? kHotAvx2
                                                                                                      : kHotGeneric;
    return best;
#else
    return kHotGeneric;
#endif
}

}  // namespace talpa::compiler
