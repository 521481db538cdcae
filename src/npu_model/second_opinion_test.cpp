// The reference kernels against a second formulation of sections 4 to 6 of ethos-u65, written apart from them and in
// another style: each output element is pulled from memory by itself, and rounding is said with exact fractions and the
// framework's two steps instead of closed forms. Random operations of every kind.
#include <gtest/gtest.h>

#include <bit>

#include "npu_model/output.h"
#include "npu_model/random_operation.h"

namespace talpa::npu_model {
namespace {

using npu::OpKind;
using npu::Rounding;
using Big = __int128;

Big floor_div(Big a, Big b) {  // b > 0
    const Big q = a / b;
    return q * b > a ? q - 1 : q;
}
Big power(unsigned n) {
    return Big{1} << n;
}
Big half_up(Big a, Big b) {
    return floor_div(2 * a + b, 2 * b);
}
Big half_away(Big a, Big b) {
    return a < 0 ? -half_up(-a, b) : half_up(a, b);
}

// Section 5.1 as the framework has it: a doubling high multiply, then a rounding shift.
Big rescale(Big v, std::uint32_t multiplier, unsigned shift, Rounding mode) {
    const Big product = v * multiplier;
    if (mode == Rounding::Truncate)
        return product < 0 ? -floor_div(-product, power(shift)) : floor_div(product, power(shift));
    if (mode == Rounding::Tfl && shift > 31) return half_away(half_up(product, power(31)), power(shift - 31));
    return half_up(product, power(shift));
}

class Oracle {
  public:
    explicit Oracle(const testing::RandomOperation& r) : r_(r), op_(r.op) {}

    /// The bits that element (y, x, c) of the OFM must hold.
    [[nodiscard]] std::uint32_t element(std::uint32_t y, std::uint32_t x, std::uint32_t c) const {
        Big value = 0;
        bool add_zero_point = true;
        switch (op_.kind) {
            case OpKind::Conv:
            case OpKind::Depthwise:
                value = weighted(y, x, c);
                break;
            case OpKind::MaxPool:
                value = maximum(y, x, c);
                add_zero_point = false;
                break;
            case OpKind::AvgPool:
                value = average(y, x, c);
                break;
            case OpKind::ReduceSum:
                value = channel_sum(y, x);
                break;
            case OpKind::Min:
            case OpKind::Max:
                add_zero_point = false;
                [[fallthrough]];
            default:
                value = binary(y, x, c);
        }
        return finish(value, add_zero_point);
    }

  private:
    static Big read(const std::uint8_t* p, npu::ElementType type) {
        std::uint64_t raw = 0;
        for (unsigned i = 0; i < type.bytes; ++i) raw += std::uint64_t{p[i]} << (8 * i);
        const std::uint64_t top = std::uint64_t{1} << (8 * type.bytes - 1);
        return type.is_signed && raw >= top ? Big(raw) - 2 * Big(top) : Big(raw);
    }

    [[nodiscard]] Big load(const npu::FeatureMap& fm, std::uint32_t y, std::uint32_t x, std::uint32_t c) const {
        unsigned tile = 0;
        if (x >= fm.width0) {
            tile = y >= fm.height1 ? 3 : 1;
            y -= y >= fm.height1 ? fm.height1 : 0;
            x -= fm.width0;
        } else if (y >= fm.height0) {
            tile = 2;
            y -= fm.height0;
        }
        const std::int64_t es = fm.type.bytes;
        std::int64_t at = static_cast<std::int64_t>(fm.base[tile]) + std::int64_t{y} * fm.stride_y;
        at += fm.layout == npu::Layout::Nhwc
                  ? x * fm.stride_x + c * es
                  : std::int64_t{c >> 4} * fm.stride_c + (std::int64_t{x} * 16 + (c & 15)) * es;
        return read(r_.memory[fm.region].data() + at, fm.type);
    }

