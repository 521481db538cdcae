// For tests and fuzz seeds only: a weight stream of given symbols with given parameters, so that every mode of the
// decoder can be reached. It chooses nothing and saves nothing; the compiler's encoder is elsewhere and shares no line
// with this. (ethos-u65, sections 7.1 to 7.3)
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "npu_model/weight_order.h"

namespace talpa::npu_model::testing {

struct EncoderSettings {
    std::vector<int> palette = {};  ///< weights; empty or 2..32
    unsigned direct_offset = 0;     ///< value codes left out at the start
    unsigned value_bits = 9;        ///< palette entry width, or symbol width when uncompressed without palette
    bool uncompressed = true;
    unsigned wdiv = 3;
    bool truncated = false;
    bool zero_runs = false;
    unsigned zdiv = 0;
    std::size_t slice = 32768;  ///< weights a slice
};

class BitWriter {
  public:
    void put(std::uint32_t value, unsigned count) {
        for (unsigned i = 0; i < count; ++i, ++bit_) {
            if (bit_ % 8 == 0) bytes_.push_back(0);
            bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | ((value >> i & 1) << (bit_ % 8)));
        }
    }
    void pad_with_ones(std::size_t multiple_bytes) {
        while (bit_ % (8 * multiple_bytes) != 0) put(1, 1);
    }
    [[nodiscard]] std::vector<std::uint8_t>& bytes() { return bytes_; }
    [[nodiscard]] std::size_t bits() const { return bit_; }

  private:
    std::vector<std::uint8_t> bytes_;
    std::size_t bit_ = 0;
};

/// Value code of a weight: magnitude above the sign bit.
[[nodiscard]] inline std::uint32_t value_code(int weight) {
    return static_cast<std::uint32_t>(2 * std::abs(weight) + (weight < 0 ? 1 : 0));
}

/// The index that stands for a weight; far above 511 if none does.
[[nodiscard]] inline std::uint32_t index_in(const EncoderSettings& s, int weight) {
    const auto found = std::find(s.palette.begin(), s.palette.end(), weight);
    if (found != s.palette.end()) return static_cast<std::uint32_t>(found - s.palette.begin());
    if (value_code(weight) < s.direct_offset) return UINT32_MAX;
    return value_code(weight) - s.direct_offset + static_cast<std::uint32_t>(s.palette.size());
}

