#include "compiler/graph/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "compiler/graph/infer.h"
#include "compiler/graph/ops.h"

namespace talpa::compiler {
namespace {

using host::Result;

std::unexpected<host::Error> broken(std::string what) {
    return std::unexpected(host::Error(ErrorCode::InvalidProgram, std::move(what)));
}

struct Range {
    std::int64_t min, max;
};

Range range_of(DType type) {
    switch (type) {
        case DType::Int8:
            return {-128, 127};
        case DType::UInt8:
            return {0, 255};
        case DType::Int16:
            return {-32768, 32767};
        case DType::Int32:
            return {INT32_MIN, INT32_MAX};
        case DType::Int64:
            return {INT64_MIN, INT64_MAX};
        default:
            return {1, 0};
    }
}

bool any_nan(const Bytes& reals) {
    bool any = false;
    for (std::size_t i = 0; i + sizeof(float) <= reals.size(); i += sizeof(float)) {
        float v = 0;
        std::memcpy(&v, reals.data() + i, sizeof v);
        any |= std::isnan(v);
    }
    return any;
}

Result<void> check_value(const Value& v) {
    std::int64_t count = 1;
    if (v.shape.size() > 8) return broken(fmt::format("rank {}", v.shape.size()));
    bool empty = false;
    for (const auto size : v.shape) {
        empty |= size == 0;
        if (size < 0 || (size > 0 && count > (std::int64_t{1} << 40) / size))
            return broken(fmt::format("shape {}", shape_text(v.shape)));
        count *= std::max<std::int64_t>(size, 1);
    }
    if (empty) count = 0;
    if (v.quantization) {
        if (v.type != DType::Float32) return broken("quantized, yet not real numbers");
        TRY(check_quantization(*v.quantization, v.shape));
    }
    if (v.constant && v.stored_type() == DType::Float32 && any_nan(*v.constant))
        return broken("it has elements that are not a number");
    if (v.constant && v.constant->size() != static_cast<std::size_t>(count) * dtype_size(v.stored_type()))
        return broken(fmt::format("{} bytes of data for {} {}", v.constant->size(), dtype_name(v.stored_type()),
                                  shape_text(v.shape)));
    return {};
}

Result<void> need_elements(const Value& v) {
    if (element_count(v.shape) > 0) return {};
    return broken(fmt::format("'{}' of shape {} has no elements", v.name, shape_text(v.shape)));
}

Result<void> check_node(const Graph& g, const Node& node, std::vector<bool>& known) {
    for (const auto id : node.inputs) {
        if (id == kNoValue) continue;
        if (id >= g.values.size()) return broken("reads a value that does not exist");
        TRY(need_elements(g[id]));
        if (!known[id]) return broken(fmt::format("reads '{}', which nothing before it makes", g[id].name));
    }
    if (node.outputs.size() != 1 || node.outputs[0] >= g.values.size()) return broken("has no single result");
    const auto out = node.outputs[0];
    TRY(need_elements(g[out]));
    if (known[out]) return broken(fmt::format("makes '{}', which exists already", g[out].name));
    TRY_ASSIGN(const Shape shape, infer_shape(g, node.op, node.attributes, node.inputs, g[out].shape));
    if (shape != g[out].shape)
        return broken(fmt::format("its result '{}' has shape {}, {} follows from its operands", g[out].name,
                                  shape_text(g[out].shape), shape_text(shape)));
    known[out] = true;
    return {};
}

}  // namespace

Result<void> check_quantization(const Quantization& q, const Shape& shape) {
    const Range range = range_of(q.type);
    if (range.min > range.max) return broken(fmt::format("quantized to {}", dtype_name(q.type)));
    if (q.min < range.min || q.max > range.max || q.min >= q.max)
        return broken(fmt::format("quantized to {} to {} of {}", q.min, q.max, dtype_name(q.type)));
    if (q.scales.empty()) return broken("quantized without a scale");
    std::size_t wanted = 1;
    if (!q.per_tensor()) {
        if (q.axis >= static_cast<int>(shape.size()))
            return broken(fmt::format("quantized along axis {} of rank {}", q.axis, shape.size()));
        wanted = static_cast<std::size_t>(shape[static_cast<std::size_t>(q.axis)]);
    }
    if (q.scales.size() != wanted || q.zero_points.size() != wanted)
        return broken(
            fmt::format("{} scales and {} zero points, {} are needed", q.scales.size(), q.zero_points.size(), wanted));
    for (std::size_t i = 0; i < wanted; ++i) {
        if (!(q.scales[i] > 0) || !std::isnormal(static_cast<float>(q.scales[i])))
            return broken(fmt::format("scale {} is {}: it must be finite and positive", i, q.scales[i]));
        if (q.zero_points[i] < q.min || q.zero_points[i] > q.max)
            return broken(fmt::format("zero point {} is outside {} to {}", q.zero_points[i], q.min, q.max));
    }
    return {};
}

Result<void> check_graph(const Graph& g) {
    std::unordered_set<std::string> names;
    std::vector<bool> known(g.values.size());
    for (std::size_t i = 0; i < g.values.size(); ++i) {
        TRY(host::with_context(check_value(g.values[i]), fmt::format("value '{}'", g.values[i].name)));
        if (!names.insert(g.values[i].name).second)
            return broken(fmt::format("two values have the name '{}'", g.values[i].name));
        known[i] = g.values[i].is_constant();
    }
    for (const auto id : g.inputs) {
        if (id >= g.values.size()) return broken("an input does not exist");
        if (known[id]) return broken(fmt::format("input '{}' is a constant or given twice", g[id].name));
        TRY(need_elements(g[id]));
        known[id] = true;
    }
    for (const Node& node : g.nodes)
        TRY(host::with_context(check_node(g, node, known), fmt::format("{} '{}'", op_name(node.op), node.source.node)));
    for (const auto id : g.outputs)
        if (id >= g.values.size() || !known[id]) return broken("an output is made by nothing");
    return {};
}

}  // namespace talpa::compiler
