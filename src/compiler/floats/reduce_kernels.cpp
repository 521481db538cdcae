// Reductions, softmax and normalizations in float32, sums in double so that their order does not matter.
#include <algorithm>
#include <cmath>

#include "compiler/floats/kernel.h"

namespace talpa::compiler {

namespace {

/// Strides of the reduced result, read at the input's index: 0 along reduced axes.
std::vector<std::int64_t> reduced_strides(const Shape& in, const std::vector<int>& axes) {
    Shape kept = in;
    for (const int axis : axes) kept[static_cast<std::size_t>(axis)] = 1;
    return broadcast_strides(kept, in);
}

struct Rows {
    std::int64_t outer, size, inner;
};
Rows rows_of(const Shape& shape, int axis) {
    Rows rows{1, shape[static_cast<std::size_t>(axis)], 1};
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (static_cast<int>(i) != axis) (static_cast<int>(i) < axis ? rows.outer : rows.inner) *= shape[i];
    return rows;
}
/// f(pointer to the row's first element in input, in output, step)
template <typename F>
void for_each_row(KernelCall& call, const Rows& rows, F&& f) {
    for (std::int64_t o = 0; o < rows.outer; ++o)
        for (std::int64_t i = 0; i < rows.inner; ++i) {
            const std::int64_t at = o * rows.size * rows.inner + i;
            f(call.inputs[0].data() + at, call.output.data() + at, rows.inner, rows.size, o * rows.inner + i);
        }
}

/// (x - mean) / sqrt(variance + epsilon) over `size` neighbours.
void normalize(const float* in, float* out, std::int64_t size, double epsilon) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < size; ++i) mean += static_cast<double>(in[i]);
    mean /= static_cast<double>(size);
    for (std::int64_t i = 0; i < size; ++i) variance += std::pow(static_cast<double>(in[i]) - mean, 2);
    const double factor = 1.0 / std::sqrt(variance / static_cast<double>(size) + epsilon);
    for (std::int64_t i = 0; i < size; ++i) out[i] = static_cast<float>((static_cast<double>(in[i]) - mean) * factor);
}

}  // namespace

void reduce(KernelCall& call) {
    const auto& attr = call.node.as<ReduceAttr>();
    const Shape& in = call.shape(0);
    const Op op = call.node.op;
    const bool sums = op == Op::Mean || op == Op::Sum;
    std::vector<double> result(call.output.size(), sums ? 0.0 : op == Op::ReduceMax ? -INFINITY : INFINITY);
    for_each_strided(in, reduced_strides(in, attr.axes), 0, [&](std::int64_t i, std::int64_t offset) {
        const double x = static_cast<double>(call.inputs[0][static_cast<std::size_t>(i)]);
        double& r = result[static_cast<std::size_t>(offset)];
        r = sums ? r + x : op == Op::ReduceMax ? std::max(r, x) : std::min(r, x);
    });
    const double factor =
        op == Op::Mean ? static_cast<double>(call.output.size()) / static_cast<double>(call.inputs[0].size()) : 1.0;
    for (std::size_t i = 0; i < result.size(); ++i) call.output[i] = static_cast<float>(result[i] * factor);
}

void argmax(KernelCall& call) {
    const auto rows = rows_of(call.shape(0), call.node.as<ReduceAttr>().axes[0]);
    for_each_row(call, rows, [&](const float* in, float*, std::int64_t step, std::int64_t size, std::int64_t index) {
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < size; ++i)
            if (in[i * step] > in[best * step]) best = i;
        call.output[static_cast<std::size_t>(index)] = static_cast<float>(best);
    });
}

void cumsum(KernelCall& call) {
    const auto rows = rows_of(call.shape(0), call.node.as<ReduceAttr>().axes[0]);
    for_each_row(call, rows, [](const float* in, float* out, std::int64_t step, std::int64_t size, std::int64_t) {
        double sum = 0;
        for (std::int64_t i = 0; i < size; ++i)
            out[i * step] = static_cast<float>(sum += static_cast<double>(in[i * step]));
    });
}

