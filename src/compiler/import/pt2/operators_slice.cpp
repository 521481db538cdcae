// What cuts tensors and joins them (model-formats, section 1.5).
#include <algorithm>

#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

/// elements [start, end) of one dimension.
Result<ValueId> cut(Call& call, ValueId x, std::size_t dim, std::int64_t start, std::int64_t end, std::int64_t step,
                    const std::string& name) {
    const Shape shape = call.b[x].shape;
    if (start == 0 && end == shape[dim] && step == 1) return x;
    SliceAttr attr{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
    attr.starts[dim] = start;
    attr.ends[dim] = end;
    attr.steps[dim] = step;
    return call.b.add(Op::Slice, {x}, std::move(attr), name);
}

std::int64_t clipped(std::int64_t index, std::int64_t size) {
    if (index < 0) index = index < -size ? 0 : index + size;
    return std::min(index, size);
}

Result<std::size_t> sliced_dimension(Call& call, ValueId x, std::optional<std::int64_t> usual) {
    const auto rank = call.b[x].shape.size();
    if (rank == 0) return failure(ErrorCode::InvalidProgram, "a part of a single number");
    TRY_ASSIGN(const int dim, call.dimension("dim", rank, usual));
    return static_cast<std::size_t>(dim);
}

Result<void> import_slice(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto dim, sliced_dimension(call, x, 0));
    const auto size = call.b[x].shape[dim];
    TRY_ASSIGN(const auto start, call.integer("start", 0));
    TRY_ASSIGN(const auto end, call.integer("end", INT64_MAX));
    TRY_ASSIGN(const auto step, call.integer("step", 1));
    if (step < 1) return failure(ErrorCode::InvalidProgram, "step {}", step);
    const auto from = clipped(start, size), to = std::max(from, clipped(end, size));
    TRY_ASSIGN(const auto y, cut(call, x, dim, from, to, std::min(step, std::max<std::int64_t>(size, 1)), call.name()));
    call.give(y);
    return {};
}

Result<void> import_select(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto dim, sliced_dimension(call, x, {}));
    Shape shape = call.b[x].shape;
    TRY_ASSIGN(auto index, call.integer("index"));
    if (index < 0) index += shape[dim];
    if (index < 0 || index >= shape[dim])
        return failure(ErrorCode::InvalidProgram, "index {} of {}", index, shape[dim]);
    TRY_ASSIGN(const auto part, cut(call, x, dim, index, index + 1, 1, call.name() + ".part"));
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
    TRY_ASSIGN(const auto y, call.b.reshape(part, shape, call.name()));
    call.give(y);
    return {};
}

Result<void> import_narrow(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto dim, sliced_dimension(call, x, {}));
    const auto size = call.b[x].shape[dim];
    TRY_ASSIGN(auto start, call.integer("start"));
    TRY_ASSIGN(const auto length, call.integer("length"));
    if (start < 0) start += size;
    if (start < 0 || length < 0 || start > size || length > size - start)
        return failure(ErrorCode::InvalidProgram, "{} elements from {} of {}", length, start, size);
    TRY_ASSIGN(const auto y, cut(call, x, dim, start, start + length, 1, call.name()));
    call.give(y);
    return {};
}

Result<void> give_parts(Call& call, ValueId x, std::size_t dim, const std::vector<std::int64_t>& sizes) {
    const auto whole = call.b[x].shape[dim];
    if (call.result_names().size() != sizes.size())
        return failure(ErrorCode::InvalidProgram, "{} parts for {} results", sizes.size(), call.result_names().size());
    std::int64_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] < 0 || sizes[i] > whole - at)
            return failure(ErrorCode::InvalidProgram, "the parts exceed {}", whole);
        TRY_ASSIGN(const auto part, cut(call, x, dim, at, at + sizes[i], 1, std::string(call.result_names()[i])));
        call.give(part);
        at += sizes[i];
    }
    return {};
}

/// split: parts of a size; chunk: a number of parts; split_with_sizes: given sizes.
Result<void> import_split(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto dim, sliced_dimension(call, x, 0));
    const auto whole = call.b[x].shape[dim];
    std::vector<std::int64_t> sizes;
    if (call.has("split_sizes")) {
        TRY_ASSIGN(sizes, call.integers("split_sizes"));
        return give_parts(call, x, dim, sizes);
    }
    std::int64_t size = 0;
    if (call.has("chunks")) {
        TRY_ASSIGN(const auto chunks, call.integer("chunks"));
        if (chunks < 1) return failure(ErrorCode::InvalidProgram, "{} chunks", chunks);
        size = whole / chunks + (whole % chunks != 0 ? 1 : 0);
    } else {
        TRY_ASSIGN(size, call.integer("split_size"));
    }
    if (size < 1) return failure(ErrorCode::InvalidProgram, "parts of {} elements", size);
    if (whole / size > static_cast<std::int64_t>(call.result_names().size()))
        return failure(ErrorCode::InvalidProgram, "too few results for parts of {}", size);
    for (std::int64_t at = 0; at < whole; at += size) sizes.push_back(std::min(size, whole - at));
    return give_parts(call, x, dim, sizes);
}

