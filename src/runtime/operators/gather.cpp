// Operators that read or write at places given by a tensor of indices. Every index is checked; negative ones count from
// the end where PyTorch allows them. (pte-format, section 6.3)
#include <algorithm>

#include "runtime/operators/functions.h"
#include "runtime/operators/slices.h"

namespace talpa::runtime::operators {
namespace {

constexpr const char* kOutOfRange = "{}: index {} of argument {} is outside a dimension of size {}";

enum class Negative : std::uint8_t { Refused, FromTheEnd };
Result<std::int64_t> checked_index(const Arguments& args, std::size_t arg, std::int64_t index, std::int64_t size,
                                   Negative negative) {
    if (index >= 0 && index < size) return index;
    if (negative == Negative::FromTheEnd && index < 0 && index >= -size) return index + size;
    return args.error(ErrorCode::InvalidArgument, kOutOfRange, index, static_cast<unsigned>(arg), size);
}

std::int32_t size_of(const Tensor& t, std::size_t dim) {
    return t.rank == 0 ? 1 : t.sizes[dim];
}

// Copies the sub-tensors of `from` that indices[k] names along `dim` to place k of `to`.
struct Rows {
    std::span<const std::int32_t> shape;  // of a sub-tensor, with 1 in `dim`
    Place to, from;
    std::int64_t to_step = 0, from_step = 0;  // along dim
};
void copy_row(const Rows& r, std::int64_t to, std::int64_t from) {
    Place out = r.to, in = r.from;
    out.data = moved(out.data, to * r.to_step);
    in.data = moved(in.data, from * r.from_step);
    convert_elements(r.shape, row_major(r.shape.size()), out, in);
}

// Are the sizes of `small` at most those of `large`, but for one dimension?
bool fits_inside(const Tensor& small, const Tensor& large, std::size_t except) {
    for (std::size_t d = 0; d < small.rank; ++d)
        if (d != except && small.sizes[d] > large.sizes[d]) return false;
    return true;
}

// What gather and the scatters share: visit(index, at) for each element of the index tensor; `places` go with it.
template <typename Visit>
Result<void> for_each_index(const Arguments& args, const Tensor& index, std::size_t index_arg, std::int64_t size,
                            SliceWalk& walk, std::size_t index_operand, Visit&& visit) {
    while (walk.next()) {
        const std::int64_t k = load_one<std::int64_t>(index.type, walk.from(index_operand));
        TRY_ASSIGN(const auto at, checked_index(args, index_arg, k, size, Negative::Refused));
        visit(at);
    }
    return {};
}

// self, dim, index, src or value …: shapes as PyTorch's scatter asks for.
struct Scatter {
    const Tensor* self = nullptr;
    std::size_t dim = 0;
    const Tensor* index = nullptr;
    Tensor* out = nullptr;
};
Result<Scatter> read_scatter(const Arguments& args, std::size_t out_arg) {
    Scatter s;
    TRY_ASSIGN(s.self, computable(args, 0));
    TRY_ASSIGN(s.dim, dimension(args, 1, s.self->rank));
    TRY_ASSIGN(s.index, index_tensor(args, 2));
    if (s.index->rank != s.self->rank || !fits_inside(*s.index, *s.self, s.dim))
        return args.error(ErrorCode::InvalidArgument, "{}: argument 2 reaches outside of argument 0");
    TRY_ASSIGN(s.out, out_of_shape(args, out_arg, s.self->shape()));
    TRY(want_type(args, out_arg, *s.out, s.self->type));
    convert_elements(s.out->shape(), order_of(*s.out), place_of(*s.out), place_of(*s.self));
    return s;
}
template <typename Write>
Result<void> scatter_to(const Arguments& args, const Scatter& s, const Tensor* src, Write&& write) {
    Strides to = byte_strides(*s.out);
    const std::int64_t step = s.out->rank == 0 ? 0 : to[s.dim];
    to[s.dim] = 0;
    SliceWalk walk(s.index->shape(), 0);
    walk.add(s.index->data, byte_strides(*s.index));
    walk.add(s.out->data, to);
    if (src != nullptr) walk.add(src->data, byte_strides(*src));
    return for_each_index(args, *s.index, 2, size_of(*s.self, s.dim), walk, 0, [&](std::int64_t at) {
        write(walk.to(1) + at * step, src == nullptr ? nullptr : walk.from(2));
    });
}
Result<const Tensor*> scatter_source(const Arguments& args, const Scatter& s) {
    TRY_ASSIGN(const Tensor* const src, computable(args, 3));
    TRY(want_type(args, 3, *src, s.self->type));
    if (src->rank != s.index->rank || !fits_inside(*s.index, *src, kMaxRank))
        return args.error(ErrorCode::InvalidArgument, "{}: argument 2 reaches outside of argument 3");
    return src;
}

}  // namespace

Result<void> run_index_select(Arguments& args) {  // self, dim, index, out
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY_ASSIGN(const Tensor* const index, index_tensor(args, 2));
    if (index->rank > 1)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 2 must have at most 1 dimension, has {}",
                          static_cast<unsigned>(index->rank));
    const std::int32_t count = size_of(*index, 0);
    Shape shape = self->shape();
    if (shape.rank != 0)
        shape.sizes[dim] = count;
    else if (count != 1)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 is a single element, argument 2 has {}", count);
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, shape));
    TRY(want_type(args, 3, *out, self->type));
    Shape row = shape;
    if (row.rank != 0) row.sizes[dim] = 1;
    Rows rows{row.span(), place_of(*out), place_of(*self)};
    rows.to_step = rows.to.strides[dim];
    rows.from_step = rows.from.strides[dim];
    const std::size_t element = scalar_size(index->type);
    for (std::int32_t k = 0; k < count; ++k) {
        const std::int64_t named =
            load_one<std::int64_t>(index->type, index->data + static_cast<std::size_t>(k) * element);
        TRY_ASSIGN(const auto at, checked_index(args, 2, named, size_of(*self, dim), Negative::Refused));
        copy_row(rows, k, at);
    }
    return {};
}

