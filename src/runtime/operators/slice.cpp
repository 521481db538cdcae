// Operators that take tensors apart along a dimension or put them together: slice, select, split, unbind, cat, stack,
// pad, pixel_shuffle. (pte-format, section 6.3)
#include <algorithm>

#include "base/core/checked_math.h"
#include "runtime/operators/call.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

// A part of a tensor: shape, and where it starts and steps in it.
struct Part {
    Shape shape;
    Place place;
};
Part whole(const Tensor& t) {
    return {t.shape(), place_of(t)};
}

// `count` indices of dimension `dim` from `start`, `step` apart; the caller has checked that they exist.
Part along(const Tensor& t, std::size_t dim, std::int64_t start, std::int64_t count, std::int64_t step = 1) {
    Part part = whole(t);
    part.shape.sizes[dim] = static_cast<std::int32_t>(count);
    if (part.shape.numel() != 0) part.place.data += start * part.place.strides[dim];
    part.place.strides[dim] *= step;
    return part;
}
// The same without the dimension, at one index of it.
Part at_index(const Tensor& t, std::size_t dim, std::int64_t index) {
    const Part one = along(t, dim, index, 1);
    Part part;
    part.place = one.place;
    part.place.strides = {};
    for (std::size_t d = 0; d < t.rank; ++d) {
        if (d == dim) continue;
        part.place.strides[part.shape.rank] = one.place.strides[d];
        part.shape.sizes[part.shape.rank++] = t.sizes[d];
    }
    return part;
}

void copy_part(const Part& to, const Part& from) {
    convert_elements(to.shape.span(), row_major(to.shape.rank), to.place, from.place);
}

Result<void> want_same_type(const Arguments& args, std::size_t arg, const Tensor& out, const Tensor& self) {
    return want_type(args, arg, out, self.type);
}

Result<void> want_dimensions(const Arguments& args, const Tensor& self) {
    if (self.rank == 0) return args.error(ErrorCode::InvalidArgument, "{}: argument 0 has no dimension to take apart");
    return {};
}

// An index of a dimension, counted from the end if negative.
Result<std::int64_t> index_in(const Arguments& args, std::size_t arg, std::int64_t size) {
    TRY_ASSIGN(const auto index, args.integer(arg));
    if (index < -size || index >= size)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} is index {} of a dimension of size {}",
                          static_cast<unsigned>(arg), index, size);
    return index < 0 ? index + size : index;
}

struct Range {
    std::size_t dim = 0;
    std::int64_t start = 0, count = 0, step = 1;
};
// dim, start?, end?, step from argument `arg` on: negative bounds add the size, then both are clamped to [0, size].
Result<Range> read_range(const Arguments& args, std::size_t arg, const Tensor& self) {
    TRY(want_dimensions(args, self));
    Range r;
    TRY_ASSIGN(r.dim, dimension(args, arg, self.rank));
    const std::int64_t size = self.sizes[r.dim];
    std::int64_t bounds[2] = {0, size};
    for (std::size_t k = 0; k < 2; ++k) {
        if (args.is_null(arg + 1 + k)) continue;
        TRY_ASSIGN(const auto bound, args.integer(arg + 1 + k));
        bounds[k] = std::clamp<std::int64_t>(bound < 0 ? bound + size : bound, 0, size);
    }
    TRY_ASSIGN(r.step, args.integer(arg + 3));
    if (r.step <= 0) return args.error(ErrorCode::InvalidArgument, "{}: the step must be positive, is {}", r.step);
    r.start = bounds[0];
    r.count = bounds[1] > bounds[0] ? 1 + (bounds[1] - bounds[0] - 1) / r.step : 0;
    if (r.count <= 1) r.step = 1;  // a step of 2^62 is never taken, nor multiplied
    return r;
}

Result<void> split_out(const Arguments& args, const Tensor& self, std::size_t dim, std::size_t outs, std::uint32_t item,
                       std::int64_t start, std::int64_t size) {
    const Part part = along(self, dim, start, size);
    TRY_ASSIGN(Tensor* const out, list_out_of_shape(args, outs, item, part.shape));
    TRY(want_same_type(args, outs, *out, self));
    copy_part(whole(*out), part);
    return {};
}

Result<void> want_outs(const Arguments& args, std::size_t arg, std::int64_t wanted) {
    TRY_ASSIGN(const auto count, args.list_size(arg));
    if (count == wanted) return {};
    return args.error(ErrorCode::InvalidArgument, "{}: argument {} lists {} outputs, {} are made",
                      static_cast<unsigned>(arg), count, wanted);
}

