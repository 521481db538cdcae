// Vectors of AVX-512 with VNNI and VBMI, for the files compiled with those flags alone; must not include anything with
// inline functions that other files use (microkernels.h). Convolutions, which take longest to compile, have files of
// their own.
#pragma once

#include <immintrin.h>

#include "npu_model/fast/microkernels_impl.h"

namespace talpa::npu_model::fast {

void conv_avx512(const ConvTask& task);
void conv16_avx512(const ConvTask& task);

namespace {

struct Avx512 {
    using V = __m512i;
    using Bytes = __m512i;
    static constexpr int kTilePixels = 8;
    static constexpr int kDepthwisePixels = 8;

    static V load(const void* p) { return _mm512_loadu_si512(p); }
    static void store(void* p, V v) { _mm512_storeu_si512(p, v); }
    static V word(const std::uint8_t* p) {
        int w;
        __builtin_memcpy(&w, p, 4);
        return _mm512_set1_epi32(w);
    }
    static V flip(V a, V f) { return _mm512_xor_si512(a, f); }
    static V dot8(V acc, V a, V w) { return _mm512_dpbusd_epi32(acc, a, w); }
    static V dot16(V acc, V a, V w) { return _mm512_dpwssd_epi32(acc, a, w); }

    static V add(V a, V b) { return _mm512_add_epi32(a, b); }
    static V multiply(V a, V b) { return _mm512_mullo_epi32(a, b); }
    static V min(V a, V b) { return _mm512_min_epi32(a, b); }
    static V max(V a, V b) { return _mm512_max_epi32(a, b); }
    static V operand(const std::uint8_t* p, const OperandScale& s) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        if (s.kind == OperandScale::Kind::Table) return _mm512_i32gather_epi32(_mm512_cvtepu8_epi32(bytes), s.table, 4);
        const V x = _mm512_sub_epi32(s.is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes),
                                     _mm512_set1_epi32(s.zero_point));
        const V m = _mm512_set1_epi32(s.multiplier);
        if (s.kind == OperandScale::Kind::Multiplied) return _mm512_mullo_epi32(x, m);
        const V half = _mm512_set1_epi64(std::int64_t{1} << (s.shift - 1));
        const __m128i shift = _mm_cvtsi32_si128(s.shift);
        const V even = _mm512_sra_epi64(_mm512_add_epi64(_mm512_mul_epi32(x, m), half), shift);
        const V odd = _mm512_sra_epi64(_mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(x, 32), m), half), shift);
        return _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
    }
    // The upper halves of 16 products.
    TALPA_INLINE static V high_product(V v, const ChannelBlock& b) {
        const V even = _mm512_mul_epi32(v, load(b.multiplier));
        const V odd = _mm512_mul_epi32(_mm512_srli_epi64(v, 32), load(b.multiplier_odd));
        return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
    }
    TALPA_INLINE static V narrow(V v, const ChannelBlock& b) {
        return _mm512_srav_epi32(_mm512_add_epi32(high_product(v, b), load(b.round)), load(b.shift));
    }
    TALPA_INLINE static V narrow_special(V v, const ChannelBlock& b) {
        v = _mm512_sllv_epi32(v, load(b.left));
        const V high = _mm512_add_epi32(high_product(v, b), _mm512_and_si512(v, load(b.large)));
        return _mm512_srav_epi32(_mm512_add_epi32(high, load(b.round)), load(b.shift));
    }

    static V wide(V v, const ChannelBlock& b, const Epilogue& e) {
        const V shift = load(b.shift);
        const V odd_v = _mm512_srli_epi64(v, 32);
        const V even = scaled(v, load(b.multiplier), _mm512_and_si512(shift, _mm512_set1_epi64(0xFFFFFFFF)), e);
        const V odd = scaled(odd_v, load(b.multiplier_odd), _mm512_srli_epi64(shift, 32), e);
        return _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
    }
    // Eight 64-bit results, limited to what fits 32 bits.
    static V scaled(V v, V m, V s, const Epilogue& e) {
        const V one = _mm512_set1_epi64(1);
        V half = _mm512_srli_epi64(_mm512_sllv_epi64(one, s), 1);
        if (e.tfl) {
            const V step = _mm512_set1_epi64(1 << 30);
            const __mmask8 steps = _mm512_cmpgt_epi64_mask(s, _mm512_set1_epi64(31));
            const __mmask8 negative = _mm512_movepi64_mask(_mm512_slli_epi64(v, 32));
            half = _mm512_mask_add_epi64(half, static_cast<__mmask8>(steps & ~negative), half, step);
            half = _mm512_mask_sub_epi64(half, static_cast<__mmask8>(steps & negative), half, step);
        }
        V r = _mm512_srav_epi64(_mm512_add_epi64(_mm512_mul_epi32(v, m), half), s);
        r = _mm512_add_epi64(r, _mm512_set1_epi64(e.offset));
        return _mm512_max_epi64(_mm512_min_epi64(r, _mm512_set1_epi64(0x7FFFFFFF)),
                                _mm512_set1_epi64(-0x7FFFFFFF - 1ll));
    }

    static Bytes lookup(Bytes index, const std::uint8_t* table) {
        const V low = _mm512_permutex2var_epi8(load(table), index, load(table + 64));
        const V high = _mm512_permutex2var_epi8(load(table + 128), index, load(table + 192));
        return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
    }

    struct Tail {
        V low, high, flip;
        const std::uint8_t* lut;
        explicit Tail(const Epilogue& e)
            : low(_mm512_set1_epi8(e.low)),
              high(_mm512_set1_epi8(e.high)),
              flip(_mm512_set1_epi8(static_cast<char>(e.flip))),
              lut(e.lut) {}
        Bytes bytes(V a, V b, V c, V d) const {
            // Packing works within 16-byte lanes: afterwards each lane holds a word of each vector.
            const V words = _mm512_packs_epi16(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d));
            V r =
                _mm512_permutexvar_epi32(_mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0), words);
            r = _mm512_xor_si512(_mm512_min_epi8(_mm512_max_epi8(r, low), high), flip);
            return lut == nullptr ? r : lookup(r, lut);
        }
    };

    static void store_bytes(Bytes b, std::uint8_t* to, int count) {
        if (count == 64) {
            _mm512_storeu_si512(to, b);
            return;
        }
        if ((count & 32) != 0) {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(b));
            to += 32;
            b = _mm512_shuffle_i64x2(b, b, 0xEE);
        }
        if ((count & 16) != 0) {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_castsi512_si128(b));
            to += 16;
            b = _mm512_shuffle_i64x2(b, b, 0x39);
        }
        if ((count & 15) != 0) {
            alignas(16) std::uint8_t rest[16];
            _mm_store_si128(reinterpret_cast<__m128i*>(rest), _mm512_castsi512_si128(b));
            __builtin_memcpy(to, rest, static_cast<std::size_t>(count & 15));
        }
    }
};

}  // namespace
}  // namespace talpa::npu_model::fast
