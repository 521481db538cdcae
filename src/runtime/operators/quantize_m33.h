// Inner loops of quantize and dequantize for 8 bits on a Cortex-M33: four elements at a time, single-precision FPU and
// DSP instructions. 25 and 18 instructions for four elements (docs/firmware.md has the cycles), exact to pte-format,
// section 6.2: VCVTN rounds half to even, takes NaN as 0 and saturates; the sum and the element saturate again.
#pragma once

#if defined(__ARM_FEATURE_DSP) && (__ARM_FP & 4) != 0

#include <cstddef>
#include <cstdint>

namespace talpa::runtime::operators::m33 {

/// q = saturated(round(x * inverse) + zero_point). `saturate`: the instruction, "ssat" for int8, "usat" for uint8,
/// whose whole range is used. |zero_point| <= 2^22, so that a saturated conversion stays beyond every element.
#define TALPA_M33_QUANTIZE(name, saturate)                                                                        \
    inline void name(const float* in, std::uint8_t* out, std::size_t n, float inverse, std::int32_t zero_point) { \
        std::int32_t a, b, c, d;                                                                                  \
        std::size_t fours = n / 4, rest = n % 4;                                                                  \
        __asm volatile(                                                                                           \
            "cbz %[fours], 2f\n"                                                                                  \
            "1: vldmia %[in]!, {s0-s3}\n"                                                                         \
            "vmul.f32 s0, s0, %[inverse]\n"                                                                       \
            "vmul.f32 s1, s1, %[inverse]\n"                                                                       \
            "vmul.f32 s2, s2, %[inverse]\n"                                                                       \
            "vmul.f32 s3, s3, %[inverse]\n"                                                                       \
            "vcvtn.s32.f32 s0, s0\n"                                                                              \
            "vcvtn.s32.f32 s1, s1\n"                                                                              \
            "vcvtn.s32.f32 s2, s2\n"                                                                              \
            "vcvtn.s32.f32 s3, s3\n"                                                                              \
            "vmov %[a], %[b], s0, s1\n"                                                                           \
            "vmov %[c], %[d], s2, s3\n"                                                                           \
            "qadd %[a], %[a], %[zero]\n"                                                                          \
            "qadd %[b], %[b], %[zero]\n"                                                                          \
            "qadd %[c], %[c], %[zero]\n"                                                                          \
            "qadd %[d], %[d], %[zero]\n" saturate " %[a], #8, %[a]\n" saturate " %[b], #8, %[b]\n" saturate       \
            " %[c], #8, %[c]\n" saturate                                                                          \
            " %[d], #8, %[d]\n"                                                                                   \
            "bfi %[a], %[b], #8, #8\n"                                                                            \
            "bfi %[a], %[c], #16, #8\n"                                                                           \
            "bfi %[a], %[d], #24, #8\n"                                                                           \
            "str %[a], [%[out]], #4\n"                                                                            \
            "subs %[fours], %[fours], #1\n"                                                                       \
            "bne 1b\n"                                                                                            \
            "2: cbz %[rest], 4f\n"                                                                                \
            "3: vldmia %[in]!, {s0}\n"                                                                            \
            "vmul.f32 s0, s0, %[inverse]\n"                                                                       \
            "vcvtn.s32.f32 s0, s0\n"                                                                              \
            "vmov %[a], s0\n"                                                                                     \
            "qadd %[a], %[a], %[zero]\n" saturate                                                                 \
            " %[a], #8, %[a]\n"                                                                                   \
            "strb %[a], [%[out]], #1\n"                                                                           \
            "subs %[rest], %[rest], #1\n"                                                                         \
            "bne 3b\n"                                                                                            \
            "4:\n"                                                                                                \
            : [in] "+r"(in), [out] "+r"(out), [fours] "+l"(fours), [rest] "+l"(rest), [a] "=&r"(a), [b] "=&r"(b), \
              [c] "=&r"(c), [d] "=&r"(d)                                                                          \
            : [inverse] "t"(inverse), [zero] "r"(zero_point)                                                      \
            : "s0", "s1", "s2", "s3", "cc", "memory");                                                            \
    }
TALPA_M33_QUANTIZE(quantize_int8, "ssat")
TALPA_M33_QUANTIZE(quantize_uint8, "usat")
#undef TALPA_M33_QUANTIZE

/// x = (q - zero_point) * scale, one rounding of each step. `extend`: "sxtab" or "uxtab". |zero_point| < 2^30.
#define TALPA_M33_DEQUANTIZE(name, extend)                                                                        \
    inline void name(const std::uint8_t* in, float* out, std::size_t n, float scale, std::int32_t zero_point) {   \
        std::int32_t a, b, c, d, word;                                                                            \
        std::size_t fours = n / 4, rest = n % 4;                                                                  \
        __asm volatile(                                                                                           \
            "cbz %[fours], 2f\n"                                                                                  \
            "1: ldr %[word], [%[in]], #4\n" extend " %[a], %[minus], %[word]\n" extend                            \
            " %[b], %[minus], %[word], ror #8\n" extend " %[c], %[minus], %[word], ror #16\n" extend              \
            " %[d], %[minus], %[word], ror #24\n"                                                                 \
            "vmov s0, s1, %[a], %[b]\n"                                                                           \
            "vmov s2, s3, %[c], %[d]\n"                                                                           \
            "vcvt.f32.s32 s0, s0\n"                                                                               \
            "vcvt.f32.s32 s1, s1\n"                                                                               \
            "vcvt.f32.s32 s2, s2\n"                                                                               \
            "vcvt.f32.s32 s3, s3\n"                                                                               \
            "vmul.f32 s0, s0, %[scale]\n"                                                                         \
            "vmul.f32 s1, s1, %[scale]\n"                                                                         \
            "vmul.f32 s2, s2, %[scale]\n"                                                                         \
            "vmul.f32 s3, s3, %[scale]\n"                                                                         \
            "vstmia %[out]!, {s0-s3}\n"                                                                           \
            "subs %[fours], %[fours], #1\n"                                                                       \
            "bne 1b\n"                                                                                            \
            "2: cbz %[rest], 4f\n"                                                                                \
            "3: ldrb %[word], [%[in]], #1\n" extend                                                               \
            " %[a], %[minus], %[word]\n"                                                                          \
            "vmov s0, %[a]\n"                                                                                     \
            "vcvt.f32.s32 s0, s0\n"                                                                               \
            "vmul.f32 s0, s0, %[scale]\n"                                                                         \
            "vstmia %[out]!, {s0}\n"                                                                              \
            "subs %[rest], %[rest], #1\n"                                                                         \
            "bne 3b\n"                                                                                            \
            "4:\n"                                                                                                \
            : [in] "+r"(in), [out] "+r"(out), [fours] "+l"(fours), [rest] "+l"(rest), [a] "=&r"(a), [b] "=&r"(b), \
              [c] "=&r"(c), [d] "=&r"(d), [word] "=&r"(word)                                                      \
            : [scale] "t"(scale), [minus] "r"(-zero_point)                                                        \
            : "s0", "s1", "s2", "s3", "cc", "memory");                                                            \
    }
TALPA_M33_DEQUANTIZE(dequantize_int8, "sxtab")
TALPA_M33_DEQUANTIZE(dequantize_uint8, "uxtab")
#undef TALPA_M33_DEQUANTIZE

}  // namespace talpa::runtime::operators::m33

#endif
