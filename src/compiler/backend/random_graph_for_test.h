// For tests only: random quantized networks of a few operators, each legal, with sizes and scales at their odd ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>

#include "compiler/graph/graph.h"
#include "compiler/graph/cumulative_sum.h"

namespace talpa::compiler::testing {

/// Where a random graph's choices come from: a seed, or bytes (a fuzzer's), which chance goes on after.
class Choices {
  public:
    using result_type = std::uint32_t;
    explicit Choices(std::uint32_t seed) : random_(seed) {}
    explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
    static constexpr result_type min() { return 0; }
    static constexpr result_type max() { return UINT32_MAX; }
    result_type operator()() {
        if (bytes_.size() < 2) return static_cast<result_type>(random_());
        const std::uint32_t v = bytes_[0] | static_cast<std::uint32_t>(bytes_[1]) << 8;
        bytes_ = bytes_.subspan(2);
        return v;
    }

  private:
    std::span<const std::uint8_t> bytes_;
    std::mt19937 random_;
};

class RandomGraph {
  public:
    /// What stands between the others: operators that the NPU has no form of, or sums so far that it has.
    enum class Between : std::uint8_t { Nothing, CpuOperators, Sums };
    explicit RandomGraph(std::uint32_t seed, Between between = Between::Nothing) : random_(seed), between_(between) {}
    explicit RandomGraph(std::span<const std::uint8_t> bytes) : random_(bytes) {}

    Graph make() {
        graph_ = {};
        graph_.name = "random";
        const DType type = below(6) == 0 ? DType::Int16 : DType::Int8;
        const Shape shape{1, 1 + below(below(2) ? 12 : 40), 1 + below(below(2) ? 12 : 40),
                          1 + below(below(2) ? 8 : 70)};
        ValueId at = graph_.add_value(activation("in", shape, type));
        graph_.inputs.push_back(at);
        pool_ = {at};
        const std::int64_t count = 1 + below(5);
        for (std::int64_t i = 0; i < count; ++i)
            for (int attempt = 0; attempt < 8; ++attempt)
                if (add(pool_[static_cast<std::size_t>(below(3) == 0 ? below(static_cast<std::int64_t>(pool_.size()))
                                                                     : static_cast<std::int64_t>(pool_.size()) - 1)]))
                    break;
        if (graph_.nodes.empty()) add_requantize(at);
        for (const Node& n : graph_.nodes) {
            const Uses uses = find_uses(graph_);
            if (uses.readers[n.outputs[0]].empty() || below(12) == 0) graph_.outputs.push_back(n.outputs[0]);
        }
        return std::move(graph_);
    }

    std::int64_t below(std::int64_t n) {
        return n <= 0 ? 0 : static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
    }

    std::vector<std::int64_t> numbers(const Value& v) {
        std::vector<std::int64_t> out(static_cast<std::size_t>(element_count(v.shape)));
        const Quantization& q = *v.quantization;
        for (auto& n : out) n = q.min + any(q.max - q.min + 1);
        return out;
    }

