// What moves elements or only renames them (model-formats, section 1.5).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/core/checked_math.h"
#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

Result<void> import_identity(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved(call.has("self") ? "self" : "input"));
    call.ignore(
        {"memory_format", "p", "train", "dtype", "non_blocking", "copy", "layout", "device", "pin_memory", "implicit"});
    call.give(x);
    return {};
}

Result<void> import_dropout(Call& call, Op op) {
    TRY_ASSIGN(const bool train, call.boolean("train", false));
    if (train)
        return std::unexpected(host::Error(ErrorCode::NotSupported, "dropout in training mode",
                                           "Call model.eval() before torch.export.export."));
    return import_identity(call, op);
}

/// to.dtype and _to_copy: only where nothing changes.
Result<void> import_cast(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    if (call.has("dtype")) {
        TRY_ASSIGN(const auto type, call.dtype("dtype"));
        const Value& v = call.b[x];
        if (v.is_constant() && !v.quantization && type == RawType::Float32 && v.type != DType::Float32) {
            const auto reals = real_numbers(v);
            call.give(call.b.value(float_constant(call.name(), v.shape, reals)));
            call.ignore({"memory_format", "non_blocking", "copy", "layout", "device", "pin_memory"});
            return {};
        }
        const bool same = (v.type == DType::Float32 && type == RawType::Float32) ||
                          (v.type == DType::Int64 && type == RawType::Int64) ||
                          (v.type == DType::Int32 && type == RawType::Int32);
        if (!same)
            return failure(ErrorCode::NotSupported, "a conversion from {} to {}", dtype_name(v.type), raw_name(type));
    }
    return import_identity(call, op);
}

Result<void> give_reshaped(Call& call, ValueId x, const Shape& shape) {
    TRY_ASSIGN(const auto y, call.b.reshape(x, shape, call.name()));
    call.give(y);
    return {};
}

/// One entry may be -1.
Result<Shape> completed(Shape shape, std::int64_t count) {
    std::int64_t known = 1;
    std::int64_t* open = nullptr;
    for (auto& size : shape) {
        if (size == -1 && open == nullptr) {
            open = &size;
            continue;
        }
        const auto more = size < 0 ? std::nullopt : checked_mul(known, size);
        if (!more) return failure(ErrorCode::InvalidProgram, "shape {}", shape_text(shape));
        known = *more;
    }
    if (open != nullptr) {
        if (known == 0 || count % known != 0)
            return failure(ErrorCode::InvalidProgram, "{} elements do not fill {}", count, shape_text(shape));
        *open = count / known;
    }
    return shape;
}

Result<void> import_view(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(auto shape, call.has("size") ? call.integers("size") : call.integers("shape"));
    TRY_ASSIGN(shape, completed(std::move(shape), element_count(call.b[x].shape)));
    return give_reshaped(call, x, shape);
}

Result<void> import_flatten(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const int first, call.dimension("start_dim", shape.size(), 0));
    TRY_ASSIGN(const int last, call.dimension("end_dim", shape.size(), -1));
    if (shape.empty()) return give_reshaped(call, x, {1});
    if (first > last) return failure(ErrorCode::InvalidProgram, "flatten from {} to {}", first, last);
    Shape out(shape.begin(), shape.begin() + first);
    std::int64_t joined = 1;
    for (int d = first; d <= last; ++d) joined *= shape[static_cast<std::size_t>(d)];
    out.push_back(joined);
    out.insert(out.end(), shape.begin() + last + 1, shape.end());
    return give_reshaped(call, x, out);
}