Result<void> import_unbind(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto dim, sliced_dimension(call, x, 0));
    Shape shape = call.b[x].shape;
    const auto count = shape[dim];
    if (count != static_cast<std::int64_t>(call.result_names().size()))
        return failure(ErrorCode::InvalidProgram, "{} results of {}", call.result_names().size(), count);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
    for (std::int64_t i = 0; i < count; ++i) {
        const std::string name(call.result_names()[static_cast<std::size_t>(i)]);
        TRY_ASSIGN(const auto part, cut(call, x, dim, i, i + 1, 1, name + ".part"));
        TRY_ASSIGN(const auto flat, call.b.reshape(part, shape, name));
        call.give(flat);
    }
    return {};
}

Result<void> import_cat(Call& call, Op) {
    TRY_ASSIGN(const auto all, call.tensors("tensors"));
    std::vector<ValueId> parts;
    for (const auto id : all)
        if (call.b[id].shape != Shape{0}) parts.push_back(id);  // an old habit of PyTorch: such operands are skipped
    if (parts.empty()) return failure(ErrorCode::InvalidProgram, "nothing to join");
    TRY_ASSIGN(const int dim, call.dimension("dim", call.b[parts[0]].shape.size(), 0));
    if (parts.size() == 1) return call.give(parts[0]), Result<void>{};
    TRY_ASSIGN(const auto y, call.b.add(Op::Concat, parts, AxisAttr{.axis = dim}, call.name()));
    call.give(y);
    return {};
}

Result<void> import_stack(Call& call, Op) {
    TRY_ASSIGN(auto parts, call.tensors("tensors"));
    if (parts.empty()) return failure(ErrorCode::InvalidProgram, "nothing to stack");
    TRY_ASSIGN(const int dim, call.dimension("dim", call.b[parts[0]].shape.size() + 1, 0));
    for (auto& part : parts) {
        Shape shape = call.b[part].shape;
        if (shape.size() < static_cast<std::size_t>(dim)) return failure(ErrorCode::InvalidProgram, "ranks differ");
        shape.insert(shape.begin() + dim, 1);
        TRY_ASSIGN(part, call.b.reshape(part, shape, call.name() + ".part"));
    }
    TRY_ASSIGN(const auto y, call.b.add(Op::Concat, parts, AxisAttr{.axis = dim}, call.name()));
    call.give(y);
    return {};
}

Result<void> import_flip(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const auto dims, call.integers("dims"));
    SliceAttr attr{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
    for (auto d : dims) {
        if (d < 0) d += static_cast<std::int64_t>(shape.size());
        if (d < 0 || d >= static_cast<std::int64_t>(shape.size()))
            return failure(ErrorCode::InvalidProgram, "dimension {}", d);
        const auto at = static_cast<std::size_t>(d);
        if (shape[at] < 1) continue;
        attr.starts[at] = shape[at] - 1;
        attr.ends[at] = -1;
        attr.steps[at] = -1;
    }
    TRY_ASSIGN(const auto y, call.b.add(Op::Slice, {x}, attr, call.name()));
    call.give(y);
    return {};
}

Result<void> import_roll(Call& call, Op) {
    TRY_ASSIGN(auto x, call.moved("self"));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const auto shifts, call.integers("shifts"));
    TRY_ASSIGN(const auto dims, call.integers("dims", std::vector<std::int64_t>{}));
    if (dims.size() != shifts.size()) return failure(ErrorCode::NotSupported, "roll over a flattened tensor");
    for (std::size_t i = 0; i < dims.size(); ++i) {
        auto d = dims[i];
        if (d < 0) d += static_cast<std::int64_t>(shape.size());
        if (d < 0 || d >= static_cast<std::int64_t>(shape.size()))
            return failure(ErrorCode::InvalidProgram, "dimension {}", d);
        const auto at = static_cast<std::size_t>(d);
        if (shape[at] < 1) continue;
        const auto shift = (shifts[i] % shape[at] + shape[at]) % shape[at];
        if (shift == 0) continue;
        TRY_ASSIGN(const auto head, cut(call, x, at, 0, shape[at] - shift, 1, call.name() + ".head"));
        TRY_ASSIGN(const auto tail, cut(call, x, at, shape[at] - shift, shape[at], 1, call.name() + ".tail"));
        TRY_ASSIGN(x, call.b.add(Op::Concat, {tail, head}, AxisAttr{.axis = static_cast<int>(d)}, call.name()));
    }
    call.give(x);
    return {};
}

constexpr auto kSliceView = Operator::Sharing::View;
constexpr Operator kSliceOperators[] = {
    {"aten.slice.Tensor", import_slice, Op::Slice, kSliceView},
    {"aten.slice_copy.Tensor", import_slice, Op::Slice},
    {"aten.select.int", import_select, Op::Slice, kSliceView},
    {"aten.narrow.default", import_narrow, Op::Slice, kSliceView},
    {"aten.split.Tensor", import_split, Op::Slice, kSliceView},
    {"aten.split.sizes", import_split, Op::Slice, kSliceView},
    {"aten.split_with_sizes.default", import_split, Op::Slice, kSliceView},
    {"aten.split_with_sizes_copy.default", import_split, Op::Slice},
    {"aten.chunk.default", import_split, Op::Slice, kSliceView},
    {"aten.unbind.int", import_unbind, Op::Slice, kSliceView},
    {"aten.cat.default", import_cat},
    {"aten.concat.default", import_cat},
    {"aten.stack.default", import_stack},
    {"aten.flip.default", import_flip},
    {"aten.roll.default", import_roll},
};

}  // namespace

std::span<const Operator> slice_operators() {
    return kSliceOperators;
}

}  // namespace talpa::compiler::import::pt2