  private:
    // Weights and inputs: not choices worth a fuzzer's bytes.
    std::int64_t any(std::int64_t n) { return static_cast<std::int64_t>(data_() % static_cast<std::uint64_t>(n)); }
    double scale() { return std::exp2(static_cast<double>(below(1000)) / 125.0 - 8.0); }
    Quantization quantization(DType type) {
        Quantization q;
        q.type = type;
        q.scales = {static_cast<double>(static_cast<float>(scale()))};
        if (type == DType::Int16) {
            q.zero_points = {0};
            q.min = -32768;
            q.max = 32767;
        } else {
            const std::int64_t kinds[] = {-128, 127, 0, below(256) - 128};
            q.zero_points = {static_cast<std::int32_t>(kinds[below(4)])};
        }
        return q;
    }
    Value activation(std::string name, Shape shape, DType type) {
        Value v;
        v.name = std::move(name);
        v.shape = std::move(shape);
        v.quantization = quantization(type);
        return v;
    }
    std::string name() { return "v" + std::to_string(graph_.values.size()); }
    [[nodiscard]] Value like(ValueId id, Shape shape) const {
        Value v;
        v.shape = std::move(shape);
        v.quantization = graph_[id].quantization;
        return v;
    }
    ValueId finish(Op op, std::vector<ValueId> inputs, Attributes attributes, Value result) {
        if (result.name.empty()) result.name = name();
        Source source;
        source.node = result.name;
        const ValueId id = graph_.add_node(op, std::move(inputs), std::move(attributes), std::move(result), source);
        pool_.push_back(id);
        return id;
    }
    ValueId weights(const Shape& shape, double in_scale, std::size_t channels, ValueId* bias) {
        Value w;
        w.name = name() + "w";
        w.shape = shape;
        Quantization q;
        q.axis = 0;
        q.min = -127;
        for (std::size_t c = 0; c < channels; ++c) {
            q.scales.push_back(static_cast<double>(static_cast<float>(scale() / 64)));
            q.zero_points.push_back(0);
        }
        auto bytes = std::make_shared<Bytes>(static_cast<std::size_t>(element_count(shape)));
        for (auto& b : *bytes) b = static_cast<std::uint8_t>(any(255) - 127);
        w.constant = bytes;
        Value b;
        b.name = name() + "b";
        b.shape = {static_cast<std::int64_t>(channels)};
        Quantization bq;
        bq.type = DType::Int32;
        bq.axis = 0;
        bq.min = INT32_MIN;
        bq.max = INT32_MAX;
        for (const double s : q.scales) {
            bq.scales.push_back(in_scale * s);
            bq.zero_points.push_back(0);
        }
        auto bias_bytes = std::make_shared<Bytes>();
        for (std::size_t c = 0; c < channels; ++c) {
            const std::int64_t n = any(40000) - 20000;
            for (int k = 0; k < 4; ++k) bias_bytes->push_back(static_cast<std::uint8_t>(n >> (8 * k)));
        }
        b.constant = bias_bytes;
        w.quantization = q;
        b.quantization = bq;
        const ValueId id = graph_.add_value(w);
        *bias = below(4) == 0 ? kNoValue : graph_.add_value(b);
        return id;
    }
    // The result's scale so that sums use its range more or less.
    Value result_for(DType type, Shape shape, double typical) {
        Value v = activation(name(), std::move(shape), type);
        const double spread = type == DType::Int16 ? 20000.0 : 60.0;
        v.quantization->scales[0] =
            static_cast<double>(static_cast<float>(typical / spread * std::exp2(static_cast<double>(below(5)) - 2)));
        if (!(v.quantization->scales[0] > 1e-20)) v.quantization->scales[0] = 1e-20;
        return v;
    }
    Clamp clamp(const Value& v) {
        const double s = v.quantization->scales[0];
        Clamp c;
        if (below(2) == 0) c.min = 0;
        if (below(3) == 0) c.max = s * 40;
        return below(2) == 0 ? Clamp{} : c;
    }

    void add_requantize(ValueId x) {
        finish(Op::Requantize, {x}, NoAttr{}, activation(name(), graph_[x].shape, graph_[x].stored_type()));
    }