Result<void> import_unflatten(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const Shape shape = call.b[x].shape;
    TRY_ASSIGN(const int dim, call.dimension("dim", shape.size()));
    TRY_ASSIGN(auto sizes, call.integers("sizes"));
    if (shape.empty()) return failure(ErrorCode::InvalidProgram, "unflatten of a single number");
    TRY_ASSIGN(sizes, completed(std::move(sizes), shape[static_cast<std::size_t>(dim)]));
    Shape out(shape.begin(), shape.begin() + dim);
    out.insert(out.end(), sizes.begin(), sizes.end());
    out.insert(out.end(), shape.begin() + dim + 1, shape.end());
    return give_reshaped(call, x, out);
}

Result<void> import_squeeze(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const Shape shape = call.b[x].shape;
    std::vector<bool> gone(shape.size(), !call.has("dim"));
    if (call.has("dim")) {
        TRY_ASSIGN(const auto dims, call.integers("dim"));
        for (auto d : dims) {
            if (d < 0) d += static_cast<std::int64_t>(shape.size());
            if (d < 0 || d >= static_cast<std::int64_t>(shape.size()))
                return failure(ErrorCode::InvalidProgram, "dimension {} of rank {}", d, shape.size());
            gone[static_cast<std::size_t>(d)] = true;
        }
    }
    Shape out;
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (!gone[d] || shape[d] != 1) out.push_back(shape[d]);
    return give_reshaped(call, x, out);
}

Result<void> import_unsqueeze(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    Shape out = call.b[x].shape;
    TRY_ASSIGN(const int dim, call.dimension("dim", out.size() + 1));
    out.insert(out.begin() + dim, 1);
    return give_reshaped(call, x, out);
}

Result<void> give_permuted(Call& call, ValueId x, std::vector<int> order) {
    TRY_ASSIGN(const auto y, call.b.permute(x, std::move(order), call.name()));
    call.give(y);
    return {};
}

std::vector<int> counting(std::size_t rank) {
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

Result<void> import_permute(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    const auto rank = static_cast<std::int64_t>(call.b[x].shape.size());
    TRY_ASSIGN(const auto dims, call.integers("dims"));
    if (dims.size() != static_cast<std::size_t>(rank))
        return failure(ErrorCode::InvalidProgram, "{} dims", dims.size());
    std::vector<int> order;
    for (const auto d : dims) {
        if (d < -rank || d >= rank) return failure(ErrorCode::InvalidProgram, "dimension {} of rank {}", d, rank);
        order.push_back(static_cast<int>(d < 0 ? d + rank : d));
    }
    auto sorted = order;
    std::ranges::sort(sorted);
    if (!is_identity(sorted)) return failure(ErrorCode::InvalidProgram, "a dimension is named twice");
    return give_permuted(call, x, std::move(order));
}

Result<void> import_transpose(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    auto order = counting(call.b[x].shape.size());
    TRY_ASSIGN(const int a, call.dimension("dim0", order.size()));
    TRY_ASSIGN(const int c, call.dimension("dim1", order.size()));
    if (!order.empty()) std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(c)]);
    return give_permuted(call, x, std::move(order));
}

Result<void> import_t(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    auto order = counting(call.b[x].shape.size());
    if (order.size() > 2) return failure(ErrorCode::InvalidProgram, "t() of rank {}", order.size());
    std::ranges::reverse(order);
    return give_permuted(call, x, std::move(order));
}

Result<void> import_expand(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(auto shape, call.integers("size"));
    call.ignore({"implicit"});
    const Shape from = call.b[x].shape;
    if (shape.size() < from.size()) return failure(ErrorCode::InvalidProgram, "expand to {}", shape_text(shape));
    const std::size_t lead = shape.size() - from.size();
    for (std::size_t d = 0; d < shape.size(); ++d)
        if (shape[d] == -1 && d >= lead) shape[d] = from[d - lead];
    if (shape == from) return call.give(x), Result<void>{};
    TRY_ASSIGN(const auto y, call.b.add(Op::Expand, {x}, NoAttr{}, call.name(), shape));
    call.give(y);
    return {};
}