Result<const Tensor*> list_input(const Arguments& args, std::size_t arg, std::uint32_t item) {
    TRY_ASSIGN(const Tensor* const t, args.list_tensor(arg, item));
    if (t == nullptr || scalar_size(t->type) == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: item {} of argument {} is no tensor", item,
                          static_cast<unsigned>(arg));
    return t;
}

Result<void> want_convertible(const Arguments& args, std::size_t arg, const Tensor& in, std::size_t out_arg,
                              const Tensor& out) {
    if (in.type == out.type) return {};
    TRY(want_computable(args, arg, in));
    return want_storable(args, out_arg, in.type, out);
}

// An empty tensor of one dimension takes part in a cat of any shape.
bool is_skipped(const Tensor& t) {
    return t.rank == 1 && t.sizes[0] == 0;
}

}  // namespace

Result<void> run_slice_copy(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const Range r, read_range(args, 1, *self));
    const Part part = along(*self, r.dim, r.start, r.count, r.step);
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 5, part.shape));
    TRY(want_same_type(args, 5, *out, *self));
    copy_part(whole(*out), part);
    return {};
}

Result<void> run_select_copy(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY(want_dimensions(args, *self));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY_ASSIGN(const auto index, index_in(args, 2, self->sizes[dim]));
    const Part part = at_index(*self, dim, index);
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, part.shape));
    TRY(want_same_type(args, 3, *out, *self));
    copy_part(whole(*out), part);
    return {};
}

Result<void> run_slice_scatter(Arguments& args) {  // self, src, dim, start?, end?, step, out
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const Tensor* const src, any_tensor(args, 1));
    TRY_ASSIGN(const Range r, read_range(args, 2, *self));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 6, self->shape()));
    TRY(want_same_type(args, 6, *out, *self));
    TRY(want_convertible(args, 1, *src, 6, *out));
    const Part part = along(*out, r.dim, r.start, r.count, r.step);
    if (!std::ranges::equal(part.shape.span(), src->shape()))
        return args.error(ErrorCode::InvalidArgument, "{}: argument 1 has not the shape of the slice");
    copy_part(whole(*out), whole(*self));
    copy_part(part, whole(*src));
    return {};
}

Result<void> run_select_scatter(Arguments& args) {  // self, src, dim, index, out
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const Tensor* const src, any_tensor(args, 1));
    TRY(want_dimensions(args, *self));
    TRY_ASSIGN(const auto dim, dimension(args, 2, self->rank));
    TRY_ASSIGN(const auto index, index_in(args, 3, self->sizes[dim]));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 4, self->shape()));
    TRY(want_same_type(args, 4, *out, *self));
    TRY(want_convertible(args, 1, *src, 4, *out));
    const Part part = at_index(*out, dim, index);
    if (!std::ranges::equal(part.shape.span(), src->shape()))
        return args.error(ErrorCode::InvalidArgument, "{}: argument 1 has not the shape of the selected part");
    copy_part(whole(*out), whole(*self));
    copy_part(part, whole(*src));
    return {};
}

Result<void> run_split_with_sizes_copy(Arguments& args) {  // self, sizes, dim, outs
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY(want_dimensions(args, *self));
    TRY_ASSIGN(const auto dim, dimension(args, 2, self->rank));
    TRY_ASSIGN(const auto count, args.list_size(1));
    TRY(want_outs(args, 3, count));
    const std::int64_t size = self->sizes[dim];
    std::int64_t sum = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
        TRY_ASSIGN(const auto part, args.list_integer(1, k));
        if (part < 0 || part > size - sum)
            return args.error(ErrorCode::InvalidArgument,
                              "{}: item {} of argument 1 is {}, of the dimension are {} left", k, part, size - sum);
        sum += part;
    }
    if (sum != size)
        return args.error(ErrorCode::InvalidArgument, "{}: the sizes of argument 1 add up to {}, the dimension has {}",
                          sum, size);
    std::int64_t start = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
        TRY_ASSIGN(const auto part, args.list_integer(1, k));
        TRY(split_out(args, *self, dim, 3, k, start, part));
        start += part;
    }
    return {};
}

Result<void> run_split_copy(Arguments& args) {  // self, split_size, dim, outs: equal parts, the last may be smaller
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY(want_dimensions(args, *self));
    TRY_ASSIGN(const auto part, args.integer(1));
    TRY_ASSIGN(const auto dim, dimension(args, 2, self->rank));
    const std::int64_t size = self->sizes[dim];
    if (part < 0 || (part == 0 && size != 0))
        return args.error(ErrorCode::InvalidArgument, "{}: a dimension of size {} is not split into parts of {}", size,
                          part);
    const std::int64_t parts = size == 0 ? 1 : 1 + (size - 1) / part;
    TRY(want_outs(args, 3, parts));
    for (std::int64_t k = 0; k < parts; ++k)
        TRY(split_out(args, *self, dim, 3, static_cast<std::uint32_t>(k), k * part, std::min(part, size - k * part)));
    return {};
}

