// The loops of microkernels.h over a vector type S, included once by the file of each instruction set, which supplies
// S. No standard library here: see microkernels.h for why.
//
// S has: V, 16 x int32; load, store, word (the same 4 bytes in every lane), flip (xor of a word), dot8 (unsigned bytes
// of the first x signed bytes of the second), dot16, narrow and wide (requantization), Tail (what the epilogue keeps in
// registers) with bytes(a, b, c, d): 64 finished bytes, and store_bytes(Bytes, out, count).
#pragma once

#include "npu_model/fast/microkernels.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define TALPA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TALPA_UNROLL _Pragma("GCC unroll 16")
#endif
#define TALPA_INLINE [[gnu::always_inline]] inline

namespace talpa::npu_model::fast {
namespace {

// The exact form, one lane after the other: for instruction sets without 64-bit arithmetic shifts.
[[maybe_unused]] inline void wide_lanes(std::int32_t* lanes, const ChannelBlock& b, const Epilogue& e) {
    for (int i = 0; i < kLanes; ++i) {
        const int s = b.shift[i];
        std::int64_t half = s > 0 ? std::int64_t{1} << (s - 1) : 0;
        if (e.tfl && s > 31) half += lanes[i] >= 0 ? 1 << 30 : -(1 << 30);
        std::int64_t r = ((std::int64_t{lanes[i]} * b.multiplier[i] + half) >> s) + e.offset;
        r = r > 0x7FFFFFFF ? 0x7FFFFFFF : r;
        lanes[i] = static_cast<std::int32_t>(r < -0x7FFFFFFF - 1ll ? -0x7FFFFFFF - 1ll : r);
    }
}

[[maybe_unused]] void map_bytes(const std::uint8_t* in, std::uint8_t* out, std::size_t count,
                                const std::uint8_t* table) {
    for (std::size_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

[[maybe_unused]] void transpose_plain(const std::uint8_t* in, std::ptrdiff_t in_stride, std::uint8_t* out,
                                      std::ptrdiff_t out_stride, std::size_t columns, std::size_t rows) {
    for (std::size_t c = 0; c < columns; ++c)
        for (std::size_t r = 0; r < rows; ++r)
            out[static_cast<std::ptrdiff_t>(c) * out_stride + static_cast<std::ptrdiff_t>(r)] =
                in[static_cast<std::ptrdiff_t>(r) * in_stride + static_cast<std::ptrdiff_t>(c)];
}

#if defined(__SSE2__)
// 16 x 16 bytes: four rounds of interleaving, each of which brings rows together that were half as far apart.
inline void transpose_16x16(const std::uint8_t* in, std::ptrdiff_t in_stride, std::uint8_t* out,
                            std::ptrdiff_t out_stride) {
    __m128i a[16], b[16];
    TALPA_UNROLL
    for (int i = 0; i < 16; ++i) a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * in_stride));
    TALPA_UNROLL
    for (int round = 0; round < 4; ++round) {
        TALPA_UNROLL
        for (int i = 0; i < 8; ++i) {
            b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
            b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
        }
        TALPA_UNROLL
        for (int i = 0; i < 16; ++i) a[i] = b[i];
    }
    TALPA_UNROLL
    for (int i = 0; i < 16; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * out_stride), a[i]);
}

[[maybe_unused]] void transpose_blocks(const std::uint8_t* in, std::ptrdiff_t in_stride, std::uint8_t* out,
                                       std::ptrdiff_t out_stride, std::size_t columns, std::size_t rows) {
    const std::size_t whole_columns = columns / 16 * 16, whole_rows = rows / 16 * 16;
    for (std::size_t c = 0; c < whole_columns; c += 16)
        for (std::size_t r = 0; r < whole_rows; r += 16) {
            const auto x = static_cast<std::ptrdiff_t>(c), y = static_cast<std::ptrdiff_t>(r);
            transpose_16x16(in + y * in_stride + x, in_stride, out + x * out_stride + y, out_stride);
        }
    const auto x = static_cast<std::ptrdiff_t>(whole_columns), y = static_cast<std::ptrdiff_t>(whole_rows);
    transpose_plain(in + y * in_stride, in_stride, out + y, out_stride, whole_columns, rows - whole_rows);
    transpose_plain(in + x, in_stride, out + x * out_stride, out_stride, columns - whole_columns, rows);
}
#endif

enum class Dot { Bytes, Words };

template <typename S, Dot kDot>
TALPA_INLINE typename S::V dot(typename S::V acc, typename S::V a, typename S::V w) {
    if constexpr (kDot == Dot::Bytes)
        return S::dot8(acc, a, w);
    else
        return S::dot16(acc, a, w);
}

// A vector of the tile, requantized.
template <typename S, bool kWide>
TALPA_INLINE typename S::V requantized(const typename S::V& v, const ChannelBlock& b, const Epilogue& e) {
    if constexpr (kWide)
        return S::wide(v, b, e);
    else
        return b.is_special != 0 ? S::narrow_special(v, b) : S::narrow(v, b);
}

// Requantizes a tile and puts it where it belongs. Four vectors become 64 bytes at once: neighbours in x where pixels
// lie 16 bytes apart (bricks), else the vectors of a pixel.
template <typename S, int kPixels, int kVectors, bool kWide>
TALPA_INLINE void finish_tile(typename S::V (&acc)[kPixels][kVectors], const ChannelBlock* blocks, const Output& out,
                              const Epilogue& e) {
    using V = typename S::V;
    const typename S::Tail tail(e);
    if (out.pixel_stride == kLanes && out.last_channels == kLanes) {
        TALPA_UNROLL
        for (int q = 0; q < kVectors; ++q) {
            std::uint8_t* to = out.data + q * out.vector_stride;
            V done[kPixels];
            TALPA_UNROLL
            for (int p = 0; p < kPixels; ++p) done[p] = requantized<S, kWide>(acc[p][q], blocks[q], e);
            TALPA_UNROLL
            for (int p = 0; p < kPixels; p += 4) {
                const int last = kPixels - 1;
                S::store_bytes(tail.bytes(done[p], done[p + 1 < last ? p + 1 : last], done[p + 2 < last ? p + 2 : last],
                                          done[p + 3 < last ? p + 3 : last]),
                               to + p * kLanes, (kPixels - p < 4 ? kPixels - p : 4) * kLanes);
            }
        }
        return;
    }
    // One pixel after the other; vectors that lie together are stored together.
    const bool together = out.vector_stride == kLanes;
    TALPA_UNROLL
    for (int p = 0; p < kPixels; ++p) {
        std::uint8_t* to = out.data + p * out.pixel_stride;
        V done[kVectors];
        TALPA_UNROLL
        for (int q = 0; q < kVectors; ++q) done[q] = requantized<S, kWide>(acc[p][q], blocks[q], e);
        const int last = kVectors - 1;
        const typename S::Bytes bytes =
            tail.bytes(done[0], done[1 < last ? 1 : last], done[2 < last ? 2 : last], done[3 < last ? 3 : last]);
        if (together) {
            S::store_bytes(bytes, to, last * kLanes + out.last_channels);
        } else {
            std::uint8_t all[64];
            S::store_bytes(bytes, all, 64);
            TALPA_UNROLL
            for (int q = 0; q < kVectors; ++q)
                __builtin_memcpy(to + q * out.vector_stride, all + q * kLanes,
                                 static_cast<std::size_t>(q == last ? out.last_channels : kLanes));
        }
    }
}

template <typename S, int kPixels, int kVectors>
TALPA_INLINE void finish(typename S::V (&acc)[kPixels][kVectors], const ChannelBlock* blocks, const Output& out,
                         const Epilogue& e, int raw_pixel) {
    if (e.raw != nullptr) {
        TALPA_UNROLL
        for (int p = 0; p < kPixels; ++p) TALPA_UNROLL
        for (int q = 0; q < kVectors; ++q) S::store(e.raw + ((raw_pixel + p) * kVectors + q) * kLanes, acc[p][q]);
    } else if (e.wide) {
        finish_tile<S, kPixels, kVectors, true>(acc, blocks, out, e);
    } else {
        finish_tile<S, kPixels, kVectors, false>(acc, blocks, out, e);
    }
}

template <typename S, Dot kDot, int kPixels, int kVectors>
void conv_tile(const ConvTask& t, int pixel) {
    using V = typename S::V;
    V acc[kPixels][kVectors];
    TALPA_UNROLL
    for (int q = 0; q < kVectors; ++q) {
        const V bias = S::load(t.blocks[q].bias);
        TALPA_UNROLL
        for (int p = 0; p < kPixels; ++p) acc[p][q] = bias;
    }
    const V flip = S::word(reinterpret_cast<const std::uint8_t*>(&t.flip));
    const std::uint8_t* w = t.weights;
    const std::ptrdiff_t offset = pixel * t.pitch, pitch = t.pitch;
    for (std::ptrdiff_t s = 0; s < t.segment_count; ++s) {
        const std::uint8_t* a = t.segments[s].data + offset;
        for (const std::uint8_t* end = a + 4 * t.segments[s].steps; a != end; a += 4, w += kVectors * 64) {
            V weights[kVectors];
            TALPA_UNROLL
            for (int q = 0; q < kVectors; ++q) weights[q] = S::load(w + q * 64);
            TALPA_UNROLL
            for (int p = 0; p < kPixels; ++p) {
                V x = S::word(a + p * pitch);
                if constexpr (kDot == Dot::Bytes) x = S::flip(x, flip);
                TALPA_UNROLL
                for (int q = 0; q < kVectors; ++q) acc[p][q] = dot<S, kDot>(acc[p][q], x, weights[q]);
            }
        }
    }
    Output out = t.out;
    if (out.data != nullptr) out.data += pixel * out.pixel_stride;  // null: the epilogue only keeps the sums
    finish<S>(acc, t.blocks, out, t.epilogue, pixel);
}

// Only as many forms as the instruction set has use for: each is a long unrolled loop, and they are what compiling
// takes its time for.
template <typename S, Dot kDot, int kVectors, int kPixels = S::kTilePixels>
void conv_tiles(const ConvTask& t, int pixel, int count) {
    if constexpr (kPixels > 1)
        if (count < kPixels) return conv_tiles<S, kDot, kVectors, kPixels - 1>(t, pixel, count);
    conv_tile<S, kDot, kPixels, kVectors>(t, pixel);
}

template <typename S, Dot kDot>
void conv_row(const ConvTask& t) {
    // Tiles of nearly equal width: 14 is 7 + 7, not 8 + 6.
    const int tiles = (t.pixels + S::kTilePixels - 1) / S::kTilePixels;
    for (int i = 0, pixel = 0; i < tiles; ++i) {
        const int count = (t.pixels - pixel + tiles - i - 1) / (tiles - i);
        switch (t.vectors) {
            case 1:
                conv_tiles<S, kDot, 1>(t, pixel, count);
                break;
            case 2:
                conv_tiles<S, kDot, 2>(t, pixel, count);
                break;
            default:
                conv_tiles<S, kDot, 3>(t, pixel, count);
                break;
        }
        pixel += count;
    }
}

template <typename S, Dot kDot, int kPixels>
void depthwise_tile(const DepthwiseTask& t, int pixel) {
    using V = typename S::V;
    V acc[kPixels][1];
    const V bias = S::load(t.block->bias);
    TALPA_UNROLL
    for (int p = 0; p < kPixels; ++p) acc[p][0] = bias;
    for (std::ptrdiff_t g = 0; g < t.group_count; ++g) {
        const V w = S::load(t.weights + g * 64);
        const std::uint8_t* a = t.groups[g] + static_cast<std::ptrdiff_t>(pixel) * 64;
        TALPA_UNROLL
        for (int p = 0; p < kPixels; ++p) acc[p][0] = dot<S, kDot>(acc[p][0], S::load(a + p * 64), w);
    }
    Output out = t.out;
    if (out.data != nullptr) out.data += pixel * out.pixel_stride;  // null: the epilogue only keeps the sums
    finish<S>(acc, t.block, out, t.epilogue, pixel);
}

template <typename S, Dot kDot>
void depthwise_row(const DepthwiseTask& t) {
    constexpr int kStep = S::kDepthwisePixels;
    int pixel = 0;
    for (; pixel + kStep <= t.pixels; pixel += kStep) depthwise_tile<S, kDot, kStep>(t, pixel);
    switch (t.pixels - pixel) {
        case 7:
            depthwise_tile<S, kDot, 7>(t, pixel);
            break;
        case 6:
            depthwise_tile<S, kDot, 6>(t, pixel);
            break;
        case 5:
            depthwise_tile<S, kDot, 5>(t, pixel);
            break;
        case 4:
            depthwise_tile<S, kDot, 4>(t, pixel);
            break;
        case 3:
            depthwise_tile<S, kDot, 3>(t, pixel);
            break;
        case 2:
            depthwise_tile<S, kDot, 2>(t, pixel);
            break;
        case 1:
            depthwise_tile<S, kDot, 1>(t, pixel);
            break;
        default:
            break;
    }
}

template <typename S>
TALPA_INLINE typename S::V combined(Combine combine, const typename S::V& a, const typename S::V& b) {
    switch (combine) {
        case Combine::Add:
            return S::add(a, b);
        case Combine::Multiply:
            return S::multiply(a, b);
        case Combine::Min:
            return S::min(a, b);
        default:
            return S::max(a, b);
    }
}

template <typename S>
void binary(const BinaryTask& t) {
    using V = typename S::V;
    const typename S::Tail tail(t.epilogue);
    // Elements that are not 64 in a row come through here: gathered before, so that the vectors do not care.
    std::uint8_t rest_a[64], rest_b[64];
    for (std::size_t i = 0; i < t.count; i += 64) {
        const std::size_t count = t.count - i < 64 ? t.count - i : 64;
        const std::uint8_t* a = t.a + static_cast<std::ptrdiff_t>(i) * t.step_a;
        const std::uint8_t* b = t.b + static_cast<std::ptrdiff_t>(i) * t.step_b;
        if (t.step_a != 1 || count < 64) {
            for (std::size_t k = 0; k < count; ++k) rest_a[k] = a[static_cast<std::ptrdiff_t>(k) * t.step_a];
            for (std::size_t k = count; k < 64; ++k) rest_a[k] = 0;
            a = rest_a;
        }
        if (t.step_b != 1 || count < 64) {
            for (std::size_t k = 0; k < count; ++k) rest_b[k] = b[static_cast<std::ptrdiff_t>(k) * t.step_b];
            for (std::size_t k = count; k < 64; ++k) rest_b[k] = 0;
            b = rest_b;
        }
        V done[4];
        TALPA_UNROLL
        for (int v = 0; v < 4; ++v) {
            const V x = combined<S>(t.combine, S::operand(a + 16 * v, t.scale_a), S::operand(b + 16 * v, t.scale_b));
            done[v] =
                t.epilogue.wide ? S::wide(x, *t.block, t.epilogue) : requantized<S, false>(x, *t.block, t.epilogue);
        }
        const typename S::Bytes bytes = tail.bytes(done[0], done[1], done[2], done[3]);
        if (t.valid == kLanes) {
            S::store_bytes(bytes, t.out + i, static_cast<int>(count));
        } else {
            std::uint8_t all[64];
            S::store_bytes(bytes, all, 64);
            for (std::size_t k = 0; k < count; k += kLanes)
                __builtin_memcpy(t.out + i + k, all + k, static_cast<std::size_t>(t.valid));
        }
    }
}

template <bool kSigned>
inline void pool_max_pixels(const PoolTask& t) {
    for (int p = 0; p < t.pixels; ++p) {
        std::uint8_t best[kLanes];
        for (std::uint8_t& b : best) b = kSigned ? 0x80 : 0;
        for (int r = 0; r < t.row_count; ++r) {
            const std::uint8_t* x = t.rows[r] + p * t.pixel_step;
            for (int c = 0; c < t.columns; ++c, x += t.column_step)
                for (int i = 0; i < kLanes; ++i) {
                    if constexpr (kSigned)
                        best[i] = static_cast<std::int8_t>(x[i]) > static_cast<std::int8_t>(best[i]) ? x[i] : best[i];
                    else
                        best[i] = x[i] > best[i] ? x[i] : best[i];
                }
        }
        __builtin_memcpy(t.largest + p * kLanes, best, kLanes);
    }
}

[[maybe_unused]] void pool_max(const PoolTask& t) {
    if (t.is_signed)
        pool_max_pixels<true>(t);
    else
        pool_max_pixels<false>(t);
}

template <bool kSigned>
inline void pool_sum_pixels(const PoolTask& t) {
    for (int p = 0; p < t.pixels; ++p) {
        std::int32_t sum[kLanes] = {};
        for (int r = 0; r < t.row_count; ++r) {
            const std::uint8_t* x = t.rows[r] + p * t.pixel_step;
            for (int c = 0; c < t.columns; ++c, x += t.column_step)
                for (int i = 0; i < kLanes; ++i) sum[i] += kSigned ? static_cast<std::int8_t>(x[i]) : x[i];
        }
        __builtin_memcpy(t.sums + p * kLanes, sum, sizeof sum);
    }
}

[[maybe_unused]] void pool_sum(const PoolTask& t) {
    if (t.is_signed)
        pool_sum_pixels<true>(t);
    else
        pool_sum_pixels<false>(t);
}

template <typename S>
void finish_pixels(const std::int32_t* accumulators, const ChannelBlock* const* blocks, int pixels, const Output& out,
                   const Epilogue& e) {
    for (int p = 0; p < pixels; ++p) {
        typename S::V acc[1][1] = {{S::add(S::load(accumulators + p * kLanes), S::load(blocks[p]->bias))}};
        Output one = out;
        one.data += p * out.pixel_stride;
        finish<S>(acc, blocks[p], one, e, 0);
    }
}

}  // namespace
}  // namespace talpa::npu_model::fast