    bool add(ValueId x) {
        const Value in = graph_[x];
        const Shape s = in.shape;
        const DType type = in.stored_type();
        const bool image = s.size() == 4;
        const double level = in.quantization->scales[0] * (type == DType::Int16 ? 20000 : 70);
        if (between_ == Between::CpuOperators && below(3) == 0) return add_cpu_operator(x, in, level);
        if (between_ == Between::Sums && below(2) == 0) return add_sum(x, in, level);
        switch (below(18)) {
            case 0:
            case 1:
            case 2:
                return image && add_convolution(x, in, level);
            case 3: {
                if (!image || s[1] * s[2] > 400) return false;
                ConvAttr a;
                a.stride = {1 + below(3), 1 + below(3)};
                const std::int64_t kh = 1 + below(5), kw = 1 + below(5), depth = 1 + below(24);
                a.padding.top = a.padding.bottom = below(kh);
                a.padding.left = a.padding.right = below(kw);
                a.output_padding = {below(a.stride[0]), below(a.stride[1])};
                const std::int64_t oh = (s[1] - 1) * a.stride[0] - 2 * a.padding.top + kh + a.output_padding[0],
                                   ow = (s[2] - 1) * a.stride[1] - 2 * a.padding.left + kw + a.output_padding[1];
                if (oh < 1 || ow < 1) return false;
                ValueId bias;
                const ValueId w =
                    weights({depth, kh, kw, s[3]}, in.quantization->scales[0], static_cast<std::size_t>(depth), &bias);
                finish(Op::ConvTranspose2d, {x, w, bias}, a,
                       result_for(type, {s[0], oh, ow, depth},
                                  level * graph_[w].quantization->scales[0] * 70 *
                                      std::sqrt(static_cast<double>(kh * kw * s[3]))));
                return true;
            }
            case 4: {
                const std::int64_t depth = 1 + below(40);
                Shape shape = s;
                shape.back() = depth;
                ValueId bias;
                const ValueId w =
                    weights({depth, s.back()}, in.quantization->scales[0], static_cast<std::size_t>(depth), &bias);
                Value v = result_for(
                    type, shape,
                    level * graph_[w].quantization->scales[0] * 70 * std::sqrt(static_cast<double>(s.back())));
                FullyConnectedAttr a;
                a.clamp = clamp(v);
                finish(Op::FullyConnected, {x, w, bias}, a, v);
                return true;
            }
            case 5:
            case 6: {
                if (!image) return false;
                PoolAttr a;
                a.kernel = {1 + below(std::min<std::int64_t>(8, s[1])), 1 + below(std::min<std::int64_t>(8, s[2]))};
                a.stride = strides();
                a.padding = {below(a.kernel[0]) / 2, below(a.kernel[1]) / 2, below(a.kernel[0]) / 2,
                             below(a.kernel[1]) / 2};
                a.count_include_pad = below(4) == 0;
                const Shape shape{s[0], (s[1] + a.padding.top + a.padding.bottom - a.kernel[0]) / a.stride[0] + 1,
                                  (s[2] + a.padding.left + a.padding.right - a.kernel[1]) / a.stride[1] + 1, s[3]};
                Value v = like(x, shape);
                if (below(2) == 0) a.count_include_pad = false;
                finish(below(2) == 0 ? Op::MaxPool2d : Op::AvgPool2d, {x}, a, v);
                return true;
            }
            case 7: {
                if (!image) return false;
                ReduceAttr a;
                a.axes = below(3) == 0 ? std::vector<int>{3} : std::vector<int>{1, 2};
                a.keep_dims = below(2) == 0;
                Shape shape;
                for (int d = 0; d < 4; ++d) {
                    const bool goes = std::count(a.axes.begin(), a.axes.end(), d) > 0;
                    if (goes && a.keep_dims) shape.push_back(1);
                    if (!goes) shape.push_back(s[static_cast<std::size_t>(d)]);
                }
                const Op ops[] = {Op::Mean, Op::Mean, Op::ReduceMax, Op::ReduceMin};
                const Op op = ops[below(4)];
                finish(op, {x}, a, op == Op::Mean ? result_for(type, shape, level / 4) : like(x, shape));
                return true;
            }
            case 8:
            case 9: {
                const Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Minimum, Op::Maximum};
                const Op op = ops[below(5)];
                if (type == DType::Int16 && (op == Op::Minimum || op == Op::Maximum)) return false;
                ValueId other = kNoValue;
                for (int i = 0; i < 4 && other == kNoValue; ++i) {
                    const ValueId candidate =
                        pool_[static_cast<std::size_t>(below(static_cast<std::int64_t>(pool_.size())))];
                    if (graph_[candidate].shape == s && graph_[candidate].stored_type() == type) other = candidate;
                }
                if (other == kNoValue || below(3) == 0) {
                    Value c = activation(name() + "c", s, type);
                    for (auto& d : c.shape)
                        if (below(3) != 0) d = 1;
                    Bytes bytes;
                    for (const std::int64_t n : numbers(c))
                        for (std::size_t b = 0; b < dtype_size(type); ++b)
                            bytes.push_back(static_cast<std::uint8_t>(n >> (8 * b)));
                    c.constant = std::make_shared<Bytes>(bytes);
                    other = graph_.add_value(c);
                }
                const double second = graph_[other].quantization->scales[0] * (type == DType::Int16 ? 20000 : 70);
                Value v = result_for(type, s, op == Op::Mul ? level * second : std::max(level, second));
                BinaryAttr a;
                a.clamp = clamp(v);
                std::vector<ValueId> operands{x, other};
                if (below(2) == 0) std::swap(operands[0], operands[1]);
                finish(op, operands, a, v);
                return true;
            }
            case 10: {
                // Interpolated tables are for functions that are smooth between their points.
                if (type != DType::Int8 && in.quantization->scales[0] > 1.0 / 64) return false;
                const Op ops[] = {Op::Sigmoid, type == DType::Int8 ? Op::HardSwish : Op::Tanh};
                finish(ops[below(2)], {x}, UnaryAttr{}, activation(name(), s, type));
                return true;
            }
            case 11: {
                Value v = like(x, s);
                UnaryAttr a;
                a.clamp.min = 0;
                if (below(2) == 0) a.clamp.max = in.quantization->scales[0] * 30;
                finish(Op::ClampOp, {x}, a, v);
                return true;
            }
            case 12: {
                std::vector<ValueId> parts{x};
                const auto axis = static_cast<std::size_t>(below(static_cast<std::int64_t>(s.size())));
                for (const ValueId candidate : pool_) {
                    if (candidate == x || graph_[candidate].shape.size() != s.size() ||
                        graph_[candidate].stored_type() != type)
                        continue;
                    bool fits = true;
                    for (std::size_t d = 0; d < s.size(); ++d)
                        fits = fits && (d == axis || graph_[candidate].shape[d] == s[d]);
                    if (fits && below(2) == 0) parts.push_back(candidate);
                }
                if (below(3) == 0) parts.push_back(x);
                Shape shape = s;
                shape[axis] = 0;
                for (const ValueId p : parts) shape[axis] += graph_[p].shape[axis];
                AxisAttr a;
                a.axis = static_cast<int>(axis);
                finish(Op::Concat, parts, a, like(x, shape));
                return true;
            }
            case 13: {
                SliceAttr a;
                Shape shape;
                for (const std::int64_t d : s) {
                    const std::int64_t start = below(d), step = 1 + below(3) / 2;
                    const std::int64_t end = start + 1 + below(d - start);
                    a.starts.push_back(start);
                    a.ends.push_back(end);
                    a.steps.push_back(step);
                    shape.push_back((end - start + step - 1) / step);
                }
                finish(Op::Slice, {x}, a, like(x, shape));
                return true;
            }
            case 14: {
                PadAttr a;
                Shape shape;
                for (const std::int64_t d : s) {
                    a.before.push_back(below(3) == 0 ? below(3) : 0);
                    a.after.push_back(below(3) == 0 ? below(3) : 0);
                    shape.push_back(d + a.before.back() + a.after.back());
                }
                if (image) {  // the batch stays
                    a.before[0] = a.after[0] = 0;
                    shape[0] = s[0];
                }
                a.value = in.quantization->scales[0] * static_cast<double>(below(9) - 4);
                finish(Op::Pad, {x}, a, like(x, shape));
                return true;
            }
            case 15: {
                // A matrix times itself turned: two activations.
                if (s.size() < 2 || type != DType::Int8) return false;
                const std::int64_t rows = s[s.size() - 2], depth = s.back();
                if (element_count(s) / depth > 120) return false;
                PermuteAttr turn;
                for (int d = 0; d < static_cast<int>(s.size()); ++d) turn.order.push_back(d);
                std::swap(turn.order[s.size() - 1], turn.order[s.size() - 2]);
                Shape turned = s, square = s;
                std::swap(turned[s.size() - 1], turned[s.size() - 2]);
                square.back() = rows;
                const ValueId other = finish(Op::Permute, {x}, turn, like(x, turned));
                finish(Op::MatMul, {x, other}, NoAttr{},
                       result_for(type, square, level * level * std::sqrt(static_cast<double>(depth))));
                return true;
            }
            default: {
                if (below(3) == 0) {
                    add_requantize(x);
                } else if (below(2) == 0) {
                    PermuteAttr a;
                    for (int d = 0; d < static_cast<int>(s.size()); ++d) a.order.push_back(d);
                    // The batch stays where it is.
                    std::shuffle(a.order.begin() + (image ? 1 : 0), a.order.end(), random_);
                    Shape shape;
                    for (const int d : a.order) shape.push_back(s[static_cast<std::size_t>(d)]);
                    finish(Op::Permute, {x}, a, like(x, shape));
                } else if (image && s[1] * s[2] < 200 && below(2) == 0) {
                    const std::int64_t fy = 1 + below(3), fx = below(2) == 0 ? fy : 1 + below(3);
                    finish(Op::Resize, {x}, ResizeAttr{}, like(x, {s[0], s[1] * fy, s[2] * fx, s[3]}));
                } else {
                    Shape shape = s;
                    if (shape.size() > 1 && below(2) == 0) {
                        shape[shape.size() - 2] *= shape.back();
                        shape.pop_back();
                    } else {
                        std::swap(shape.front(), shape[shape.size() / 2]);
                        if (shape.size() == 4 && shape[0] != 1) return false;
                    }
                    finish(Op::Reshape, {x}, NoAttr{}, like(x, shape));
                }
                return true;
            }
        }
    }

