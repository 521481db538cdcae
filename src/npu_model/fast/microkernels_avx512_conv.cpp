#if defined(__x86_64__)

#include "npu_model/fast/microkernels_avx512.h"

namespace talpa::npu_model::fast {

void conv_avx512(const ConvTask& task) {
    conv_row<Avx512, Dot::Bytes>(task);
}

}  // namespace talpa::npu_model::fast

#endif