Result<void> run_unbind_copy(Arguments& args) {  // self, dim, outs
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY(want_dimensions(args, *self));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY(want_outs(args, 2, self->sizes[dim]));
    for (std::int32_t k = 0; k < self->sizes[dim]; ++k) {
        const Part part = at_index(*self, dim, k);
        TRY_ASSIGN(Tensor* const out, list_out_of_shape(args, 2, static_cast<std::uint32_t>(k), part.shape));
        TRY(want_same_type(args, 2, *out, *self));
        copy_part(whole(*out), part);
    }
    return {};
}

Result<void> run_cat(Arguments& args) {  // tensors, dim, out
    TRY_ASSIGN(const auto count, args.list_size(0));
    const Tensor* first = nullptr;
    for (std::uint32_t k = 0; k < count; ++k) {
        TRY_ASSIGN(const Tensor* const t, list_input(args, 0, k));
        if (first == nullptr || is_skipped(*first)) first = t;
    }
    if (first == nullptr) return args.error(ErrorCode::InvalidArgument, "{}: argument 0 lists no tensors");
    TRY(want_dimensions(args, *first));
    TRY_ASSIGN(const auto dim, dimension(args, 1, first->rank));
    IntList sizes;
    sizes.count = first->rank;
    for (std::size_t d = 0; d < first->rank; ++d) sizes.items[d] = d == dim ? 0 : first->sizes[d];
    for (std::uint32_t k = 0; k < count; ++k) {
        TRY_ASSIGN(const Tensor* const t, list_input(args, 0, k));
        if (is_skipped(*t)) continue;
        bool fits = t->rank == first->rank;
        for (std::size_t d = 0; fits && d < t->rank; ++d) fits = d == dim || t->sizes[d] == first->sizes[d];
        if (!fits)
            return args.error(ErrorCode::InvalidArgument,
                              "{}: item {} of argument 0 differs in more than the size of dimension {}", k,
                              static_cast<unsigned>(dim));
        sizes.items[dim] += t->sizes[dim];
    }
    TRY_ASSIGN(const Shape shape, shape_of(args, 0, sizes));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 2, shape));
    std::int64_t start = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
        TRY_ASSIGN(const Tensor* const t, list_input(args, 0, k));
        if (is_skipped(*t)) continue;
        TRY(want_convertible(args, 0, *t, 2, *out));
        copy_part(along(*out, dim, start, t->sizes[dim]), whole(*t));
        start += t->sizes[dim];
    }
    return {};
}

Result<void> run_stack(Arguments& args) {  // tensors, dim, out
    TRY_ASSIGN(const auto count, args.list_size(0));
    if (count == 0 || count > INT32_MAX)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 lists no tensors");
    TRY_ASSIGN(const Tensor* const first, list_input(args, 0, 0));
    if (first->rank == kMaxRank)
        return args.error(ErrorCode::NotSupported, "{}: the tensors have {} dimensions already",
                          static_cast<unsigned>(kMaxRank));
    TRY_ASSIGN(const auto dim, dimension(args, 1, first->rank + 1U));
    IntList sizes;
    sizes.count = first->rank + 1U;
    for (std::size_t d = 0, s = 0; d < sizes.count; ++d) sizes.items[d] = d == dim ? count : first->sizes[s++];
    for (std::uint32_t k = 1; k < count; ++k) {
        TRY_ASSIGN(const Tensor* const t, list_input(args, 0, k));
        if (!std::ranges::equal(t->shape(), first->shape()))
            return args.error(ErrorCode::InvalidArgument, "{}: item {} of argument 0 has another shape than item 0", k);
    }
    TRY_ASSIGN(const Shape shape, shape_of(args, 0, sizes));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 2, shape));
    for (std::uint32_t k = 0; k < count; ++k) {
        TRY_ASSIGN(const Tensor* const t, list_input(args, 0, k));
        TRY(want_convertible(args, 0, *t, 2, *out));
        copy_part(at_index(*out, dim, k), whole(*t));
    }
    return {};
}

