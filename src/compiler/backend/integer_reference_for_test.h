// For tests only: what a quantized graph must compute, operator by operator in plain loops over integers, straight from
// the definitions (ethos-u65, section 9.7; graph.h). It shares nothing with the lowering
// but the question whether a cumulative sum stays on the CPU, which rounds otherwise.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/lower/lowerer.h"

namespace talpa::compiler::testing {

using Numbers = std::vector<std::int64_t>;

/// RESCALE of TOSA with single rounding.
inline std::int64_t tosa_rescale(std::int64_t v, double r) {
    int e = 0;
    const double m = std::frexp(r, &e);
    auto multiplier = static_cast<std::int64_t>(std::nearbyint(m * 2147483648.0));
    if (multiplier == (std::int64_t{1} << 31)) {
        multiplier = std::int64_t{1} << 30;
        ++e;
    }
    int shift = 31 - e;
    if (shift > 62) {
        multiplier >>= std::min(31, shift - 62);
        shift = 62;
    }
    __extension__ using Wide = __int128;
    // A factor of 2^30 and more leaves nothing to round; whatever it is given goes beyond any type here, or is 0.
    if (shift < 1)
        return v == 0 ? 0 : v < 0 ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
    const Wide product = static_cast<Wide>(v) * multiplier + (static_cast<Wide>(1) << (shift - 1));
    return static_cast<std::int64_t>(product >> shift);
}

class IntegerReference {
  public:
    explicit IntegerReference(const Graph& graph) : g_(graph) {}
    void set(ValueId id, Numbers numbers) { values_[id] = std::move(numbers); }
    const Numbers& operator[](ValueId id) {
        if (!values_.contains(id)) values_[id] = constant(g_[id]);
        return values_[id];
    }
    void run() {
        for (const Node& n : g_.nodes) node(n);
    }

    static Numbers constant(const Value& v) {
        Numbers out(static_cast<std::size_t>(element_count(v.shape)));
        for (std::size_t i = 0; i < out.size(); ++i) {
            const std::uint8_t* p = v.constant->data() + i * dtype_size(v.stored_type());
            switch (v.stored_type()) {
                case DType::Int8:
                    out[i] = static_cast<std::int8_t>(*p);
                    break;
                case DType::UInt8:
                    out[i] = *p;
                    break;
                case DType::Int16: {
                    std::int16_t x;
                    std::memcpy(&x, p, 2);
                    out[i] = x;
                    break;
                }
                case DType::Int32: {
                    std::int32_t x;
                    std::memcpy(&x, p, 4);
                    out[i] = x;
                    break;
                }
                default:
                    throw std::logic_error("constant type");
            }
        }
        return out;
    }

