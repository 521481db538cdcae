// Microkernels for AVX-512 but convolutions, and the table of all of them.
#if defined(__x86_64__)

#include "npu_model/fast/microkernels_avx512.h"

namespace talpa::npu_model::fast {
namespace {

// Byte 4 * c + t of the result is byte 16 * t + c: four pixels of 16 channels become 16 channels of four pixels.
inline __m512i transpose_4x16() {
    alignas(64) std::uint8_t index[64];
    for (int i = 0; i < 64; ++i) index[i] = static_cast<std::uint8_t>(16 * (i & 3) + (i >> 2));
    return _mm512_load_si512(index);
}

void spread8(const SpreadTask& t) {
    const __m512i index = transpose_4x16();
    const __m512i flip = _mm512_set1_epi32(static_cast<int>(t.flip));
    const std::ptrdiff_t step = t.dilation * 16;
    for (int p = 0; p < t.pixels; ++p) {
        const std::uint8_t* x = t.line + p * t.stride * 16;
        __m512i taps;
        if (t.dilation == 1) {
            taps = _mm512_loadu_si512(x);
        } else {
            const auto at = [x, step](int i) {
                return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i * step));
            };
            taps = _mm512_inserti32x4(
                _mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(at(0)), at(1), 1), at(2), 2), at(3), 3);
        }
        _mm512_storeu_si512(t.out + static_cast<std::ptrdiff_t>(p) * 64,
                            _mm512_xor_si512(_mm512_permutexvar_epi8(index, taps), flip));
    }
}

void spread16(const SpreadTask& t) {
    alignas(64) std::uint16_t index[32];
    for (int i = 0; i < 32; ++i) index[i] = static_cast<std::uint16_t>(16 * (i & 1) + (i >> 1));
    const __m512i order = _mm512_load_si512(index);
    for (int p = 0; p < t.pixels; ++p) {
        const std::uint8_t* x = t.line + p * t.stride * 32;
        const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
        const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + t.dilation * 32));
        const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1);
        _mm512_storeu_si512(t.out + static_cast<std::ptrdiff_t>(p) * 64, _mm512_permutexvar_epi16(order, both));
    }
}

void map_bytes_512(const std::uint8_t* in, std::uint8_t* out, std::size_t count, const std::uint8_t* table) {
    std::size_t i = 0;
    for (; i + 64 <= count; i += 64) Avx512::store(out + i, Avx512::lookup(Avx512::load(in + i), table));
    for (; i < count; ++i) out[i] = table[in[i]];
}

// Two to four rows: one permutation of 16 columns of each.
void transpose_512(const std::uint8_t* in, std::ptrdiff_t in_stride, std::uint8_t* out, std::ptrdiff_t out_stride,
                   std::size_t columns, std::size_t rows) {
    if (rows < 2 || rows > 4 || out_stride != static_cast<std::ptrdiff_t>(rows))
        return transpose_blocks(in, in_stride, out, out_stride, columns, rows);
    alignas(64) std::uint8_t order[64];
    for (std::size_t i = 0; i < 64; ++i) order[i] = static_cast<std::uint8_t>(16 * (i % rows) + (i / rows) % 16);
    const __m512i index = _mm512_load_si512(order);
    const __mmask64 wanted = ~std::uint64_t{0} >> (64 - 16 * rows);
    std::size_t c = 0;
    for (; c + 16 <= columns; c += 16, in += 16, out += 16 * rows) {
        const auto row = [&](std::size_t r) {
            return _mm_loadu_si128(
                reinterpret_cast<const __m128i*>(in + static_cast<std::ptrdiff_t>(r < rows ? r : 0) * in_stride));
        };
        const __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(row(1), row(0))),
                                               _mm256_set_m128i(row(3), row(2)), 1);
        _mm512_mask_storeu_epi8(out, wanted, _mm512_permutexvar_epi8(index, all));
    }
    transpose_plain(in, in_stride, out, out_stride, columns - c, rows);
}

}  // namespace

const Microkernels kAvx512Microkernels{4,
                                       conv_avx512,
                                       depthwise_row<Avx512, Dot::Bytes>,
                                       spread8,
                                       conv16_avx512,
                                       depthwise_row<Avx512, Dot::Words>,
                                       spread16,
                                       map_bytes_512,
                                       binary<Avx512>,
                                       pool_max,
                                       pool_sum,
                                       finish_pixels<Avx512>,
                                       transpose_512};

}  // namespace talpa::npu_model::fast

#endif