    // What the window sees at (y, x) of the upscaled, padded input: 0 padding, 1 an inserted zero, 2 an element (in
    // `value`).
    int look(std::int64_t y, std::int64_t x, std::uint32_t c, Big& value) const {
        const npu::Kernel& k = op_.kernel;
        const std::int64_t rows =
            std::int64_t{op_.ofm.height - 1} * k.stride_y + k.dilated_height() - op_.padding.top - op_.padding.bottom;
        const std::int64_t columns =
            std::int64_t{op_.ofm.width - 1} * k.stride_x + k.dilated_width() - op_.padding.left - op_.padding.right;
        if (y < 0 || x < 0 || y >= rows || x >= columns) return 0;
        if (op_.upscale == npu::Upscale::Zeros && ((y | x) & 1) != 0) return 1;
        const int halve = op_.upscale == npu::Upscale::None ? 0 : 1;
        value = load(op_.ifm, static_cast<std::uint32_t>(y >> halve), static_cast<std::uint32_t>(x >> halve), c);
        return 2;
    }

    template <typename Fn>
    void window(std::uint32_t y, std::uint32_t x, Fn fn) const {
        for (std::uint32_t ky = 0; ky < op_.kernel.height; ++ky)
            for (std::uint32_t kx = 0; kx < op_.kernel.width; ++kx)
                fn(ky, kx, std::int64_t{y} * op_.kernel.stride_y + ky * op_.kernel.dilation_y - op_.padding.top,
                   std::int64_t{x} * op_.kernel.stride_x + kx * op_.kernel.dilation_x - op_.padding.left);
    }

    static Big wrapped(Big v, unsigned bits) {
        const Big m = v - floor_div(v, power(bits)) * power(bits);
        return m >= power(bits - 1) ? m - power(bits) : m;
    }
    [[nodiscard]] unsigned accumulator_bits() const { return op_.acc_format == npu::AccFormat::Int40 ? 40 : 32; }

    [[nodiscard]] Big weighted(std::uint32_t y, std::uint32_t x, std::uint32_t o) const {
        const bool deep = op_.kind == OpKind::Conv;
        const std::uint32_t inputs = deep ? op_.ifm.depth : 1;
        Big sum = 0;
        window(y, x, [&](std::uint32_t ky, std::uint32_t kx, std::int64_t iy, std::int64_t ix) {
            for (std::uint32_t i = 0; i < inputs; ++i) {
                Big value = 0;
                if (look(iy, ix, deep ? i : o, value) != 2) continue;
                sum += (value - op_.ifm.zero_point) *
                       r_.filter
                           ->weights[((std::size_t{o} * op_.kernel.height + ky) * op_.kernel.width + kx) * inputs + i];
            }
        });
        sum = wrapped(sum, accumulator_bits());
        if (op_.ofm_global_scale) return rescale(sum, op_.ofm_scale.multiplier, op_.ofm_scale.shift, op_.ofm_rounding);
        const ScaleRecord& record = r_.filter->records[o];
        return rescale(sum + record.bias, record.multiplier, record.shift, op_.ofm_rounding);
    }

    [[nodiscard]] Big maximum(std::uint32_t y, std::uint32_t x, std::uint32_t c) const {
        Big best = op_.ifm.type.min();
        window(y, x, [&](auto, auto, std::int64_t iy, std::int64_t ix) {
            Big value = op_.ifm.zero_point;
            if (look(iy, ix, c, value) != 0 && value > best) best = value;
        });
        return best;
    }

    [[nodiscard]] Big average(std::uint32_t y, std::uint32_t x, std::uint32_t c) const {
        Big sum = 0;
        std::uint32_t n = 0;
        window(y, x, [&](auto, auto, std::int64_t iy, std::int64_t ix) {
            Big value = op_.ifm.zero_point;
            if (look(iy, ix, c, value) == 0) return;
            sum += value - op_.ifm.zero_point;
            ++n;
        });
        sum = wrapped(sum, accumulator_bits());
        const npu::Padding& p = op_.padding;
        if (p.top + p.left + p.right + p.bottom == 0 && op_.ofm_global_scale)
            return rescale(sum, op_.ofm_scale.multiplier, op_.ofm_scale.shift, op_.ofm_rounding);
        if (n == 0) return 0;
        unsigned k = 0;
        while ((1u << k) < n) ++k;  // bit_length(n - 1)
        return rescale(sum, static_cast<std::uint32_t>((power(31 + k) + power(k)) / n), 31 + k, op_.ofm_rounding);
    }