  private:
    static double scale(const Value& v, std::size_t c = 0) {
        return v.quantization->scales.size() == 1 ? v.quantization->scales[0] : v.quantization->scales[c];
    }
    static std::int64_t zero(const Value& v) { return v.quantization->zero_points[0]; }
    static std::int64_t store(const Value& out, std::int64_t v, const Clamp& clamp = {}) {
        const Quantization& q = *out.quantization;
        std::int64_t lo = q.min, hi = q.max;
        if (std::isfinite(clamp.min))
            lo = std::max(lo, static_cast<std::int64_t>(std::nearbyint(clamp.min / q.scales[0])) + q.zero_points[0]);
        if (std::isfinite(clamp.max))
            hi = std::min(hi, static_cast<std::int64_t>(std::nearbyint(clamp.max / q.scales[0])) + q.zero_points[0]);
        return std::clamp(v + q.zero_points[0], std::min(lo, hi), hi);
    }
    // What CPU operators see and give: float32.
    static float real(const Numbers& x, std::int64_t i, const Value& v) {
        return static_cast<float>(x[static_cast<std::size_t>(i)] - zero(v)) * static_cast<float>(scale(v));
    }
    static std::int64_t quantized(float f, const Value& out) {
        const float inverse = 1.0f / static_cast<float>(scale(out));
        return std::clamp(static_cast<std::int64_t>(std::nearbyint(f * inverse)) + zero(out), out.quantization->min,
                          out.quantization->max);
    }
    // PyTorch's: pixels have their value in their middle, the border's go on.
    static std::int64_t bilinear(const Numbers& x, const Value& in, const Value& out,
                                 const std::vector<std::int64_t>& o) {
        struct Tap {
            std::int64_t low, high;
            float share;
        };
        const auto tap = [](std::int64_t at, std::int64_t from, std::int64_t to) {
            const float ratio = static_cast<float>(from) / static_cast<float>(to);
            const float source = std::max(0.0f, ratio * (static_cast<float>(at) + 0.5f) - 0.5f);
            const auto low = std::min(static_cast<std::int64_t>(source), from - 1);
            return Tap{low, std::min(low + 1, from - 1), source - static_cast<float>(low)};
        };
        const Tap v = tap(o[1], in.shape[1], out.shape[1]), h = tap(o[2], in.shape[2], out.shape[2]);
        const auto pixel = [&](std::int64_t row, std::int64_t column) {
            return real(x, position({o[0], row, column, o[3]}, in.shape), in);
        };
        const auto line = [&](std::int64_t row) {
            return (1 - h.share) * pixel(row, h.low) + h.share * pixel(row, h.high);
        };
        return quantized((1 - v.share) * line(v.low) + v.share * line(v.high), out);
    }
    static std::vector<std::int64_t> indices(std::int64_t at, const Shape& s) {
        std::vector<std::int64_t> i(s.size());
        for (std::size_t d = s.size(); d-- > 0;) {
            i[d] = at % s[d];
            at /= s[d];
        }
        return i;
    }
    static std::int64_t position(const std::vector<std::int64_t>& i, const Shape& s) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < s.size(); ++d) at = at * s[d] + i[d];
        return at;
    }
    // Broadcast: the element of `s` for position `i` of a larger shape.
    static std::int64_t repeated(const std::vector<std::int64_t>& i, const Shape& s) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < s.size(); ++d) at = at * s[d] + (s[d] == 1 ? 0 : i[i.size() - s.size() + d]);
        return at;
    }

    void node(const Node& n) {
        const Value& out = g_[n.outputs[0]];
        Numbers y(static_cast<std::size_t>(element_count(out.shape)));
        const Numbers& x = (*this)[n.inputs[0]];
        const Value& in = g_[n.inputs[0]];
        const auto each = [&](auto fn) {
            for (std::int64_t i = 0; i < element_count(out.shape); ++i)
                y[static_cast<std::size_t>(i)] = fn(indices(i, out.shape));
        };
        const auto at = [](const Numbers& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; };
        switch (n.op) {
            case Op::Conv2d: {
                const auto& a = n.as<ConvAttr>();
                const Value& w = g_[n.inputs[1]];
                const Numbers& k = (*this)[n.inputs[1]];
                const Numbers* b = n.inputs.size() > 2 && n.inputs[2] != kNoValue ? &(*this)[n.inputs[2]] : nullptr;
                const std::int64_t per_group = out.shape[3] / a.groups;
                each([&](const std::vector<std::int64_t>& o) {
                    std::int64_t acc = b != nullptr ? at(*b, o[3]) : 0;
                    for (std::int64_t ky = 0; ky < w.shape[1]; ++ky)
                        for (std::int64_t kx = 0; kx < w.shape[2]; ++kx) {
                            const std::int64_t iy = o[1] * a.stride[0] - a.padding.top + ky * a.dilation[0],
                                               ix = o[2] * a.stride[1] - a.padding.left + kx * a.dilation[1];
                            if (iy < 0 || ix < 0 || iy >= in.shape[1] || ix >= in.shape[2]) continue;
                            for (std::int64_t c = 0; c < w.shape[3]; ++c)
                                acc += (at(x, position({o[0], iy, ix, o[3] / per_group * w.shape[3] + c}, in.shape)) -
                                        zero(in)) *
                                       at(k, position({o[3], ky, kx, c}, w.shape));
                        }
                    return store(out,
                                 tosa_rescale(acc, scale(in) * scale(w, static_cast<std::size_t>(o[3])) / scale(out)),
                                 a.clamp);
                });
                break;
            }
            case Op::ConvTranspose2d: {
                const auto& a = n.as<ConvAttr>();
                const Value& w = g_[n.inputs[1]];
                const Numbers& k = (*this)[n.inputs[1]];
                const Numbers* b = n.inputs.size() > 2 && n.inputs[2] != kNoValue ? &(*this)[n.inputs[2]] : nullptr;
                Numbers acc(y.size());
                for (std::int64_t i = 0; i < element_count(in.shape); ++i) {
                    const auto p = indices(i, in.shape);
                    for (std::int64_t o = 0; o < w.shape[0]; ++o)
                        for (std::int64_t ky = 0; ky < w.shape[1]; ++ky)
                            for (std::int64_t kx = 0; kx < w.shape[2]; ++kx) {
                                const std::int64_t oy = p[1] * a.stride[0] - a.padding.top + ky,
                                                   ox = p[2] * a.stride[1] - a.padding.left + kx;
                                if (oy < 0 || ox < 0 || oy >= out.shape[1] || ox >= out.shape[2]) continue;
                                acc[static_cast<std::size_t>(position({p[0], oy, ox, o}, out.shape))] +=
                                    (at(x, i) - zero(in)) * at(k, position({o, ky, kx, p[3]}, w.shape));
                            }
                }
                each([&](const std::vector<std::int64_t>& o) {
                    const std::int64_t sum = at(acc, position(o, out.shape)) + (b != nullptr ? at(*b, o[3]) : 0);
                    return store(out,
                                 tosa_rescale(sum, scale(in) * scale(w, static_cast<std::size_t>(o[3])) / scale(out)),
                                 a.clamp);
                });
                break;
            }
            case Op::FullyConnected: {
                const Value& w = g_[n.inputs[1]];
                const Numbers& k = (*this)[n.inputs[1]];
                const Numbers* b = n.inputs.size() > 2 && n.inputs[2] != kNoValue ? &(*this)[n.inputs[2]] : nullptr;
                for (std::int64_t i = 0; i < element_count(out.shape); ++i) {
                    const std::int64_t row = i / w.shape[0], o = i % w.shape[0];
                    std::int64_t acc = b != nullptr ? at(*b, o) : 0;
                    for (std::int64_t c = 0; c < w.shape[1]; ++c)
                        acc += (at(x, row * w.shape[1] + c) - zero(in)) * at(k, o * w.shape[1] + c);
                    y[static_cast<std::size_t>(i)] =
                        store(out, tosa_rescale(acc, scale(in) * scale(w, static_cast<std::size_t>(o)) / scale(out)),
                              n.as<FullyConnectedAttr>().clamp);
                }
                break;
            }
            case Op::MaxPool2d:
            case Op::AvgPool2d: {
                const auto& a = n.as<PoolAttr>();
                // The exporter's averages have the zero point quantized again, except where padding counts.
                const Edges& e = a.padding;
                const bool counts = a.count_include_pad && (e.top | e.left | e.bottom | e.right) != 0;
                const Quantization& q = *out.quantization;
                const std::int64_t z =
                    counts ? zero(in)
                           : std::clamp(
                                 static_cast<std::int64_t>(std::nearbyint(static_cast<double>(zero(in)) / scale(in))) +
                                     zero(in),
                                 q.min, q.max);
                each([&](const std::vector<std::int64_t>& o) {
                    std::int64_t best = INT64_MIN, sum = 0, count = 0;
                    for (std::int64_t ky = 0; ky < a.kernel[0]; ++ky)
                        for (std::int64_t kx = 0; kx < a.kernel[1]; ++kx) {
                            const std::int64_t iy = o[1] * a.stride[0] - a.padding.top + ky,
                                               ix = o[2] * a.stride[1] - a.padding.left + kx;
                            if (iy < 0 || ix < 0 || iy >= in.shape[1] || ix >= in.shape[2]) continue;
                            const std::int64_t v = at(x, position({o[0], iy, ix, o[3]}, in.shape));
                            best = std::max(best, v);
                            sum += v - z;
                            ++count;
                        }
                    if (n.op == Op::MaxPool2d) return std::clamp(best, out.quantization->min, out.quantization->max);
                    if (a.count_include_pad) count = a.kernel[0] * a.kernel[1];
                    // The slightly too large reciprocal of section 5.5.
                    int k = 0;
                    while ((std::int64_t{1} << k) < count) ++k;
                    const std::int64_t m = ((std::int64_t{1} << (31 + k)) + (std::int64_t{1} << k)) / count;
                    return std::clamp(((sum * m + (std::int64_t{1} << (30 + k))) >> (31 + k)) + z, q.min, q.max);
                });
                break;
            }
            case Op::ReduceMax:
            case Op::ReduceMin: {
                const auto& axes = n.as<ReduceAttr>().axes;
                Shape kept;
                for (std::size_t d = 0; d < in.shape.size(); ++d)
                    kept.push_back(std::count(axes.begin(), axes.end(), static_cast<int>(d)) > 0 ? 1 : in.shape[d]);
                const bool most = n.op == Op::ReduceMax;
                std::fill(y.begin(), y.end(), most ? INT64_MIN : INT64_MAX);
                for (std::int64_t i = 0; i < element_count(in.shape); ++i) {
                    std::int64_t& to = y[static_cast<std::size_t>(repeated(indices(i, in.shape), kept))];
                    to = most ? std::max(to, at(x, i)) : std::min(to, at(x, i));
                }
                break;
            }
            case Op::MatMul: {
                const Value& other = g_[n.inputs[1]];
                const Numbers& z = (*this)[n.inputs[1]];
                each([&](const std::vector<std::int64_t>& o) {
                    std::int64_t sum = 0;
                    auto ia = o, ib = o;
                    for (std::int64_t k = 0; k < in.shape.back(); ++k) {
                        ia[o.size() - 1] = ib[o.size() - 2] = k;
                        sum += (at(x, repeated(ia, in.shape)) - zero(in)) *
                               (at(z, repeated(ib, other.shape)) - zero(other));
                    }
                    return store(out, tosa_rescale(sum, scale(in) * scale(other) / scale(out)));
                });
                break;
            }
            case Op::CumSum: {
                const auto axis = static_cast<std::size_t>(n.as<ReduceAttr>().axes[0]);
                if (!cumulative_sum_obstacle(g_, n)) {  // on the NPU
                    each([&](std::vector<std::int64_t> o) {
                        std::int64_t sum = 0;
                        const std::int64_t last = o[axis];
                        for (o[axis] = 0; o[axis] <= last; ++o[axis]) sum += at(x, position(o, in.shape)) - zero(in);
                        return store(out, tosa_rescale(sum, scale(in) / scale(out)));
                    });
                    break;
                }
                // On the CPU, in float32.
                each([&](std::vector<std::int64_t> o) {
                    float sum = 0;
                    const std::int64_t last = o[axis];
                    for (o[axis] = 0; o[axis] <= last; ++o[axis]) sum += real(x, position(o, in.shape), in);
                    return quantized(sum, out);
                });
                break;
            }
            case Op::Mean: {
                const auto& axes = n.as<ReduceAttr>().axes;
                Shape kept;
                std::int64_t count = 1;
                for (std::size_t d = 0; d < in.shape.size(); ++d) {
                    const bool goes = std::count(axes.begin(), axes.end(), static_cast<int>(d)) > 0;
                    kept.push_back(goes ? 1 : in.shape[d]);
                    if (goes) count *= in.shape[d];
                }
                Numbers sums(y.size());
                for (std::int64_t i = 0; i < element_count(in.shape); ++i)
                    sums[static_cast<std::size_t>(repeated(indices(i, in.shape), kept))] += at(x, i) - zero(in);
                for (std::size_t i = 0; i < y.size(); ++i)
                    y[i] = store(out, tosa_rescale(sums[i], scale(in) / scale(out) / static_cast<double>(count)));
                break;
            }
            case Op::Add:
            case Op::Sub:
            case Op::Mul:
            case Op::Minimum:
            case Op::Maximum: {
                const Value& other = g_[n.inputs[1]];
                const Numbers& z = (*this)[n.inputs[1]];
                const bool wide = in.stored_type() == DType::Int16;
                const double unit = 2 * std::max(scale(in), scale(other)) / std::ldexp(1.0, wide ? 12 : 20);
                const double small = std::min(scale(in), scale(other));
                each([&](const std::vector<std::int64_t>& o) {
                    const std::int64_t a = at(x, repeated(o, in.shape)) - zero(in),
                                       b = at(z, repeated(o, other.shape)) - zero(other);
                    const Clamp& clamp = n.as<BinaryAttr>().clamp;
                    if (n.op == Op::Mul)
                        return store(out, tosa_rescale(a * b, scale(in) * scale(other) / scale(out)), clamp);
                    if (n.op == Op::Minimum || n.op == Op::Maximum) {
                        const std::int64_t ra = tosa_rescale(a, scale(in) / small),
                                           rb = tosa_rescale(b, scale(other) / small);
                        return store(
                            out,
                            tosa_rescale(n.op == Op::Minimum ? std::min(ra, rb) : std::max(ra, rb), small / scale(out)),
                            clamp);
                    }
                    const std::int64_t ra = tosa_rescale(a, scale(in) / unit),
                                       rb = tosa_rescale(b, scale(other) / unit);
                    return store(out, tosa_rescale(n.op == Op::Add ? ra + rb : ra - rb, unit / scale(out)), clamp);
                });
                break;
            }
            case Op::Tanh:
            case Op::Sigmoid:
            case Op::HardSwish:
            case Op::ClampOp:
                if (n.op != Op::ClampOp && in.stored_type() == DType::Int16) {
                    // 512 points of the function, straight lines between them.
                    const auto point = [&](std::int64_t i) {
                        const float real = static_cast<float>(i * 128 - 32768) * static_cast<float>(scale(in));
                        const float f = n.op == Op::Tanh ? std::tanh(real) : 1.0f / (1.0f + std::exp(-real));
                        return quantized(f, out);
                    };
                    for (std::size_t i = 0; i < y.size(); ++i) {
                        const std::int64_t cell = (x[i] + 32768) / 128, part = (x[i] + 32768) % 128;
                        const std::int64_t low = point(cell), rise = point(cell + 1) - low;
                        y[i] =
                            low + static_cast<std::int64_t>(std::floor(static_cast<double>(rise * part) / 128 + 0.5));
                    }
                    break;
                }
                for (std::size_t i = 0; i < y.size(); ++i) {
                    const float real = static_cast<float>(x[i] - zero(in)) * static_cast<float>(scale(in));
                    float f = real;
                    if (n.op == Op::Sigmoid) f = 1.0f / (1.0f + std::exp(-real));
                    if (n.op == Op::HardSwish) f = real * std::min(std::max(real + 3.0f, 0.0f), 6.0f) / 6.0f;
                    if (n.op == Op::ClampOp) {
                        y[i] =
                            store(out, tosa_rescale(x[i] - zero(in), scale(in) / scale(out)), n.as<UnaryAttr>().clamp);
                        continue;
                    }
                    const float inverse = 1.0f / static_cast<float>(scale(out));
                    y[i] = std::clamp(static_cast<std::int64_t>(std::nearbyint(f * inverse)) + zero(out),
                                      out.quantization->min, out.quantization->max);
                }
                break;
            case Op::Requantize:
                for (std::size_t i = 0; i < y.size(); ++i)
                    y[i] = store(out, tosa_rescale(x[i] - zero(in), scale(in) / scale(out)));
                break;
            case Op::Softmax: {
                const std::int64_t depth = in.shape.back();
                for (std::int64_t row = 0; row < element_count(in.shape) / depth; ++row) {
                    std::int64_t most = INT64_MIN;
                    for (std::int64_t c = 0; c < depth; ++c) most = std::max(most, at(x, row * depth + c));
                    double sum = 0;
                    for (std::int64_t c = 0; c < depth; ++c)
                        sum += std::exp(static_cast<double>(at(x, row * depth + c) - most) * scale(in));
                    for (std::int64_t c = 0; c < depth; ++c)
                        y[static_cast<std::size_t>(row * depth + c)] = store(
                            out, std::llrint(std::exp(static_cast<double>(at(x, row * depth + c) - most) * scale(in)) /
                                             sum / scale(out)));
                }
                break;
            }
            case Op::Concat: {
                const auto axis = static_cast<std::size_t>(n.as<AxisAttr>().axis);
                each([&](std::vector<std::int64_t> o) -> std::int64_t {
                    for (const ValueId id : n.inputs) {
                        const Value& part = g_[id];
                        if (o[axis] < part.shape[axis]) {
                            const std::int64_t v = at((*this)[id], position(o, part.shape));
                            return part.quantization == out.quantization
                                       ? v
                                       : store(out, tosa_rescale(v - zero(part), scale(part) / scale(out)));
                        }
                        o[axis] -= part.shape[axis];
                    }
                    return 0;
                });
                break;
            }
            case Op::Slice: {
                const auto& a = n.as<SliceAttr>();
                each([&](std::vector<std::int64_t> o) {
                    for (std::size_t d = 0; d < o.size(); ++d) o[d] = a.starts[d] + o[d] * a.steps[d];
                    return at(x, position(o, in.shape));
                });
                break;
            }
            case Op::Pad: {
                const auto& a = n.as<PadAttr>();
                each([&](std::vector<std::int64_t> o) {
                    for (std::size_t d = 0; d < o.size(); ++d) {
                        o[d] -= a.before[d];
                        if (o[d] < 0 || o[d] >= in.shape[d])
                            return std::clamp(
                                static_cast<std::int64_t>(std::nearbyint(a.value / scale(out))) + zero(out),
                                out.quantization->min, out.quantization->max);
                    }
                    return at(x, position(o, in.shape));
                });
                break;
            }
            case Op::Reshape:
                y = x;
                break;
            case Op::Permute: {
                const auto& order = n.as<PermuteAttr>().order;
                each([&](const std::vector<std::int64_t>& o) {
                    std::vector<std::int64_t> i(o.size());
                    for (std::size_t d = 0; d < o.size(); ++d) i[static_cast<std::size_t>(order[d])] = o[d];
                    return at(x, position(i, in.shape));
                });
                break;
            }
            case Op::Resize:
                if (n.as<ResizeAttr>().mode == ResizeAttr::Mode::Bilinear) {
                    each([&](const std::vector<std::int64_t>& o) { return bilinear(x, in, out, o); });
                    break;
                }
                each([&](const std::vector<std::int64_t>& o) {
                    return at(
                        x, position({o[0], o[1] * in.shape[1] / out.shape[1], o[2] * in.shape[2] / out.shape[2], o[3]},
                                    in.shape));
                });
                break;
            default:
                throw std::logic_error(op_name(n.op));
        }
        values_[n.outputs[0]] = std::move(y);
    }

    const Graph& g_;
    std::map<ValueId, Numbers> values_;
};

}  // namespace talpa::compiler::testing
