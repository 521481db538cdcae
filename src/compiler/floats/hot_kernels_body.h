// The body of hot_kernels_*.cpp. Nothing of the standard library is called here: an inline function compiled for one
// instruction set must not be what the linker keeps for all.
#pragma once

#include "compiler/floats/hot_kernels.h"

namespace talpa::compiler {

/// `Rows`: rows of a tile, as many as the registers hold; the tag makes each instruction set's templates its own.
template <typename Isa, int Rows>
struct HotBody {
    /// At any float's address. (A typedef, since clang takes no alignment of a type in a `using`.)
    typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));  // NOLINT(modernize-use-using)

    template <int R>
    static inline void tile(const float* a, std::size_t lda, std::size_t k, const float* panel, std::size_t width,
                            const float* bias, float* c, std::size_t ldc, float low, float high) {
        Vector sums[R];
        for (int r = 0; r < R; ++r) sums[r] = Vector{};
        for (std::size_t i = 0; i < k; ++i) {
            const Vector b = *reinterpret_cast<const Vector*>(panel + kPanel * i);
#pragma GCC unroll 16
            for (int r = 0; r < R; ++r) sums[r] += a[static_cast<std::size_t>(r) * lda + i] * b;
        }
        for (int r = 0; r < R; ++r) {
            float* row = c + static_cast<std::size_t>(r) * ldc;
            for (std::size_t i = 0; i < width; ++i) {
                const float sum = sums[r][i] + bias[i];
                row[i] = sum < low ? low : sum > high ? high : sum;
            }
        }
    }

    static void gemm(const float* a, std::size_t lda, std::size_t rows, std::size_t k, const float* panels,
                     std::size_t columns, const float* bias, float* c, std::size_t ldc, float low, float high) {
        // A chunk of rows stays in the first caches while all panels pass by.
        constexpr std::size_t kChunk = std::size_t{Rows} * 8;
        for (std::size_t first = 0; first < rows; first += kChunk) {
            const std::size_t end = first + kChunk < rows ? first + kChunk : rows;
            for (std::size_t column = 0; column < columns; column += kPanel) {
                const std::size_t width = columns - column < kPanel ? columns - column : kPanel;
                const float* panel = panels + column * k;
                std::size_t r = first;
                for (; r + Rows <= end; r += Rows)
                    tile<Rows>(a + r * lda, lda, k, panel, width, bias + column, c + r * ldc + column, ldc, low, high);
                for (; r < end; ++r)
                    tile<1>(a + r * lda, lda, k, panel, width, bias + column, c + r * ldc + column, ldc, low, high);
            }
        }
    }

    static void depthwise(const DepthwiseRow& d) {
        for (std::ptrdiff_t x = 0; x < d.output_width; ++x) {
            const std::ptrdiff_t left = d.first_x + x * d.stride_w;
            float* out = d.output + x * d.channels;
            std::ptrdiff_t c = 0;
            for (; c + std::ptrdiff_t{kPanel} <= d.channels; c += kPanel) {
                Vector sum = *reinterpret_cast<const Vector*>(d.bias + c);
                for (std::ptrdiff_t ky = 0; ky < d.kernel_h; ++ky) {
                    const std::ptrdiff_t iy = d.first_y + ky * d.dilation_h;
                    if (iy < 0 || iy >= d.height) continue;
                    for (std::ptrdiff_t kx = 0; kx < d.kernel_w; ++kx) {
                        const std::ptrdiff_t ix = left + kx * d.dilation_w;
                        if (ix < 0 || ix >= d.width) continue;
                        sum += *reinterpret_cast<const Vector*>(d.input + (iy * d.width + ix) * d.channels + c) *
                               *reinterpret_cast<const Vector*>(d.weights + (ky * d.kernel_w + kx) * d.channels + c);
                    }
                }
                for (std::ptrdiff_t i = 0; i < std::ptrdiff_t{kPanel}; ++i)
                    out[c + i] = sum[i] < d.low ? d.low : sum[i] > d.high ? d.high : sum[i];
            }
            for (; c < d.channels; ++c) {
                float sum = d.bias[c];
                for (std::ptrdiff_t ky = 0; ky < d.kernel_h; ++ky) {
                    const std::ptrdiff_t iy = d.first_y + ky * d.dilation_h;
                    if (iy < 0 || iy >= d.height) continue;
                    for (std::ptrdiff_t kx = 0; kx < d.kernel_w; ++kx) {
                        const std::ptrdiff_t ix = left + kx * d.dilation_w;
                        if (ix < 0 || ix >= d.width) continue;
                        sum += d.input[(iy * d.width + ix) * d.channels + c] *
                               d.weights[(ky * d.kernel_w + kx) * d.channels + c];
                    }
                }
                out[c] = sum < d.low ? d.low : sum > d.high ? d.high : sum;
            }
        }
    }

    static void range(const float* data, std::size_t count, float& least, float& greatest) {
        float low[kPanel], high[kPanel];
        for (std::size_t i = 0; i < kPanel; ++i) low[i] = high[i] = data[0];
        std::size_t n = 0;
        for (; n + kPanel <= count; n += kPanel)
            for (std::size_t i = 0; i < kPanel; ++i) {
                low[i] = data[n + i] < low[i] ? data[n + i] : low[i];
                high[i] = data[n + i] > high[i] ? data[n + i] : high[i];
            }
        for (; n < count; ++n) {
            low[0] = data[n] < low[0] ? data[n] : low[0];
            high[0] = data[n] > high[0] ? data[n] : high[0];
        }
        for (std::size_t i = 1; i < kPanel; ++i) {
            low[0] = low[i] < low[0] ? low[i] : low[0];
            high[0] = high[i] > high[0] ? high[i] : high[0];
        }
        least = low[0];
        greatest = high[0];
    }

    static void round(float* data, std::size_t count, float scale, float low, float high) {
        // Adding 1.5 * 2^23 leaves no bit for a fraction: the addition rounds, to even at ties.
        constexpr float kMagic = 12582912.0f;
        const float inverse = 1.0f / scale;
        for (std::size_t i = 0; i < count; ++i) {
            float x = data[i] * inverse;
            x = x > low ? x : low;
            x = x < high ? x : high;
            data[i] = (x + kMagic - kMagic) * scale;
        }
    }

    static constexpr HotKernels kernels(const char* name) { return {name, gemm, depthwise, range, round}; }
};

}  // namespace talpa::compiler
