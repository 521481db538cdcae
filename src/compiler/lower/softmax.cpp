// Softmax of 8-bit numbers over the last dimension: maximum, exponentials by table, their sum, its reciprocal by
// interpolated table, one multiplication. Every number below is an integer; the result is within one step of the
// correctly rounded real one. (ethos-u65, sections 5.7, 6.2 and 9.1)
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

constexpr npu::ElementType kByte{1, true}, kHalf{2, true}, kWord{4, true};

Operand scalar_of(npu::ElementType type, std::int32_t number) {
    Operand o;
    o.type = type;
    o.is_scalar = true;
    o.scalar = number;
    return o;
}

// exp((d - 127) * step) for d = 0 … at entry t + 128 with t = difference + 127.
std::shared_ptr<const Table> exponentials(double step, unsigned fraction_bits) {
    auto table = std::make_shared<Table>(256 * 4);
    for (int i = 0; i < 256; ++i) {
        const double difference = i - 255;  // table index 255 is a difference of 0
        const auto number = static_cast<std::int32_t>(
            std::lround(std::exp(difference * step) * std::ldexp(1, static_cast<int>(fraction_bits))));
        std::memcpy(table->data() + 4 * i, &number, 4);
    }
    return table;
}

// 1/m for m in [1, 2), times `full`, as 512 segments of which the upper half is used: t in 0..32767 is (m - 1) * 2^15.
std::shared_ptr<const Table> reciprocals(double full) {
    auto table = std::make_shared<Table>(512 * 4);
    const auto at = [&](int segment) {
        return static_cast<std::int32_t>(std::lround(full / (1 + std::max(0, segment - 256) / 256.0)));
    };
    for (int i = 0; i < 512; ++i) {
        const auto base = static_cast<std::int16_t>(at(i)), slope = static_cast<std::int16_t>(at(i + 1) - at(i));
        std::memcpy(table->data() + 4 * i, &base, 2);
        std::memcpy(table->data() + 4 * i + 2, &slope, 2);
    }
    return table;
}

}  // namespace

std::optional<std::string> softmax_obstacle(const Graph& graph, const Node& node) {
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    if (in.stored_type() != DType::Int8 || out.stored_type() != DType::Int8) return "it is not on int8";
    if (node.as<AxisAttr>().axis != static_cast<int>(in.shape.size()) - 1) return "it is not over the last dimension";
    if (in.shape.back() > 2048) return "it is over more than 2048 elements";
    const double step = in.quantization->scales[0] * node.as<AxisAttr>().beta;
    if (!(step > 0 && step < 1e6)) return "its numbers lie too far apart";
    const double full = 1 / (256 * out.quantization->scales[0]);
    if (full > 1.0 || full < 0.25) return "its output's scale is not near 1/256";
    return std::nullopt;
}