Result<void> run_embedding(Arguments& args) {  // weight [rows, width], indices, padding_idx, scale_grad, sparse, out
    TRY_ASSIGN(const Tensor* const weight, any_tensor(args, 0));
    TRY_ASSIGN(const Tensor* const index, index_tensor(args, 1));
    if (weight->rank != 2 || index->rank == kMaxRank || !lies_contiguous(*index))
        return args.error(ErrorCode::InvalidArgument,
                          "{}: argument 0 must have 2 dimensions, has {}, and argument 1 must be contiguous",
                          static_cast<unsigned>(weight->rank));
    Shape shape = index->shape();
    shape.sizes[shape.rank++] = weight->sizes[1];
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 5, shape));
    TRY(want_type(args, 5, *out, weight->type));
    if (!lies_contiguous(*out)) return args.error(ErrorCode::NotSupported, "{}: needs a contiguous output");
    const std::int32_t row[] = {1, weight->sizes[1]};
    const auto element = static_cast<std::int64_t>(scalar_size(weight->type));
    Rows rows{row, {out->data, out->type, {0, element}}, place_of(*weight)};
    rows.to_step = element * weight->sizes[1];
    rows.from_step = rows.from.strides[0];
    for (std::size_t k = 0; k < index->numel(); ++k) {
        const std::int64_t named = load_one<std::int64_t>(index->type, index->data + k * scalar_size(index->type));
        TRY_ASSIGN(const auto at, checked_index(args, 1, named, weight->sizes[0], Negative::Refused));
        copy_row(rows, static_cast<std::int64_t>(k), at);
    }
    return {};
}

Result<void> run_gather(Arguments& args) {  // self, dim, index, sparse_grad, out: out[i][j] = self[index[i][j]][j]
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY_ASSIGN(const Tensor* const index, index_tensor(args, 2));
    if (index->rank != self->rank || !fits_inside(*index, *self, dim))
        return args.error(ErrorCode::InvalidArgument, "{}: argument 2 reaches outside of argument 0");
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 4, index->shape()));
    TRY(want_type(args, 4, *out, self->type));
    Strides from = byte_strides(*self);
    const std::int64_t step = self->rank == 0 ? 0 : from[dim];
    from[dim] = 0;
    SliceWalk walk(index->shape(), 0);
    walk.add(index->data, byte_strides(*index));
    walk.add(out->data, byte_strides(*out));
    walk.add(self->data, from);
    const std::size_t element = scalar_size(self->type);
    return for_each_index(args, *index, 2, size_of(*self, dim), walk, 0,
                          [&](std::int64_t at) { std::copy_n(walk.from(2) + at * step, element, walk.to(1)); });
}

Result<void> run_scatter_src(Arguments& args) {  // self, dim, index, src, out
    TRY_ASSIGN(const Scatter s, read_scatter(args, 4));
    TRY_ASSIGN(const Tensor* const src, scatter_source(args, s));
    const std::size_t element = scalar_size(s.out->type);
    return scatter_to(args, s, src,
                      [&](std::uint8_t* to, const std::uint8_t* from) { std::copy_n(from, element, to); });
}

