// Look-up tables (ethos-u65, section 6.2) and the internal tanh and sigmoid (5.9).
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/core/byte_reader.h"
#include "npu_model/output.h"

namespace talpa::npu_model {

std::int64_t look_up(const npu::Operation& op, std::span<const std::uint8_t> table, std::int64_t t, bool& in_range) {
    const std::uint8_t* p = table.data();
    // 16 bits from 16 (or 32): 512 pairs of base and slope, linear between them.
    if (op.ofm.type.bytes == 2 && op.ifm.type.bytes != 1) {
        const std::int64_t u = op.ofm.type.is_signed ? t + 32768 : t;
        in_range = u >= 0 && u <= 65535;
        const std::uint8_t* entry = p + 4 * ((u >> 7) & 511);
        const std::int32_t base = load_le<std::int16_t>(entry), slope = load_le<std::int16_t>(entry + 2);
        return base + ((slope * static_cast<std::int32_t>(t & 127) + 64) >> 7);
    }
    const std::int64_t index = op.ofm.type.is_signed || op.ofm.type.bytes == 4 ? t + 128 : t;
    in_range = index >= 0 && index <= 255;
    const auto i = static_cast<std::size_t>(index & 255);
    switch (op.ofm.type.bytes) {
        case 1:
            return op.ofm.type.is_signed ? load_le<std::int8_t>(p + i) : std::int64_t{p[i]};
        case 2:
            return op.ofm.type.is_signed ? load_le<std::int16_t>(p + 2 * i)
                                         : std::int64_t{load_le<std::uint16_t>(p + 2 * i)};
        default:
            return load_le<std::int32_t>(p + 4 * i);
    }
}

namespace {

// 65536*sigmoid(i/24), as the framework's 16-bit kernels have it: rounded, and one more at some places.
constexpr std::uint8_t kOneMore[] = {4,  8,  12, 14, 15, 16, 17, 19, 20,  21,  22,  25,  27,  28, 29,
                                     30, 31, 33, 34, 35, 37, 39, 40, 41,  43,  44,  45,  46,  49, 50,
                                     54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255};

const std::array<std::int32_t, 256>& sigmoid_table() {
    static const auto table = [] {
        std::array<std::int32_t, 256> s{};
        for (std::size_t i = 0; i < 256; ++i)
            s[i] =
                static_cast<std::int32_t>(std::floor(65536.0 / (1.0 + std::exp(-static_cast<double>(i) / 24.0)) + 0.5));
        for (const std::uint8_t i : kOneMore) ++s[i];
        return s;
    }();
    return table;
}

// S at |x| in steps of 2^fraction_bits, times 2^fraction_bits; `limit` beyond the table's end.
std::int64_t interpolated(std::int64_t x, unsigned fraction_bits, std::int64_t limit) {
    const auto& s = sigmoid_table();
    const std::uint64_t magnitude = x < 0 ? 0 - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
    const std::uint64_t i = magnitude >> fraction_bits;
    if (i >= 255) return limit << fraction_bits;
    const auto f = static_cast<std::int64_t>(magnitude & ((1u << fraction_bits) - 1));
    return (std::int64_t{s[i]} << fraction_bits) + f * (s[i + 1] - s[i]);
}

}  // namespace

std::int32_t sigmoid_q15(std::int64_t x) {
    const std::int64_t t = interpolated(x, 9, 0x7FFF * 2);  // 0x7FFF << 10
    return static_cast<std::int32_t>((x >= 0 ? t + 512 : (1 << 25) - t + 511) >> 10);
}

std::int32_t tanh_q15(std::int64_t x) {
    const std::int64_t t = interpolated(x, 8, 0xFFFF);
    return static_cast<std::int32_t>((x >= 0 ? t - (1 << 23) + 128 : -t + (1 << 23) + 127) >> 8);
}

}  // namespace talpa::npu_model
