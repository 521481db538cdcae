// The three loops that a float network spends its time in, compiled once per instruction set and chosen at run time.
#pragma once

#include <cstddef>

namespace talpa::compiler {

/// Columns of a packed panel: `pack_columns` lays a K x N matrix out as ceil(N / 16) panels of K x 16, zeros at the
/// end.
inline constexpr std::size_t kPanel = 16;

struct DepthwiseRow {
    const float* input;    ///< H x W x C
    const float* weights;  ///< KH x KW x C
    const float* bias;     ///< C
    float* output;         ///< one row, OW x C
    std::ptrdiff_t height, width, channels;
    std::ptrdiff_t kernel_h, kernel_w, stride_w, dilation_h, dilation_w;
    std::ptrdiff_t first_y, first_x;  ///< input row and column of the window's first tap for x = 0; negative in padding
    std::ptrdiff_t output_width;
    float low, high;
};

struct HotKernels {
    const char* name;
    /// c[rows x columns] = clamp(a[rows x k] * panels + bias). `lda`, `ldc`: floats from row to row.
    void (*gemm)(const float* a, std::size_t lda, std::size_t rows, std::size_t k, const float* panels,
                 std::size_t columns, const float* bias, float* c, std::size_t ldc, float low, float high);
    void (*depthwise)(const DepthwiseRow& row);
    /// Least and greatest of `count` >= 1 numbers; NaN is passed over.
    void (*range)(const float* data, std::size_t count, float& least, float& greatest);
    /// Each number to the nearest multiple of `scale` (ties to even) between `low` and `high` times it; both at most
    /// 2^16 in size. NaN becomes `low`.
    void (*round)(float* data, std::size_t count, float scale, float low, float high);
};

/// The best that this processor has.
[[nodiscard]] const HotKernels& hot_kernels();

extern const HotKernels kHotGeneric;
#if defined(__x86_64__)
extern const HotKernels kHotAvx2, kHotAvx512;
#endif

}  // namespace talpa::compiler