    [[nodiscard]] Big channel_sum(std::uint32_t y, std::uint32_t x) const {
        Big sum = 0;
        window(y, x, [&](auto, auto, std::int64_t iy, std::int64_t ix) {
            for (std::uint32_t i = 0; i < op_.ifm.depth; ++i) {
                Big value = 0;
                if (look(iy, ix, i, value) == 2) sum += op_.ifm.type.bytes == 4 ? value : value - op_.ifm.zero_point;
            }
        });
        return rescale(sum, op_.ofm_scale.multiplier, op_.ofm_scale.shift, op_.ofm_rounding);
    }

    [[nodiscard]] Big binary(std::uint32_t y, std::uint32_t x, std::uint32_t c) const {
        const bool wide = op_.ifm.type.bytes == 4;
        const bool keeps_zero_point = wide || op_.kind == OpKind::Min || op_.kind == OpKind::Max;
        Big a = load(op_.ifm, y, x, c) - (keeps_zero_point ? 0 : op_.ifm.zero_point), b = 0;
        if (npu::has_ifm2(op_.kind)) {
            b = op_.ifm2_is_scalar ? Big(op_.ifm2_scalar)
                                   : load(op_.ifm2, op_.ifm2_broadcast_h ? 0 : y, op_.ifm2_broadcast_w ? 0 : x,
                                          op_.ifm2_broadcast_c ? 0 : c);
            if (!keeps_zero_point) b -= op_.ifm2.zero_point;
            if (op_.operands_reversed) std::swap(a, b);
        }
        const std::uint32_t m = wide ? 1 : op_.ofm_scale.multiplier;
        const unsigned s = op_.ofm_scale.shift;
        switch (op_.kind) {
            case OpKind::Add:
            case OpKind::Sub: {
                if (!wide) operands_to_common_scale(a, b);
                const Big sum = op_.kind == OpKind::Add ? a + b : a - b;
                if (op_.ifm.type.bytes == 1 && op_.operand_scaling == npu::OperandScaling::OpaOpb16 &&
                    op_.ofm_rounding == Rounding::Tfl)
                    return half_away(sum * m, power(s));
                return rescale(sum, m, s, op_.ofm_rounding);
            }
            case OpKind::Mul:
                return rescale(a * b, m, s, op_.ofm_rounding);
            case OpKind::Min:
                return a < b ? a : b;
            case OpKind::Max:
                return a < b ? b : a;
            case OpKind::Lrelu:
                return a < 0 ? rescale(a, m, s, op_.ofm_rounding) : a;
            case OpKind::Abs:
                return wide ? (a < 0 ? -a : a) : rescale(a < 0 ? -a : a, m, s, op_.ofm_rounding);
            case OpKind::Clz: {
                int zeros = 0;
                while (zeros < 32 && (static_cast<std::uint32_t>(a) & (0x80000000u >> zeros)) == 0) ++zeros;
                return zeros;
            }
            case OpKind::Shr:
                return rescale(a, 1, static_cast<unsigned>(b & 31), op_.ofm_rounding);
            default:
                return wrapped(a * power(static_cast<unsigned>(b & 31)), 32);
        }
    }

    void operands_to_common_scale(Big& a, Big& b) const {
        const unsigned p = op_.ifm.type.bytes == 1 ? 20 : 15;
        const npu::Scale s = op_.opa_scale;
        switch (op_.operand_scaling) {
            case npu::OperandScaling::OpaOpb16:
                a *= s.multiplier;
                b *= op_.opb_scale;
                break;
            case npu::OperandScaling::Opa32:
                a = rescale(a * power(p), s.multiplier, s.shift + p, op_.ifm_rounding);
                b *= power(p - 1);
                break;
            case npu::OperandScaling::Opb32:
                b = rescale(b * power(p), s.multiplier, s.shift + p, op_.ifm_rounding);
                a *= power(p - 1);
                break;
        }
    }