    // Now and then beyond what the hardware can do in one operation.
    Pair strides() {
        if (below(8) == 0) return {1 + below(9), 1 + below(9)};
        return {1 + below(3), 1 + below(3)};
    }

    bool add_cpu_operator(ValueId x, const Value& in, double level) {
        const Shape& s = in.shape;
        if (s.size() == 4 && s[1] * s[2] < 300 && below(2) == 0) {
            ResizeAttr a;
            a.mode = ResizeAttr::Mode::Bilinear;
            a.half_pixel = true;
            finish(Op::Resize, {x}, a, like(x, {s[0], s[1] + 1 + below(s[1]), s[2] * 2, s[3]}));
            return true;
        }
        return add_sum(x, in, level);
    }

    bool add_sum(ValueId x, const Value& in, double level) {
        const Shape& s = in.shape;
        ReduceAttr a;
        const auto axis = static_cast<std::size_t>(below(static_cast<std::int64_t>(s.size())));
        a.axes = {static_cast<int>(axis)};
        constexpr std::int64_t kMostChannels = 65536;  // of the map that the sums become
        if (between_ == Between::Sums &&
            (dtype_size(in.stored_type()) != 1 || s[axis] > kMostSummed || element_count(s) > kMostChannels))
            return false;
        finish(Op::CumSum, {x}, a, result_for(in.stored_type(), s, level * std::sqrt(static_cast<double>(s[axis]))));
        return true;
    }