Result<void> run_scatter_value(Arguments& args) {  // self, dim, index, value, out
    TRY_ASSIGN(const Scalar value, scalar(args, 3));
    TRY_ASSIGN(const Scatter s, read_scatter(args, 4));
    if (promote_with(s.out->type, value) != s.out->type && value.is_double())
        return args.error(ErrorCode::InvalidType, "{}: argument 3 does not go into a tensor of type {}",
                          scalar_name(s.out->type));
    return scatter_to(args, s, nullptr, [&](std::uint8_t* to, const std::uint8_t*) {
        value.is_double() ? store_one(value.as_float(), s.out->type, to) : store_one(value.i, s.out->type, to);
    });
}

Result<void> run_scatter_add(Arguments& args) {  // self, dim, index, src, out
    TRY_ASSIGN(const Scatter s, read_scatter(args, 4));
    TRY_ASSIGN(const Tensor* const src, scatter_source(args, s));
    const ScalarType type = s.out->type;
    if (domain_of(type) == Domain::Float)
        return scatter_to(args, s, src, [&](std::uint8_t* to, const std::uint8_t* from) {
            store_one(load_one<float>(type, to) + load_one<float>(type, from), type, to);
        });
    return scatter_to(args, s, src, [&](std::uint8_t* to, const std::uint8_t* from) {
        const auto sum = static_cast<std::uint64_t>(load_one<std::int64_t>(type, to)) +
                         static_cast<std::uint64_t>(load_one<std::int64_t>(type, from));
        store_one(static_cast<std::int64_t>(sum), type, to);
    });
}

namespace {

// x[i, :, j] and the like: some dimensions of self are indexed by tensors that broadcast together, the others are kept
// whole. The broadcast dimensions stand where the indexed ones stood if those were neighbours, else in front.
struct AdvancedIndex {
    const Tensor* self = nullptr;
    std::array<const Tensor*, kMaxRank> index{};  // null: kept whole
    Shape common;                                 // of the index tensors
    Shape shape;                                  // of self[index]
    std::size_t common_at = 0;                    // where the common dimensions start in it
};

Result<AdvancedIndex> read_advanced(const Arguments& args, const Tensor& self, std::size_t arg) {
    AdvancedIndex a;
    a.self = &self;
    TRY_ASSIGN(const auto count, args.list_size(arg));
    if (count > self.rank)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} lists {} indices, argument 0 has {} dimensions",
                          static_cast<unsigned>(arg), count, static_cast<unsigned>(self.rank));
    std::size_t first = kMaxRank, last = 0, indexed = 0;
    for (std::uint32_t d = 0; d < count; ++d) {
        TRY_ASSIGN(a.index[d], args.list_tensor(arg, d));
        if (a.index[d] == nullptr) continue;
        if (a.index[d]->type != ScalarType::Int64 && a.index[d]->type != ScalarType::Int32)
            return args.error(ErrorCode::NotSupported,
                              "{}: item {} of argument {} is {}; indices must be int64 or int32", d,
                              static_cast<unsigned>(arg), scalar_name(a.index[d]->type));
        TRY_ASSIGN(a.common, broadcast(args, arg, a.common, *a.index[d]));
        first = std::min<std::size_t>(first, d);
        last = d;
        ++indexed;
    }
    if (indexed == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} indexes no dimension",
                          static_cast<unsigned>(arg));
    a.common_at = last - first + 1 == indexed ? first : 0;
    IntList sizes;
    const auto append = [&](std::int64_t size) { sizes.items[sizes.count++] = size; };
    if (a.common.rank + self.rank - indexed > kMaxRank)
        return args.error(ErrorCode::NotSupported, "{}: the result would have more than {} dimensions",
                          static_cast<unsigned>(kMaxRank));
    std::size_t kept = 0;
    for (std::size_t d = 0; d <= self.rank; ++d) {
        if (kept == a.common_at && sizes.count == kept)
            for (std::size_t k = 0; k < a.common.rank; ++k) append(a.common.sizes[k]);
        if (d == self.rank) break;
        if (a.index[d] == nullptr) append(self.sizes[d]), ++kept;
    }
    TRY_ASSIGN(a.shape, shape_of(args, arg, sizes));
    return a;
}