/// Tiling along one dimension after the other is a concatenation with itself.
Result<void> import_repeat(Call& call, Op) {
    TRY_ASSIGN(auto x, call.moved("self"));
    TRY_ASSIGN(const auto repeats, call.integers("repeats"));
    Shape shape = call.b[x].shape;
    if (repeats.size() < shape.size()) return failure(ErrorCode::InvalidProgram, "{} repeats", repeats.size());
    shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
    TRY_ASSIGN(x, call.b.reshape(x, shape, call.name() + ".lead"));
    for (std::size_t d = 0; d < repeats.size(); ++d) {
        if (repeats[d] < 1 || repeats[d] > 4096) return failure(ErrorCode::NotSupported, "{} repetitions", repeats[d]);
        if (repeats[d] == 1) continue;
        const std::vector<ValueId> parts(static_cast<std::size_t>(repeats[d]), x);
        TRY_ASSIGN(x, call.b.add(Op::Concat, parts, AxisAttr{.axis = static_cast<int>(d)}, call.name()));
    }
    call.give(x);
    return {};
}

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
    return give_reshaped(call, part, shape);
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

Result<void> pad(Call& call, PadAttr::Mode mode, std::string_view argument, double value) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto pads, call.integers(argument));
    const Shape shape = b[x].shape;
    if (pads.size() % 2 != 0 || pads.size() / 2 > shape.size())
        return failure(ErrorCode::InvalidProgram, "{} numbers of padding for rank {}", pads.size(), shape.size());
    PadAttr attr{.mode = mode, .before = Shape(shape.size(), 0), .after = Shape(shape.size(), 0), .value = value};
    SliceAttr crop{Shape(shape.size(), 0), shape, Shape(shape.size(), 1)};
    for (std::size_t i = 0; i < pads.size() / 2; ++i) {
        const std::size_t d = shape.size() - 1 - i;  // pairs count from the last dimension backwards
        const auto left = pads[2 * i], right = pads[2 * i + 1];
        if (left < -shape[d] || right < -shape[d])
            return failure(ErrorCode::InvalidProgram, "padding {} {}", left, right);
        attr.before[d] = std::max<std::int64_t>(left, 0);
        attr.after[d] = std::max<std::int64_t>(right, 0);
        crop.starts[d] = std::max<std::int64_t>(-left, 0);
        crop.ends[d] = shape[d] - std::max<std::int64_t>(-right, 0);
    }
    ValueId y = x;
    if (crop.starts != Shape(shape.size(), 0) || crop.ends != shape) {
        TRY_ASSIGN(y, b.add(Op::Slice, {y}, crop, call.name() + ".crop"));
    }
    if (attr.before != Shape(shape.size(), 0) || attr.after != Shape(shape.size(), 0)) {
        TRY_ASSIGN(y, b.add(Op::Pad, {y}, attr, call.name()));
    }
    call.give(y);
    return {};
}

Result<void> import_pad(Call& call, Op) {
    TRY_ASSIGN(const auto mode, call.text("mode", "constant"));
    TRY_ASSIGN(const auto value, call.number("value", 0.0));
    if (mode == "constant") return pad(call, PadAttr::Mode::Constant, "pad", value);
    if (mode == "reflect") return pad(call, PadAttr::Mode::Reflect, "pad", 0);
    if (mode == "replicate") return pad(call, PadAttr::Mode::Replicate, "pad", 0);
    return failure(ErrorCode::NotSupported, "padding by '{}'", mode);
}

Result<void> import_constant_pad(Call& call, Op) {
    TRY_ASSIGN(const auto value, call.number("value", 0.0));
    return pad(call, PadAttr::Mode::Constant, "pad", value);
}
Result<void> import_reflection_pad(Call& call, Op) {
    return pad(call, PadAttr::Mode::Reflect, "padding", 0);
}
Result<void> import_replication_pad(Call& call, Op) {
    return pad(call, PadAttr::Mode::Replicate, "padding", 0);
}

