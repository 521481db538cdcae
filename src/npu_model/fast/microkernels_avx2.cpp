// Microkernels for AVX2: 16-bit multiply-add on two registers of eight lanes. The 8-bit form of AVX2 saturates at 16
// bits and is of no use here. Compiled with its own flags; see microkernels.h.
#if defined(__x86_64__)

#include <immintrin.h>

#include "npu_model/fast/microkernels_impl.h"

namespace talpa::npu_model::fast {
namespace {

struct Avx2 {
    struct V {
        __m256i low, high;
    };
    struct Bytes {
        __m256i low, high;
    };
    static constexpr int kTilePixels = 4;
    static constexpr int kDepthwisePixels = 4;

    static __m256i load8(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
    static V load(const void* p) { return {load8(p), load8(static_cast<const char*>(p) + 32)}; }
    static void store(void* p, V v) {
        _mm256_storeu_si256(static_cast<__m256i*>(p), v.low);
        _mm256_storeu_si256(static_cast<__m256i*>(p) + 1, v.high);
    }
    static V word(const std::uint8_t* p) {
        int w;
        __builtin_memcpy(&w, p, 4);
        const __m256i x = _mm256_set1_epi32(w);
        return {x, x};
    }
    static V dot16(V acc, V a, V w) {
        return {_mm256_add_epi32(acc.low, _mm256_madd_epi16(a.low, w.low)),
                _mm256_add_epi32(acc.high, _mm256_madd_epi16(a.high, w.high))};
    }

    static V add(V a, V b) { return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)}; }
    static V multiply(V a, V b) { return {_mm256_mullo_epi32(a.low, b.low), _mm256_mullo_epi32(a.high, b.high)}; }
    static V min(V a, V b) { return {_mm256_min_epi32(a.low, b.low), _mm256_min_epi32(a.high, b.high)}; }
    static V max(V a, V b) { return {_mm256_max_epi32(a.low, b.low), _mm256_max_epi32(a.high, b.high)}; }
    static V operand(const std::uint8_t* p, const OperandScale& s) {
        std::int32_t lanes[kLanes];
        for (int i = 0; i < kLanes; ++i) lanes[i] = s.table[p[i]];
        return load(lanes);
    }
    // The upper halves of eight products, from lane `first` on.
    TALPA_INLINE static __m256i high_product(__m256i v, const ChannelBlock& b, int first) {
        const __m256i even = _mm256_mul_epi32(v, load8(b.multiplier + first));
        const __m256i odd = _mm256_mul_epi32(_mm256_srli_epi64(v, 32), load8(b.multiplier_odd + first));
        return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
    }
    TALPA_INLINE static __m256i rounded(__m256i high, const ChannelBlock& b, int first) {
        return _mm256_srav_epi32(_mm256_add_epi32(high, load8(b.round + first)), load8(b.shift + first));
    }
    TALPA_INLINE static V narrow(V v, const ChannelBlock& b) {
        return {rounded(high_product(v.low, b, 0), b, 0), rounded(high_product(v.high, b, 8), b, 8)};
    }
    TALPA_INLINE static __m256i special8(__m256i v, const ChannelBlock& b, int first) {
        v = _mm256_sllv_epi32(v, load8(b.left + first));
        return rounded(_mm256_add_epi32(high_product(v, b, first), _mm256_and_si256(v, load8(b.large + first))), b,
                       first);
    }
    TALPA_INLINE static V narrow_special(V v, const ChannelBlock& b) {
        return {special8(v.low, b, 0), special8(v.high, b, 8)};
    }
    static V wide(V v, const ChannelBlock& b, const Epilogue& e) {
        std::int32_t lanes[kLanes];
        store(lanes, v);
        wide_lanes(lanes, b, e);
        return load(lanes);
    }

    struct Tail {
        __m256i low, high, flip;
        const std::uint8_t* lut;
        explicit Tail(const Epilogue& e)
            : low(_mm256_set1_epi8(e.low)),
              high(_mm256_set1_epi8(e.high)),
              flip(_mm256_set1_epi8(static_cast<char>(e.flip))),
              lut(e.lut) {}
        // 32 bytes of two vectors in order: packing leaves words of four in the order a0 a2 b0 b2 a1 a3 b1 b3.
        __m256i two(V a, V b) const {
            const __m256i words =
                _mm256_packs_epi16(_mm256_packs_epi32(a.low, a.high), _mm256_packs_epi32(b.low, b.high));
            const __m256i r = _mm256_permutevar8x32_epi32(words, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
            return _mm256_xor_si256(_mm256_min_epi8(_mm256_max_epi8(r, low), high), flip);
        }
        Bytes bytes(V a, V b, V c, V d) const {
            Bytes r{two(a, b), two(c, d)};
            if (lut != nullptr) {
                std::uint8_t all[64];
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(all), r.low);
                _mm256_storeu_si256(reinterpret_cast<__m256i*>(all + 32), r.high);
                for (std::uint8_t& byte : all) byte = lut[byte];
                r = {load8(all), load8(all + 32)};
            }
            return r;
        }
    };

    static void store_bytes(Bytes b, std::uint8_t* to, int count) {
        if (count == 64) {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), b.low);
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), b.high);
            return;
        }
        alignas(32) std::uint8_t all[64];
        _mm256_store_si256(reinterpret_cast<__m256i*>(all), b.low);
        _mm256_store_si256(reinterpret_cast<__m256i*>(all + 32), b.high);
        __builtin_memcpy(to, all, static_cast<std::size_t>(count));
    }
};

void spread16(const SpreadTask& t) {
    for (int p = 0; p < t.pixels; ++p) {
        const std::uint8_t* x = t.line + p * t.stride * 32;
        const __m256i first = Avx2::load8(x), second = Avx2::load8(x + t.dilation * 32);
        const __m256i low = _mm256_unpacklo_epi16(first, second), high = _mm256_unpackhi_epi16(first, second);
        Avx2::store(t.out + static_cast<std::ptrdiff_t>(p) * 64,
                    {_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31)});
    }
}

}  // namespace

const Microkernels kAvx2Microkernels{2,
                                     conv_row<Avx2, Dot::Words>,
                                     depthwise_row<Avx2, Dot::Words>,
                                     spread16,
                                     conv_row<Avx2, Dot::Words>,
                                     depthwise_row<Avx2, Dot::Words>,
                                     spread16,
                                     map_bytes,
                                     binary<Avx2>,
                                     pool_max,
                                     pool_sum,
                                     finish_pixels<Avx2>,
                                     transpose_blocks};

}  // namespace talpa::npu_model::fast

#endif
