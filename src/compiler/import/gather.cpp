#include "compiler/import/gather.h"

#include "compiler/graph/constant.h"

namespace talpa::compiler::import {

using host::failure;
using host::Result;

namespace {

struct Run {
    std::int64_t first = 0, count = 0;
};

/// Neighbouring indices joined; an error names one that is outside.
Result<std::vector<Run>> runs_of(const std::vector<std::int64_t>& indices, std::int64_t size) {
    std::vector<Run> runs;
    for (const auto i : indices) {
        if (i < -size || i >= size) return failure(ErrorCode::InvalidProgram, "index {} of {} elements", i, size);
        const auto at = i < 0 ? i + size : i;
        if (!runs.empty() && at == runs.back().first + runs.back().count)
            ++runs.back().count;
        else
            runs.push_back({at, 1});
    }
    return runs;
}

Result<ValueId> cut(Builder& b, ValueId x, std::size_t axis, Run run, const std::string& name) {
    const Shape shape = b[x].shape;
    if (run.first == 0 && run.count == shape[axis]) return x;
    SliceAttr attr{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
    attr.starts[axis] = run.first;
    attr.ends[axis] = run.first + run.count;
    return b.add(Op::Slice, {x}, std::move(attr), name);
}

}  // namespace

Result<ValueId> gather(Builder& b, ValueId x, ValueId indices, int axis, const std::string& name) {
    constexpr std::size_t kMostRuns = 64;
    const Value& index = b[indices];
    if (index.type == DType::Float32 || index.type == DType::Bool)
        return failure(ErrorCode::InvalidProgram, "the indices '{}' are no whole numbers", index.name);
    const auto d = static_cast<std::size_t>(axis);
    if (!index.is_constant() || b[x].is_constant() || index.shape.size() > 1 || d >= b[x].shape.size())
        return b.add(Op::Gather, {x, indices}, AxisAttr{.axis = axis}, name);
    const bool single = index.shape.empty();
    TRY_ASSIGN(const auto runs, runs_of(stored_integers(index), b[x].shape[d]));
    if (runs.empty() || runs.size() > kMostRuns) return b.add(Op::Gather, {x, indices}, AxisAttr{.axis = axis}, name);
    std::vector<ValueId> parts;
    for (const Run& run : runs) {
        TRY_ASSIGN(const auto part, cut(b, x, d, run, runs.size() == 1 && !single ? name : name + ".part"));
        parts.push_back(part);
    }
    if (single) {
        Shape shape = b[parts[0]].shape;
        shape.erase(shape.begin() + axis);
        return b.reshape(parts[0], shape, name);
    }
    if (parts.size() == 1) return parts[0];
    return b.add(Op::Concat, parts, AxisAttr{.axis = axis}, name);
}

}  // namespace talpa::compiler::import
