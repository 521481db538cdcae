// Microkernels in plain C++ over arrays of 16 lanes, which compilers turn into the vectors of their target.
#include "npu_model/fast/microkernels_impl.h"

namespace talpa::npu_model::fast {
namespace {

struct Generic {
    struct V {
        std::int32_t lane[kLanes];
    };
    struct Bytes {
        std::uint8_t byte[64];
    };
    static constexpr int kTilePixels = 2;
    static constexpr int kDepthwisePixels = 2;

    static V load(const void* p) {
        V v;
        __builtin_memcpy(&v, p, sizeof v);
        return v;
    }
    static void store(void* p, const V& v) { __builtin_memcpy(p, &v, sizeof v); }
    static V word(const std::uint8_t* p) {
        std::int32_t w;
        __builtin_memcpy(&w, p, 4);
        V v;
        for (std::int32_t& lane : v.lane) lane = w;
        return v;
    }
    static V dot16(const V& acc, const V& a, const V& w) {
        V r;
        for (int i = 0; i < kLanes; ++i) {
            // Two products of 16 bits each; the sum may wrap, as it does in the vector units.
            const std::int32_t low = static_cast<std::int16_t>(a.lane[i]) * static_cast<std::int16_t>(w.lane[i]);
            const std::int32_t high = (a.lane[i] >> 16) * (w.lane[i] >> 16);
            r.lane[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(acc.lane[i]) +
                                                  static_cast<std::uint32_t>(low) + static_cast<std::uint32_t>(high));
        }
        return r;
    }
    static V add(const V& a, const V& b) {
        V r;
        for (int i = 0; i < kLanes; ++i)
            r.lane[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(a.lane[i]) +
                                                  static_cast<std::uint32_t>(b.lane[i]));
        return r;
    }
    static V multiply(const V& a, const V& b) {
        V r;
        for (int i = 0; i < kLanes; ++i) r.lane[i] = a.lane[i] * b.lane[i];
        return r;
    }
    static V min(const V& a, const V& b) {
        V r;
        for (int i = 0; i < kLanes; ++i) r.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i];
        return r;
    }
    static V max(const V& a, const V& b) {
        V r;
        for (int i = 0; i < kLanes; ++i) r.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
        return r;
    }
    static V operand(const std::uint8_t* p, const OperandScale& s) {
        V v;
        for (int i = 0; i < kLanes; ++i) v.lane[i] = s.table[p[i]];
        return v;
    }
    static V narrow(const V& v, const ChannelBlock& b) {
        V r;
        for (int i = 0; i < kLanes; ++i) {
            const auto high = static_cast<std::int32_t>((std::int64_t{v.lane[i]} * b.multiplier[i]) >> 32);
            r.lane[i] = (high + b.round[i]) >> b.shift[i];
        }
        return r;
    }
    static V narrow_special(const V& v, const ChannelBlock& b) {
        V r;
        for (int i = 0; i < kLanes; ++i) {
            const auto x = static_cast<std::int32_t>(static_cast<std::uint32_t>(v.lane[i]) << b.left[i]);
            const auto high = static_cast<std::int32_t>(((std::int64_t{x} * b.multiplier[i]) >> 32) + (x & b.large[i]));
            r.lane[i] = (high + b.round[i]) >> b.shift[i];
        }
        return r;
    }
    static V wide(V v, const ChannelBlock& b, const Epilogue& e) {
        wide_lanes(v.lane, b, e);
        return v;
    }

    struct Tail {
        const Epilogue& e;
        explicit Tail(const Epilogue& epilogue) : e(epilogue) {}
        void quarter(const V& v, std::uint8_t* out) const {
            for (int i = 0; i < kLanes; ++i) {
                std::int32_t x = v.lane[i];
                x = x < e.low ? e.low : x;
                x = x > e.high ? e.high : x;
                out[i] = static_cast<std::uint8_t>(x ^ e.flip);
            }
            if (e.lut != nullptr)
                for (int i = 0; i < kLanes; ++i) out[i] = e.lut[out[i]];
        }
        Bytes bytes(const V& a, const V& b, const V& c, const V& d) const {
            Bytes r;
            quarter(a, r.byte);
            quarter(b, r.byte + 16);
            quarter(c, r.byte + 32);
            quarter(d, r.byte + 48);
            return r;
        }
    };

    static void store_bytes(const Bytes& b, std::uint8_t* to, int count) {
        __builtin_memcpy(to, b.byte, static_cast<std::size_t>(count));
    }
};

void spread16(const SpreadTask& t) {
    for (int p = 0; p < t.pixels; ++p) {
        const std::uint8_t* first = t.line + p * t.stride * 32;
        const std::uint8_t* second = first + t.dilation * 32;
        std::uint8_t* out = t.out + static_cast<std::ptrdiff_t>(p) * 64;
        for (int i = 0; i < kLanes; ++i) {
            __builtin_memcpy(out + 4 * i, first + 2 * i, 2);
            __builtin_memcpy(out + 4 * i + 2, second + 2 * i, 2);
        }
    }
}

#if defined(__SSE2__)
constexpr auto kTranspose = transpose_blocks;
#else
constexpr auto kTranspose = transpose_plain;
#endif

}  // namespace

const Microkernels kGenericMicrokernels{2,
                                        conv_row<Generic, Dot::Words>,
                                        depthwise_row<Generic, Dot::Words>,
                                        spread16,
                                        conv_row<Generic, Dot::Words>,
                                        depthwise_row<Generic, Dot::Words>,
                                        spread16,
                                        map_bytes,
                                        binary<Generic>,
                                        pool_max,
                                        pool_sum,
                                        finish_pixels<Generic>,
                                        kTranspose};

}  // namespace talpa::npu_model::fast