void softmax(KernelCall& call) {
    const auto& attr = call.node.as<AxisAttr>();
    const bool logs = call.node.op == Op::LogSoftmax;
    for_each_row(call, rows_of(call.shape(0), attr.axis),
                 [&](const float* in, float* out, std::int64_t step, std::int64_t size, std::int64_t) {
                     double most = -INFINITY, sum = 0;
                     for (std::int64_t i = 0; i < size; ++i) most = std::max(most, static_cast<double>(in[i * step]));
                     for (std::int64_t i = 0; i < size; ++i)
                         sum += std::exp((static_cast<double>(in[i * step]) - most) * attr.beta);
                     for (std::int64_t i = 0; i < size; ++i) {
                         const double x = (static_cast<double>(in[i * step]) - most) * attr.beta;
                         out[i * step] = static_cast<float>(logs ? x - std::log(sum) : std::exp(x) / sum);
                     }
                 });
}

void layer_norm(KernelCall& call) {
    const auto& attr = call.node.as<NormAttr>();
    std::int64_t size = 1;
    for (const int axis : attr.axes) size *= call.shape(0)[static_cast<std::size_t>(axis)];
    for (std::size_t first = 0; first < call.output.size(); first += static_cast<std::size_t>(size)) {
        normalize(call.inputs[0].data() + first, call.output.data() + first, size, attr.epsilon);
        for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
            float& x = call.output[first + i];
            if (call.has(1)) x *= call.inputs[1][i];
            if (call.has(2)) x += call.inputs[2][i];
        }
    }
}

void group_norm(KernelCall& call) {
    const auto& attr = call.node.as<NormAttr>();
    const Shape& in = call.shape(0);
    const std::int64_t channels = in.back(), per_group = channels / attr.groups;
    const std::int64_t positions = element_count(in) / in[0] / channels;
    for (std::int64_t n = 0; n < in[0]; ++n)
        for (std::int64_t g = 0; g < attr.groups; ++g) {
            const std::int64_t base = n * positions * channels + g * per_group;
            call.scratch.resize(static_cast<std::size_t>(positions * per_group));
            for (std::int64_t p = 0; p < positions; ++p)
                std::copy_n(call.inputs[0].data() + base + p * channels, per_group,
                            call.scratch.data() + p * per_group);
            normalize(call.scratch.data(), call.scratch.data(), positions * per_group, attr.epsilon);
            for (std::int64_t p = 0; p < positions; ++p)
                for (std::int64_t c = 0; c < per_group; ++c) {
                    float x = call.scratch[static_cast<std::size_t>(p * per_group + c)];
                    const auto channel = static_cast<std::size_t>(g * per_group + c);
                    if (call.has(1)) x *= call.inputs[1][channel];
                    if (call.has(2)) x += call.inputs[2][channel];
                    call.output[static_cast<std::size_t>(base + p * channels + c)] = x;
                }
        }
}

void batch_norm(KernelCall& call) {
    const auto& attr = call.node.as<NormAttr>();
    const auto channels = static_cast<std::size_t>(call.shape(0).back());
    for (std::size_t i = 0; i < call.output.size(); ++i) {
        const std::size_t c = i % channels;
        const double scale = (call.has(1) ? static_cast<double>(call.inputs[1][c]) : 1.0) /
                             std::sqrt(static_cast<double>(call.inputs[4][c]) + attr.epsilon);
        const double shift = call.has(2) ? static_cast<double>(call.inputs[2][c]) : 0.0;
        const double x = static_cast<double>(call.inputs[0][i]) - static_cast<double>(call.inputs[3][c]);
        call.output[i] = static_cast<float>(x * scale + shift);
    }
}

}  // namespace talpa::compiler