/// One section: palette, slices, end marker.
inline void encode_section(BitWriter& out, const std::vector<std::int16_t>& symbols, const EncoderSettings& s) {
    const auto palette_size = static_cast<std::uint32_t>(s.palette.size());
    assert(palette_size != 1 && palette_size <= 32);
    const auto index_of = [&](int weight) { return index_in(s, weight); };
    std::vector<std::uint32_t> weights, runs(1, 0);
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        const bool last_chance = weights.empty() && i + 1 == symbols.size();  // a slice has at least one weight
        if (s.zero_runs && symbols[i] == 0 && !last_chance) {
            ++runs.back();
        } else {
            weights.push_back(index_of(symbols[i]));
            runs.push_back(0);
        }
    }
    const unsigned fixed_bits =
        palette_size != 0 ? static_cast<unsigned>(std::bit_width(palette_size - 1)) : s.value_bits;
    const unsigned wdiv = s.uncompressed ? fixed_bits : s.wdiv;

    for (std::size_t begin = 0; begin < weights.size(); begin += s.slice) {
        const std::size_t end = std::min(weights.size(), begin + s.slice);
        const bool first = begin == 0;
        out.put(s.zero_runs ? s.zdiv : 6, 3);
        out.put(static_cast<std::uint32_t>(end - begin - 1), 15);
        out.put(s.uncompressed ? 7 : s.wdiv, 3);
        out.put(s.truncated ? 1 : 0, 1);
        out.put(first ? 1 : 0, 1);
        if (first) {
            out.put(s.direct_offset, 5);
            out.put(palette_size == 0 ? 0 : palette_size - 1, 5);
            out.put(s.value_bits - 2, 3);
            for (const int weight : s.palette) out.put(value_code(weight), s.value_bits);
        }
        const std::vector<std::uint32_t> w(weights.begin() + static_cast<std::ptrdiff_t>(begin),
                                           weights.begin() + static_cast<std::ptrdiff_t>(end));
        std::vector<std::uint32_t> z;
        if (s.zero_runs)
            z.assign(runs.begin() + static_cast<std::ptrdiff_t>(first ? 0 : begin + 1),
                     runs.begin() + static_cast<std::ptrdiff_t>(end + 1));

        // The chunks. wc and zc count completed symbols as the decoder does, those beyond the end included.
        std::size_t wc = 0, zc = 0, w_from = 0, z_from = 0;  // *_from: first symbol whose remainder is due
        std::uint32_t w_left = 0, z_left = 0;                // what remains of the quotient under way
        bool w_open = false, z_open = false;
        for (;;) {
            const std::size_t w_due = wc, z_due = zc;
            const std::int64_t balance =
                s.zero_runs ? static_cast<std::int64_t>(wc) - static_cast<std::int64_t>(zc) : 0;
            const bool w_on = wc < w.size() && (!s.zero_runs || balance < 8);
            const bool z_on = s.zero_runs && zc < z.size() && balance >= 0;
            std::uint32_t w0 = 0, w1 = 0;
            unsigned w1_bits = 0;
            if (w_on) {
                const unsigned slots = s.uncompressed && wdiv > 5 ? 8 : 12;
                for (unsigned i = 0; i < slots; ++i) {
                    if (!w_open) {
                        w_left = wc < w.size() && !s.uncompressed ? w[wc] >> wdiv : 0;
                        w_open = true;
                    }
                    assert(!s.truncated || s.uncompressed || w_left <= 2);
                    const std::uint32_t code = std::min(2u, w_left);
                    if (code > 0) {
                        w0 |= 1u << i;
                        w1 |= (code - 1) << w1_bits++;
                    }
                    w_left -= code;
                    if (code < 2 || s.truncated) {
                        w_open = false;
                        ++wc;
                    }
                }
                if (!s.uncompressed) out.put(w0, 12);
            }
            if (z_on) {
                const unsigned slots = s.zdiv < 3 ? 12 : 8;
                for (unsigned i = 0; i < slots; ++i) {
                    if (!z_open) {
                        z_left = zc < z.size() ? z[zc] >> s.zdiv : 0;
                        z_open = true;
                    }
                    out.put(z_left > 0 ? 1 : 0, 1);
                    if (z_left > 0) {
                        --z_left;
                    } else {
                        z_open = false;
                        ++zc;
                    }
                }
            }
            if (w_on) out.put(w1, w1_bits);
            for (; w_from < std::min(w_due, w.size()); ++w_from) out.put(w[w_from] & ((1u << wdiv) - 1), wdiv);
            for (; z_from < std::min(z_due, z.size()); ++z_from) out.put(z[z_from] & ((1u << s.zdiv) - 1), s.zdiv);
            if (!w_on && !z_on) break;
        }
    }
    out.put(7, 3);
    out.pad_with_ones(1);
}

/// A whole stream of one section, padded to 16 bytes as hardware wants it.
[[nodiscard]] inline std::vector<std::uint8_t> encode_stream(const std::vector<std::int16_t>& symbols,
                                                             const EncoderSettings& settings = {}) {
    BitWriter out;
    encode_section(out, symbols, settings);
    out.pad_with_ones(16);
    return std::move(out.bytes());
}

/// The stream of one core of a dense bank, uncompressed.
[[nodiscard]] inline std::vector<std::uint8_t> encode_bank(const WeightOrder& order, unsigned core,
                                                           const std::vector<std::int16_t>& bank) {
    std::vector<std::int16_t> symbols;
    walk_weights(
        order, core,
        [&](std::uint32_t o, std::uint32_t ky, std::uint32_t kx, std::uint32_t i, std::uint32_t count) {
            const std::size_t at =
                ((std::size_t{o} * order.kernel_height + ky) * order.kernel_width + kx) * order.bank_ifm_depth() + i;
            symbols.insert(symbols.end(), bank.begin() + static_cast<std::ptrdiff_t>(at),
                           bank.begin() + static_cast<std::ptrdiff_t>(at + count));
        },
        [&](std::uint32_t count) { symbols.insert(symbols.end(), count, std::int16_t{0}); });
    return encode_stream(symbols);
}

}  // namespace talpa::npu_model::testing