Result<void> run_constant_pad_nd(
    Arguments& args) {  // self, pads (before and after, from the last dimension), value, out
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const IntList pads, int_list(args, 1));
    TRY_ASSIGN(const Scalar value, scalar(args, 2));
    if (pads.count % 2 != 0 || pads.count > 2U * self->rank)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 1 has {} items for {} dimensions",
                          static_cast<unsigned>(pads.count), static_cast<unsigned>(self->rank));
    Part from = whole(*self);
    IntList sizes;
    sizes.count = self->rank;
    std::array<std::int64_t, kMaxRank> offset{};
    for (std::size_t d = 0; d < self->rank; ++d) {
        const std::size_t back = self->rank - 1 - d;
        const std::int64_t before = 2 * back < pads.count ? pads[2 * back] : 0;
        const std::int64_t after = 2 * back < pads.count ? pads[2 * back + 1] : 0;
        if (before < -INT32_MAX || before > INT32_MAX || after < -INT32_MAX || after > INT32_MAX)
            return args.error(ErrorCode::InvalidArgument, "{}: argument 1 pads dimension {} by {} and {}",
                              static_cast<unsigned>(d), before, after);
        sizes.items[d] = self->sizes[d] + before + after;
        // Negative pads crop: they move the start of what is read instead of where it is written.
        const std::int64_t skipped = std::max<std::int64_t>(0, -before);
        const std::int64_t kept = self->sizes[d] - skipped - std::max<std::int64_t>(0, -after);
        from.shape.sizes[d] = static_cast<std::int32_t>(std::max<std::int64_t>(0, kept));
        from.place.data = moved(from.place.data, kept > 0 ? skipped * from.place.strides[d] : 0);
        offset[d] = std::max<std::int64_t>(0, before);
    }
    TRY_ASSIGN(const Shape shape, shape_of(args, 1, sizes));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, shape));
    TRY(want_same_type(args, 3, *out, *self));
    TRY(want_computable(args, 3, *out));
    if (promote_with(out->type, value) != out->type && value.is_double())
        return args.error(ErrorCode::InvalidType, "{}: argument 2 does not go into a tensor of type {}",
                          scalar_name(out->type));
    for (std::size_t k = 0; k < out->numel(); ++k) {
        std::uint8_t* const at = out->data + k * scalar_size(out->type);
        value.is_double() ? store_one(value.as_float(), out->type, at) : store_one(value.i, out->type, at);
    }
    Part to = whole(*out);
    to.shape = from.shape;
    if (from.shape.numel() != 0)
        for (std::size_t d = 0; d < self->rank; ++d) to.place.data += offset[d] * to.place.strides[d];
    copy_part(to, from);
    return {};
}

// [… C·r², H, W] to [… C, H·r, W·r] and back: one copy an offset (dy, dx) inside the r × r squares.
namespace {
Result<void> shuffle_pixels(Arguments& args, bool up) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const auto r, args.integer(1));
    if (self->rank < 3 || r <= 0 || r > INT32_MAX)
        return args.error(ErrorCode::InvalidArgument, "{}: needs 3 dimensions and a positive factor, has {} and {}",
                          static_cast<unsigned>(self->rank), r);
    const std::size_t c = self->rank - 3U, h = c + 1, w = c + 2;
    const auto area = checked_mul(r, r).value_or(INT64_MAX);
    if (up ? self->sizes[c] % area != 0 : self->sizes[h] % r != 0 || self->sizes[w] % r != 0)
        return args.error(ErrorCode::InvalidArgument,
                          "{}: the sizes of argument 0 are no multiples of what the factor {} asks for", r);
    IntList sizes;
    sizes.count = self->rank;
    for (std::size_t d = 0; d < c; ++d) sizes.items[d] = self->sizes[d];
    const auto scaled = [](std::int64_t size, std::int64_t by) { return checked_mul(size, by).value_or(-1); };
    sizes.items[c] = up ? self->sizes[c] / area : scaled(self->sizes[c], area);
    sizes.items[h] = up ? scaled(self->sizes[h], r) : self->sizes[h] / r;
    sizes.items[w] = up ? scaled(self->sizes[w], r) : self->sizes[w] / r;
    TRY_ASSIGN(const Shape shape, shape_of(args, 0, sizes));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 2, shape));
    TRY(want_same_type(args, 2, *out, *self));
    if (out->numel() == 0) return {};
    const Tensor& small = up ? *self : *out;  // the one with more channels and fewer pixels
    const Tensor& large = up ? *out : *self;
    for (std::int64_t k = 0; k < area; ++k) {
        Part deep = whole(small);
        deep.shape.sizes[c] = large.sizes[c];
        deep.place.data += k * deep.place.strides[c];
        deep.place.strides[c] *= area;
        Part flat = whole(large);
        flat.shape = deep.shape;
        flat.place.data += k / r * flat.place.strides[h] + k % r * flat.place.strides[w];
        flat.place.strides[h] *= r;
        flat.place.strides[w] *= r;
        up ? copy_part(flat, deep) : copy_part(deep, flat);
    }
    return {};
}
}  // namespace
Result<void> run_pixel_shuffle(Arguments& args) {
    return shuffle_pixels(args, true);
}
Result<void> run_pixel_unshuffle(Arguments& args) {
    return shuffle_pixels(args, false);
}

}  // namespace talpa::runtime::operators