    [[nodiscard]] std::uint32_t finish(Big v, bool add_zero_point) const {
        using Function = npu::Activation::Function;
        const npu::Activation& act = op_.activation;
        const npu::ElementType out = op_.ofm.type;
        const auto small = static_cast<std::int64_t>(std::clamp<Big>(v, -power(40), power(40)));
        if (act.function == Function::Sigmoid) v = sigmoid_q15(small);
        if (act.function == Function::Tanh) v = tanh_q15(small);
        Big t = v + (add_zero_point ? op_.ofm.zero_point : 0);
        if (out.bytes == 4 && act.clip_range == 0) {
            t = std::clamp<Big>(t, -power(31), power(31) - 1);
        } else {
            const unsigned bits = act.clip_range == 0 ? 8 * out.bytes : act.clip_range == 5 ? 16 : 8;
            const bool is_signed = act.clip_range == 0 ? out.is_signed : act.clip_range != 2;
            const Big low = is_signed ? -power(bits - 1) : 0, high = is_signed ? power(bits - 1) - 1 : power(bits) - 1;
            const Big min = is_signed ? Big(static_cast<std::int16_t>(act.raw_min)) : Big(act.raw_min);
            const Big max = is_signed ? Big(static_cast<std::int16_t>(act.raw_max)) : Big(act.raw_max);
            if (t < low) t = low;
            if (t < min) t = min;
            if (t > high) t = high;
            if (t > max) t = max;
        }
        if (act.function == Function::Lut) t = table(t);
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(t) &
                                          (out.bytes == 4 ? 0xFFFFFFFFu : (1u << (8 * out.bytes)) - 1));
    }

    [[nodiscard]] Big table(Big t) const {
        const npu::ElementType out = op_.ofm.type;
        if (out.bytes == 2 && op_.ifm.type.bytes != 1) {
            const auto i = static_cast<std::size_t>((t + 32768) / 128);
            const std::uint8_t* p = r_.lut.data() + 4 * i;
            return read(p, {2, true}) + floor_div(read(p + 2, {2, true}) * ((t + 32768) % 128) + 64, 128);
        }
        const auto i = static_cast<std::size_t>((out.bytes == 1 && !out.is_signed ? t : t + 128) & 255);
        return read(r_.lut.data() + i * out.bytes, out);
    }

    const testing::RandomOperation& r_;
    const npu::Operation& op_;
};

class SecondOpinion : public ::testing::TestWithParam<OpKind> {};

TEST_P(SecondOpinion, agrees_on_random_operations) {
    testing::Random random(100 + static_cast<std::uint64_t>(GetParam()));
    ThreadPool pool(1);
    Findings findings;
    const int rounds = npu::has_weights(GetParam()) ? 60 : 150;
    for (int i = 0; i < rounds; ++i) {
        testing::RandomOperation r = testing::random_operation(random, testing::Profile::Any, GetParam());
        const testing::RandomOperation before = r;
        SCOPED_TRACE(std::to_string(i) + ": " + r.describe());
        findings.start_operation(r.op);
        ASSERT_TRUE(run_reference(r.context(pool, findings)));
        const Oracle oracle(before);
        for (std::uint32_t y = 0; y < r.op.ofm.height; ++y)
            for (std::uint32_t x = 0; x < r.op.ofm.width; ++x)
                for (std::uint32_t c = 0; c < r.op.ofm.depth; ++c) {
                    std::uint32_t stored = 0;
                    std::memcpy(&stored, r.memory[1].data() + r.op.ofm.offset_of(y, x, c), r.op.ofm.type.bytes);
                    ASSERT_EQ(stored, oracle.element(y, x, c)) << y << ", " << x << ", " << c;
                }
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SecondOpinion,
                         ::testing::Values(OpKind::Conv, OpKind::Depthwise, OpKind::MaxPool, OpKind::AvgPool,
                                           OpKind::ReduceSum, OpKind::Mul, OpKind::Add, OpKind::Sub, OpKind::Min,
                                           OpKind::Max, OpKind::Lrelu, OpKind::Abs, OpKind::Clz, OpKind::Shr,
                                           OpKind::Shl),
                         [](const auto& test) { return std::string(npu::op_kind_name(test.param)); });

}  // namespace
}  // namespace talpa::npu_model