    bool add_convolution(ValueId x, const Value& in, double level) {
        const Shape& s = in.shape;
        ConvAttr a;
        const std::int64_t most = below(3) == 0 ? 9 : 3;
        const std::int64_t kh = 1 + below(most), kw = 1 + below(most);
        a.stride = strides();
        a.dilation = {1 + below(6) / 4, 1 + below(6) / 4};
        if (below(12) == 0) a.dilation = {3, 4};
        const std::int64_t eh = (kh - 1) * a.dilation[0] + 1, ew = (kw - 1) * a.dilation[1] + 1;
        switch (below(3)) {
            case 0:
                break;
            case 1: {  // SAME
                const std::int64_t ph = std::max<std::int64_t>(0,
                                                               (ceil(s[1], a.stride[0]) - 1) * a.stride[0] + eh - s[1]),
                                   pw = std::max<std::int64_t>(0,
                                                               (ceil(s[2], a.stride[1]) - 1) * a.stride[1] + ew - s[2]);
                a.padding = {ph / 2, pw / 2, ph - ph / 2, pw - pw / 2};
                break;
            }
            default:
                a.padding = {below(eh), below(ew), below(eh), below(ew)};
        }
        const std::int64_t oh = (s[1] + a.padding.top + a.padding.bottom - eh),
                           ow = (s[2] + a.padding.left + a.padding.right - ew);
        if (oh < 0 || ow < 0) return false;
        std::int64_t depth = 1 + below(below(2) ? 70 : 20), inputs = s[3];
        switch (below(4)) {
            case 0:
                a.groups = s[3];
                depth = s[3];
                inputs = 1;
                break;
            case 1:
                if (a.stride[0] > 3 || a.stride[1] > 3) break;  // too many operations
                for (std::int64_t g = 2; g <= 8; ++g)
                    if (s[3] % g == 0 && below(2) == 0) a.groups = g;
                inputs = s[3] / a.groups;
                depth = a.groups * (1 + below(6));
                break;
            default:
                break;
        }
        ValueId bias;
        const ValueId w =
            weights({depth, kh, kw, inputs}, in.quantization->scales[0], static_cast<std::size_t>(depth), &bias);
        Value v = result_for(
            in.stored_type(), {s[0], oh / a.stride[0] + 1, ow / a.stride[1] + 1, depth},
            level * graph_[w].quantization->scales[0] * 70 * std::sqrt(static_cast<double>(kh * kw * inputs)));
        a.clamp = clamp(v);
        finish(Op::Conv2d, {x, w, bias}, a, v);
        return true;
    }
    static std::int64_t ceil(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

    Choices random_;
    std::mt19937 data_{1};
    Between between_ = Between::Nothing;
    Graph graph_;
    std::vector<ValueId> pool_;
};

}  // namespace talpa::compiler::testing