/// The size that is asked for, or that scale factors give.
Result<Pair> resized(Call& call, const Shape& shape) {
    const std::int64_t in[2] = {shape[2], shape[3]};
    if (call.has("output_size")) {
        TRY_ASSIGN(const auto size, call.integers("output_size"));
        if (size.size() != 2) return failure(ErrorCode::InvalidProgram, "output_size has {} numbers", size.size());
        call.ignore({"scale_factors", "scales_h", "scales_w"});
        return Pair{size[0], size[1]};
    }
    call.ignore({"output_size"});
    TRY_ASSIGN(const auto scales, call.numbers("scale_factors"));
    if (scales.size() != 2) return failure(ErrorCode::InvalidProgram, "scale_factors has {} numbers", scales.size());
    Pair out{};
    for (const std::size_t d : {0u, 1u}) {
        const double size = static_cast<double>(in[d]) * scales[d];
        if (!(size >= 1 && size < 65536)) return failure(ErrorCode::InvalidProgram, "scale factor {}", scales[d]);
        out[d] = static_cast<std::int64_t>(size);
        // Sampling goes by the factor, not by the sizes: they agree where no part of an element is dropped.
        if (static_cast<double>(out[d]) != size)
            return failure(ErrorCode::NotSupported, "{} elements scaled by {} are no whole number", in[d], scales[d]);
    }
    return out;
}

Result<void> resize(Call& call, ResizeAttr attr) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, attr.mode == ResizeAttr::Mode::Nearest ? call.moved("input") : call.tensor("input"));
    TRY_ASSIGN(const SpatialView view, spatial_view(b, x, 2));
    if (!view.batched) return failure(ErrorCode::InvalidProgram, "an input without batch dimension");
    TRY_ASSIGN(const Pair size, resized(call, b[x].shape));
    TRY_ASSIGN(const auto nhwc, to_channels_last(b, x, view));
    const Shape from = b[nhwc].shape;
    TRY_ASSIGN(auto y, b.add(Op::Resize, {nhwc}, attr, call.name(), {from[0], size[0], size[1], from[3]}));
    TRY_ASSIGN(y, from_channels_last(b, y, view, call.name()));
    call.give(y);
    return {};
}

Result<void> import_nearest(Call& call, Op) {
    return resize(call, {.mode = ResizeAttr::Mode::Nearest});
}

Result<void> import_bilinear(Call& call, Op) {
    TRY_ASSIGN(const bool align, call.boolean("align_corners"));
    return resize(call, {.mode = ResizeAttr::Mode::Bilinear, .align_corners = align, .half_pixel = !align});
}

/// [N, C r^2, H, W] -> [N, C, H r, W r]
Result<void> import_pixel_shuffle(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto r, call.integer("upscale_factor"));
    const Shape s = b[x].shape;
    if (s.size() != 4 || r < 1 || r > 256 || s[1] % (r * r) != 0)
        return failure(ErrorCode::InvalidProgram, "pixel_shuffle of {} by {}", shape_text(s), r);
    const auto c = s[1] / (r * r);
    TRY_ASSIGN(auto y, b.reshape(x, {s[0], c, r, r, s[2], s[3]}, call.name() + ".split"));
    TRY_ASSIGN(y, b.permute(y, {0, 1, 4, 2, 5, 3}, call.name() + ".turned"));
    return give_reshaped(call, y, {s[0], c, s[2] * r, s[3] * r});
}

Result<void> import_channel_shuffle(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.moved("self"));
    TRY_ASSIGN(const auto groups, call.integer("groups"));
    const Shape s = b[x].shape;
    if (s.size() != 4 || groups < 1 || s[1] % groups != 0)
        return failure(ErrorCode::InvalidProgram, "channel_shuffle of {} by {}", shape_text(s), groups);
    TRY_ASSIGN(auto y, b.reshape(x, {s[0], groups, s[1] / groups, s[2], s[3]}, call.name() + ".split"));
    TRY_ASSIGN(y, b.permute(y, {0, 2, 1, 3, 4}, call.name() + ".turned"));
    return give_reshaped(call, y, s);
}