host::Result<void> lower_softmax(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &in = graph[node.inputs[0]], &out = graph[node.outputs[0]];
    const std::int64_t depth = in.shape.back(), rows = element_count(in.shape) / depth;
    const Shape shape{rows, depth}, column{rows, 1};
    auto x = reshape(l.place(node.inputs[0]), in.shape, shape);
    if (!x || (depth != 1 && x->strides[1] != 1)) x = reshape(l.contiguous(node.inputs[0], true), in.shape, shape);
    const Place y = l.home_as(node.outputs[0], shape);
    if (!x) return host::failure(ErrorCode::Internal, "{}: no rows in memory", out.name);
    const std::string& name = out.name;
    const auto temporary = [&](const char* what, npu::ElementType type, const Shape& s) {
        return l.dense_place(l.new_tensor(fmt::format("{}/{}", name, what), type, s), s);
    };
    const auto all = [&](const Place& p, npu::ElementType type, const Shape& of) {
        Operand o;
        o.type = type;
        o.place = broadcast(p, of, shape);
        return o;
    };
    const auto each_row = [&](const Place& p, npu::ElementType type) {
        Operand o;
        o.type = type;
        o.place = p;
        return o;
    };

    // Largest of each row: a pool over the row as a map of one channel.
    const Place largest = temporary("max", kByte, column);
    Step pool;
    pool.op = plain_operation(npu::OpKind::MaxPool, kByte, kByte);
    pool.op.kernel.width = static_cast<std::uint32_t>(depth);
    pool.ifm = {x->tensor,
                static_cast<std::uint32_t>(rows),
                static_cast<std::uint32_t>(depth),
                1,
                x->offset,
                rows == 1 ? depth : x->strides[0],
                1,
                0};
    pool.ofm = {largest.tensor, static_cast<std::uint32_t>(rows), 1, 1, 0, 1, 1, 0};
    l.add_step(pool);

    // exp(x - max), 1.0 as 2^fraction: the sum of a row stays below 2^30.
    const auto sum_bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(depth - 1)));
    const unsigned fraction = 29 - sum_bits;
    npu::Operation subtract = plain_operation(npu::OpKind::Sub, kByte, kWord);
    subtract.activation.function = npu::Activation::Function::Lut;
    subtract.activation.clip_range = 3;
    subtract.activation.raw_min = static_cast<std::uint16_t>(-128);
    subtract.activation.raw_max = 127;
    const double step = in.quantization->scales[0] * node.as<AxisAttr>().beta;
    const Place powers = temporary("exp", kWord, shape);
    TRY(l.elementwise(subtract, shape, powers, 127, all(*x, kByte, shape), all(largest, kByte, column),
                      exponentials(step, fraction)));

    const Place sum = temporary("sum", kWord, column);
    Step reduce;
    reduce.op = plain_operation(npu::OpKind::ReduceSum, kWord, kWord);
    reduce.ifm = {
        powers.tensor, 1, static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(depth), 0, rows * depth,
        depth,         0};
    reduce.ofm = {sum.tensor, 1, static_cast<std::uint32_t>(rows), 1, 0, rows, 1, 0};
    l.add_step(reduce);

    // sum << (leading zeros - 1) is m * 2^30 with m in [1, 2).
    const Place zeros = temporary("clz", kWord, column), shift = temporary("shift", kWord, column),
                normal = temporary("norm", kWord, column);
    TRY(l.elementwise(plain_operation(npu::OpKind::Clz, kWord, kWord), column, zeros, 0, each_row(sum, kWord),
                      std::nullopt));
    TRY(l.elementwise(plain_operation(npu::OpKind::Sub, kWord, kWord), column, shift, 0, each_row(zeros, kWord),
                      scalar_of(kWord, 1)));
    TRY(l.elementwise(plain_operation(npu::OpKind::Shl, kWord, kWord), column, normal, 0, each_row(sum, kWord),
                      each_row(shift, kWord)));
    // m * 2^15 - 2^15 as 16 bits, through the table of reciprocals: r = 2^15 * full / m.
    const double full = 32767.0 / (256 * out.quantization->scales[0]);
    const Place half = temporary("recip", kHalf, column), word = temporary("recip32", kWord, column);
    npu::Operation invert = plain_operation(npu::OpKind::Mul, kWord, kHalf);
    invert.ofm_scale = {1, 15};
    invert.activation.function = npu::Activation::Function::Lut;
    TRY(l.elementwise(invert, column, half, -32768, each_row(normal, kWord), scalar_of(kWord, 1), reciprocals(full)));
    TRY(l.elementwise(plain_operation(npu::OpKind::Mul, kHalf, kWord), column, word, 0, each_row(half, kHalf),
                      scalar_of(kHalf, 1)));
    // exp * r, at most 2^28; what is left to shift depends on the row's leading zeros.
    constexpr unsigned kProductBits = 28;
    const unsigned first_shift = fraction + 15 - kProductBits;
    npu::Operation multiply = plain_operation(npu::OpKind::Mul, kWord, kWord);
    multiply.ofm_scale = {1, static_cast<std::uint8_t>(first_shift)};
    const Place product = temporary("product", kWord, shape);
    TRY(l.elementwise(multiply, shape, product, 0, all(powers, kWord, shape), all(word, kWord, column)));
    // result = exp * r * 2^(clz - 1) / 2^(30 + 15) / full' with the output in steps of 1/256.
    const std::int32_t total = 30 + 15 + 1 - 8 - static_cast<std::int32_t>(first_shift);
    const Place right = temporary("right", kWord, column);
    npu::Operation from_total = plain_operation(npu::OpKind::Sub, kWord, kWord);
    from_total.operands_reversed = true;
    TRY(l.elementwise(from_total, column, right, 0, each_row(zeros, kWord), scalar_of(kWord, total)));
    npu::Operation finish = plain_operation(npu::OpKind::Shr, kWord, kByte);
    set_limits(finish, kByte, limits_of(out, {}));
    return l.elementwise(finish, shape, y, out.quantization->zero_points[0], all(product, kWord, shape),
                         all(right, kWord, column));
}

}  // namespace talpa::compiler
