// Products of two activations. The NPU multiplies by weights only, so columns of the second operand (or rows of the
// first, where those are fewer) are multiplied into the whole first one and summed over the depth: two operations for
// as many of them as a few kilobytes of products hold. (ethos-u65, sections 5.7 and 9.1)
#include <fmt/format.h>

#include <algorithm>

#include "compiler/graph/npu_limits.h"
#include "compiler/lower/lowerer.h"

namespace talpa::compiler {
namespace {

struct Product {
    Shape batch;  // of the result
    std::int64_t rows = 1, depth = 1, columns = 1, batches = 1;
};

Product product_of(const Graph& graph, const Node& node) {
    const Shape &a = graph[node.inputs[0]].shape, &b = graph[node.inputs[1]].shape, &o = graph[node.outputs[0]].shape;
    Product p;
    p.batch = Shape(o.begin(), o.end() - 2);
    for (const std::int64_t d : p.batch) p.batches *= d;
    p.rows = a[a.size() - 2];
    p.depth = a.back();
    p.columns = b.back();
    return p;
}

// Columns (or rows) that share an operation: more would only take memory, for what an operation costs on its own is
// then a small part.
std::int64_t together_of(const Product& p) {
    constexpr std::int64_t kProductBytes = 8192, kWord = 4;
    const std::int64_t whole = std::max(p.rows, p.columns), each = std::min(p.rows, p.columns);
    return std::clamp<std::int64_t>(kProductBytes / (whole * p.depth * kWord), 1, each);
}

// Matrix `index` of the batch, its last two dimensions exchanged if asked for; the operand may have fewer dimensions.
Place matrix(const Place& p, const Shape& shape, const Shape& batch, std::int64_t index) {
    Place m{p.tensor, p.offset, {p.strides[shape.size() - 2], p.strides[shape.size() - 1]}};
    for (std::size_t d = batch.size(), own = shape.size() - 2; d-- > 0 && own-- > 0;) {
        if (shape[own] != 1) m.offset += index % batch[d] * p.strides[own];
        index /= batch[d];
    }
    return m;
}

}  // namespace

std::optional<std::string> matmul_obstacle(const Graph& graph, const Node& node) {
    const Value &a = graph[node.inputs[0]], &b = graph[node.inputs[1]];
    if (dtype_size(a.stored_type()) != 1 || a.stored_type() != b.stored_type())
        return fmt::format("its operands are {} and {}, the sums of products fit only for 8 bits of one type",
                           dtype_name(a.stored_type()), dtype_name(b.stored_type()));
    if (a.shape.size() < 2 || b.shape.size() < 2) return "one of its operands is no matrix";
    constexpr std::int64_t kMostOperations = 4096;
    const Product p = product_of(graph, node);
    if (std::max({p.depth, p.rows, p.columns}) > kMostInDimension)
        return fmt::format("its matrices are {} x {} x {}, at most {} each is possible", p.rows, p.depth, p.columns,
                           kMostInDimension);
    const std::int64_t each = std::min(p.rows, p.columns), together = together_of(p);
    const std::int64_t operations = 2 * p.batches * ((each + together - 1) / together);
    if (operations > kMostOperations)
        return fmt::format("it would take {} operations, two for {}; at most {} are made", operations,
                           together == 1 ? "each row or column" : fmt::format("every {} rows or columns", together),
                           kMostOperations);
    return std::nullopt;
}

host::Result<void> lower_matmul(Lowerer& l, const Node& node) {
    const Graph& graph = l.graph();
    const Value &a = graph[node.inputs[0]], &b = graph[node.inputs[1]], &out = graph[node.outputs[0]];
    const npu::ElementType type = element_type(a.stored_type()), word{4, true}, ofm = element_type(out.stored_type());
    const Product p = product_of(graph, node);
    const Place to = l.home(node.outputs[0]);
    // Both with the depth side by side: the second is turned first.
    Place left = l.contiguous(node.inputs[0]), right = l.place(node.inputs[1]);
    Shape turned = b.shape;
    std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
    std::swap(right.strides[turned.size() - 1], right.strides[turned.size() - 2]);
    if (p.depth > 1 && right.strides.back() != 1) {
        const Place dense = l.dense_place(l.new_tensor(b.name + "/turned", type, turned), turned);
        TRY(l.copy(turned, type, right, dense));
        right = dense;
    }
    // The operand that stays whole, and the one that comes row by row.
    const bool by_column = p.columns <= p.rows;
    const std::int64_t whole = by_column ? p.rows : p.columns, each = by_column ? p.columns : p.rows;
    const std::int32_t zero_a = a.quantization->zero_points[0], zero_b = b.quantization->zero_points[0];
    const std::int64_t together = together_of(p);
    const Shape products{together, whole, p.depth};
    npu::Operation mul = plain_operation(npu::OpKind::Mul, type, word);
    npu::Operation sum = plain_operation(npu::OpKind::ReduceSum, word, ofm);
    sum.ofm_scale = l.scale(a.quantization->scales[0] * b.quantization->scales[0] / out.quantization->scales[0]);
    sum.ofm_rounding = l.rounding();
    set_limits(sum, ofm, limits_of(out, {}));
    for (std::int64_t n = 0; n < p.batches; ++n) {
        const Place la = matrix(left, a.shape, p.batch, n), rb = matrix(right, turned, p.batch, n),
                    result = matrix(to, out.shape, p.batch, n);
        for (std::int64_t i = 0; i < each; i += together) {
            const std::int64_t count = std::min(together, each - i);
            // A tensor of its own each time: steps in stripes may run in another order, and what several wrote to the
            // same rows would be mixed.
            const Place t = l.dense_place(l.new_tensor(out.name + "/products", word, products), products);
            // Row by row of the products the map is the same, column by column the other's row.
            Operand map, rows;
            map.type = rows.type = type;
            map.place = by_column ? la : rb;
            map.zero_point = by_column ? zero_a : zero_b;
            map.place.strides.insert(map.place.strides.begin(), 0);
            rows.place = by_column ? rb : la;
            rows.zero_point = by_column ? zero_b : zero_a;
            rows.place.offset += i * rows.place.strides[0];
            rows.place.strides = {rows.place.strides[0], 0, rows.place.strides[1]};
            TRY(l.elementwise(mul, {count, whole, p.depth}, t, 0, map, rows));
            Step reduce;
            reduce.op = sum;
            reduce.ifm = {t.tensor,
                          static_cast<std::uint32_t>(count),
                          static_cast<std::uint32_t>(whole),
                          static_cast<std::uint32_t>(p.depth),
                          0,
                          whole * p.depth,
                          p.depth,
                          0};
            const std::int64_t along = by_column ? result.strides[0] : result.strides[1],
                               from_row = by_column ? result.strides[1] : result.strides[0];
            reduce.ofm = {to.tensor, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(whole),
                          1,         result.offset + i * from_row,      count == 1 ? whole * along : from_row,
                          along,     out.quantization->zero_points[0]};
            l.add_step(std::move(reduce));
        }
    }
    return {};
}

}  // namespace talpa::compiler