constexpr auto kView = Operator::Sharing::View;
constexpr Operator kShapeOperators[] = {
    {"aten.contiguous.default", import_identity, Op::Reshape, kView},
    {"aten.clone.default", import_identity},
    {"aten.alias.default", import_identity, Op::Reshape, kView},
    {"aten.detach.default", import_identity, Op::Reshape, kView},
    {"aten.detach_.default", import_identity, Op::Reshape, kView},
    {"aten.lift_fresh_copy.default", import_identity},
    {"aten.dropout.default", import_dropout, Op::Reshape, kView},
    {"aten.feature_dropout.default", import_dropout, Op::Reshape, kView},
    {"aten.to.dtype", import_cast, Op::Reshape, kView},
    {"aten.to.dtype_layout", import_cast, Op::Reshape, kView},
    {"aten._to_copy.default", import_cast},
    {"aten.view.default", import_view, Op::Reshape, kView},
    {"aten.reshape.default", import_view, Op::Reshape, kView},
    {"aten._unsafe_view.default", import_view, Op::Reshape, kView},
    {"aten.flatten.using_ints", import_flatten, Op::Reshape, kView},
    {"aten.unflatten.int", import_unflatten, Op::Reshape, kView},
    {"aten.squeeze.default", import_squeeze, Op::Reshape, kView},
    {"aten.squeeze.dim", import_squeeze, Op::Reshape, kView},
    {"aten.squeeze.dims", import_squeeze, Op::Reshape, kView},
    {"aten.unsqueeze.default", import_unsqueeze, Op::Reshape, kView},
    {"aten.permute.default", import_permute, Op::Permute, kView},
    {"aten.permute_copy.default", import_permute, Op::Permute},
    {"aten.transpose.int", import_transpose, Op::Permute, kView},
    {"aten.t.default", import_t, Op::Permute, kView},
    {"aten.expand.default", import_expand, Op::Expand, kView},
    {"aten.repeat.default", import_repeat},
    {"aten.slice.Tensor", import_slice, Op::Slice, kView},
    {"aten.slice_copy.Tensor", import_slice, Op::Slice},
    {"aten.select.int", import_select, Op::Slice, kView},
    {"aten.narrow.default", import_narrow, Op::Slice, kView},
    {"aten.split.Tensor", import_split, Op::Slice, kView},
    {"aten.split.sizes", import_split, Op::Slice, kView},
    {"aten.split_with_sizes.default", import_split, Op::Slice, kView},
    {"aten.split_with_sizes_copy.default", import_split, Op::Slice},
    {"aten.chunk.default", import_split, Op::Slice, kView},
    {"aten.unbind.int", import_unbind, Op::Slice, kView},
    {"aten.cat.default", import_cat},
    {"aten.concat.default", import_cat},
    {"aten.stack.default", import_stack},
    {"aten.flip.default", import_flip},
    {"aten.roll.default", import_roll},
    {"aten.pad.default", import_pad},
    {"aten.constant_pad_nd.default", import_constant_pad},
    {"aten.reflection_pad2d.default", import_reflection_pad},
    {"aten.replication_pad2d.default", import_replication_pad},
    {"aten.upsample_nearest2d.vec", import_nearest},
    {"aten.upsample_nearest2d.default", import_nearest},
    {"aten.upsample_bilinear2d.vec", import_bilinear},
    {"aten.upsample_bilinear2d.default", import_bilinear},
    {"aten.pixel_shuffle.default", import_pixel_shuffle},
    {"aten.channel_shuffle.default", import_channel_shuffle},
};

}  // namespace

std::span<const Operator> shape_operators() {
    return kShapeOperators;
}

}  // namespace talpa::compiler::import::pt2