// Calls visit(place in self, `other` strides' data) for each index of the common dimensions; the kept ones are left to
// it.
template <typename Visit>
Result<void> for_each_common(const Arguments& args, const AdvancedIndex& a, std::size_t arg, Visit&& visit) {
    const Strides own = byte_strides(*a.self);
    std::array<std::int64_t, kMaxRank> at{};
    const std::size_t count = a.common.numel();
    for (std::size_t k = 0; k < count; ++k) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < a.self->rank; ++d) {
            const Tensor* const index = a.index[d];
            if (index == nullptr) continue;
            const Strides steps = broadcast_strides(*index, a.common.span());
            std::int64_t place = 0;
            for (std::size_t c = 0; c < a.common.rank; ++c) place += at[c] * steps[c];
            TRY_ASSIGN(const auto chosen,
                       checked_index(args, arg, load_one<std::int64_t>(index->type, index->data + place),
                                     a.self->sizes[d], Negative::FromTheEnd));
            offset += chosen * own[d];
        }
        visit(offset, std::span<const std::int64_t>(at.data(), a.common.rank));
        for (std::size_t c = a.common.rank; c-- > 0;) {
            if (++at[c] < a.common.sizes[c]) break;
            at[c] = 0;
        }
    }
    return {};
}

// The kept dimensions: their sizes, and their strides in self and in a tensor of the result's shape.
struct Kept {
    Shape shape;
    Strides self{}, other{};
};
Kept kept_dimensions(const AdvancedIndex& a, const Strides& self, const Strides& other) {
    Kept k;
    for (std::size_t d = 0; d < a.self->rank; ++d) {
        if (a.index[d] != nullptr) continue;
        k.self[k.shape.rank] = self[d];
        k.other[k.shape.rank] = other[k.shape.rank < a.common_at ? k.shape.rank : k.shape.rank + a.common.rank];
        k.shape.sizes[k.shape.rank++] = a.self->sizes[d];
    }
    return k;
}
std::int64_t common_offset(const AdvancedIndex& a, const Strides& strides, std::span<const std::int64_t> at) {
    std::int64_t offset = 0;
    for (std::size_t c = 0; c < at.size(); ++c) offset += at[c] * strides[a.common_at + c];
    return offset;
}

}  // namespace

Result<void> run_index(Arguments& args) {  // self, indices, out
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const AdvancedIndex a, read_advanced(args, *self, 1));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 2, a.shape));
    TRY(want_type(args, 2, *out, self->type));
    const Strides to = byte_strides(*out);
    const Kept kept = kept_dimensions(a, byte_strides(*self), to);
    return for_each_common(args, a, 1, [&](std::int64_t offset, std::span<const std::int64_t> at) {
        copy_elements(kept.shape.span(), row_major(kept.shape.rank), scalar_size(out->type),
                      moved(out->data, common_offset(a, to, at)), kept.other, moved(self->data, offset), kept.self);
    });
}

Result<void> run_index_put(Arguments& args) {  // self, indices, values, accumulate, out
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const AdvancedIndex a, read_advanced(args, *self, 1));
    TRY_ASSIGN(const Tensor* const values, computable(args, 2));
    TRY_ASSIGN(const bool accumulate, args.boolean(3));
    TRY(want_type(args, 2, *values, self->type));
    TRY_ASSIGN(const Shape shape, broadcast(args, 2, a.shape, *values));
    if (!std::ranges::equal(shape.span(), a.shape.span()))
        return args.error(ErrorCode::InvalidArgument, "{}: argument 2 does not fit the indexed places");
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 4, self->shape()));
    TRY(want_type(args, 4, *out, self->type));
    convert_elements(out->shape(), order_of(*out), place_of(*out), place_of(*self));
    if (a.shape.numel() == 0) return {};
    AdvancedIndex target = a;
    target.self = out;
    const Strides from = broadcast_strides(*values, a.shape.span());
    const Kept kept = kept_dimensions(target, byte_strides(*out), from);
    const ScalarType type = out->type;
    return for_each_common(args, target, 1, [&](std::int64_t offset, std::span<const std::int64_t> at) {
        std::uint8_t* const to = out->data + offset;
        const std::uint8_t* const value = values->data + common_offset(a, from, at);
        if (!accumulate)
            return copy_elements(kept.shape.span(), row_major(kept.shape.rank), scalar_size(type), to, kept.self, value,
                                 kept.other);
        Walk walk(kept.shape.span(), row_major(kept.shape.rank), 1);
        walk.add(to, kept.self);
        walk.add(value, kept.other);
        while (walk.next()) {
            if (domain_of(type) == Domain::Float)
                store_one(load_one<float>(type, walk.to(0)) + load_one<float>(type, walk.from(1)), type, walk.to(0));
            else
                store_one(
                    static_cast<std::int64_t>(static_cast<std::uint64_t>(load_one<std::int64_t>(type, walk.to(0))) +
                                              static_cast<std::uint64_t>(load_one<std::int64_t>(type, walk.from(1)))),
                    type, walk.to(0));
        }
    });
}

}  // namespace talpa::runtime::operators
