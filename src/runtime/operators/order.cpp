// Operators that look for elements by their order: argmax, argmin, max and min along a dimension, topk, sort. A NaN
// counts as larger than everything (for argmin and min too, the first NaN wins); of equal elements the one with the
// lower index comes first. (pte-format, section 6.3)
#include <algorithm>

#include "runtime/operators/functions.h"
#include "runtime/operators/slices.h"

namespace talpa::runtime::operators {
namespace {

template <typename T>
bool is_nan(T x) {
    return x != x;
}

// Does x displace the best element so far? Strictly, so that the first of equals stays.
template <typename T>
bool beats(T x, T best, bool largest) {
    if (is_nan(best)) return false;
    return is_nan(x) || (largest ? x > best : x < best);
}

template <typename T>
std::int64_t best_of(const SliceShape& slice, const std::uint8_t* data, ScalarType type, const Strides& strides,
                     bool largest, T& best) {
    std::int64_t index = 0, at = 0;
    for_each_chunk(slice, data, type, strides, kDomainOf<T>, [&](Chunk& chunk, std::size_t n) {
        for (std::size_t k = 0; k < n; ++k, ++index) {
            const T x = elements<T>(chunk)[k];
            if (index == 0 || beats(x, best, largest)) best = x, at = index;
        }
    });
    return at;
}

Result<void> want_elements(const Arguments& args, const Tensor& self, std::size_t results) {
    if (results != 0 && self.numel() == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: an empty tensor has no largest or smallest element");
    return {};
}

template <typename T>
void find_best(const Tensor& self, std::uint32_t set, bool keep, bool largest, Tensor* values, Tensor& indices) {
    const Strides strides = byte_strides(self);
    const SliceShape slice(self.shape(), set);
    SliceWalk walk(self.shape(), set);
    walk.add(self.data, strides);
    walk.add(indices.data, reduced_strides(indices, self.rank, set, keep));
    if (values != nullptr) walk.add(values->data, reduced_strides(*values, self.rank, set, keep));
    while (walk.next()) {
        T best{};
        const std::int64_t at = best_of<T>(slice, walk.from(0), self.type, strides, largest, best);
        store_one(at, ScalarType::Int64, walk.to(1));
        if (values != nullptr) store_one(best, values->type, walk.to(2));
    }
}

void find_best_any(const Tensor& self, std::uint32_t set, bool keep, bool largest, Tensor* values, Tensor& indices) {
    if (domain_of(self.type) == Domain::Float)
        find_best<float>(self, set, keep, largest, values, indices);
    else
        find_best<std::int64_t>(self, set, keep, largest, values, indices);
}

// self, dim or Null, keepdim, out. Without dim the index counts elements in stored order.
Result<void> arg_best(Arguments& args, bool largest) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const bool keep, args.boolean(2));
    if (args.is_null(1)) {
        const std::uint32_t all = (std::uint32_t{1} << self->rank) - 1;
        TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, reduced_shape(self->shape(), all, keep)));
        TRY(want_type(args, 3, *out, ScalarType::Int64));
        TRY(want_elements(args, *self, 1));
        Tensor stored = *self;  // as it lies in memory: sizes in the order of dim_order, which becomes 0, 1, 2 …
        for (std::size_t d = 0; d < self->rank; ++d) {
            stored.sizes[d] = self->sizes[self->dim_order[d]];
            stored.dim_order[d] = static_cast<std::uint8_t>(d);
        }
        find_best_any(stored, all, keep, largest, nullptr, *out);
        return {};
    }
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    const std::uint32_t set = self->rank == 0 ? 0 : std::uint32_t{1} << dim;
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, reduced_shape(self->shape(), set, keep)));
    TRY(want_type(args, 3, *out, ScalarType::Int64));
    TRY(want_elements(args, *self, out->numel()));
    find_best_any(*self, set, keep, largest, nullptr, *out);
    return {};
}

// self, dim, keepdim, values, indices
Result<void> best_along(Arguments& args, bool largest) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY_ASSIGN(const bool keep, args.boolean(2));
    const std::uint32_t set = self->rank == 0 ? 0 : std::uint32_t{1} << dim;
    const Shape shape = reduced_shape(self->shape(), set, keep);
    TRY_ASSIGN(Tensor* const values, out_of_shape(args, 3, shape));
    TRY_ASSIGN(Tensor* const indices, out_of_shape(args, 4, shape));
    TRY(want_type(args, 3, *values, self->type));
    TRY(want_type(args, 4, *indices, ScalarType::Int64));
    TRY(want_elements(args, *self, indices->numel()));
    find_best_any(*self, set, keep, largest, values, *indices);
    return {};
}

// One element of a slice that is being sorted: 16 bytes, as upstream's topk needs.
template <typename T>
struct Ranked {
    T value;
    std::int64_t index;
};

template <typename T>
bool goes_before(const Ranked<T>& a, const Ranked<T>& b, bool largest_first) {
    const bool a_larger = is_nan(a.value) ? !is_nan(b.value) : a.value > b.value;
    const bool b_larger = is_nan(b.value) ? !is_nan(a.value) : b.value > a.value;
    if (a_larger != b_larger) return a_larger == largest_first;
    return a.index < b.index;
}

struct Ranking {
    const Tensor* self = nullptr;
    std::size_t dim = 0;
    std::int64_t take = 0;  // of each slice
    bool largest = true;
    Tensor* values = nullptr;
    Tensor* indices = nullptr;
};

template <typename T>
void rank_slices(const Ranking& r, std::span<std::uint8_t> room) {
    const Tensor& self = *r.self;
    auto* const ranked = reinterpret_cast<Ranked<T>*>(room.data());
    const std::int64_t count = self.rank == 0 ? 1 : self.sizes[r.dim];
    const std::uint32_t set = self.rank == 0 ? 0 : std::uint32_t{1} << r.dim;
    const Strides strides = byte_strides(self);
    const Strides value_strides = byte_strides(*r.values);
    const Strides index_strides = byte_strides(*r.indices);
    SliceWalk walk(self.shape(), set);
    walk.add(self.data, strides);
    walk.add(r.values->data, value_strides);
    walk.add(r.indices->data, index_strides);
    const bool largest = r.largest;
    while (walk.next()) {
        for (std::int64_t k = 0; k < count; ++k)
            ranked[k] = {load_one<T>(self.type, walk.from(0) + k * strides[r.dim]), k};
        std::partial_sort(ranked, ranked + r.take, ranked + count,
                          [largest](const Ranked<T>& a, const Ranked<T>& b) { return goes_before(a, b, largest); });
        for (std::int64_t k = 0; k < r.take; ++k) {
            store_one(ranked[k].value, r.values->type, walk.to(1) + k * value_strides[r.dim]);
            store_one(ranked[k].index, ScalarType::Int64, walk.to(2) + k * index_strides[r.dim]);
        }
    }
}

// Brings the outputs (the last two arguments) to their shape and ranks.
Result<void> run_ranking(Arguments& args, Ranking r) {
    const std::size_t values = args.count() - 2, indices = args.count() - 1;
    Shape shape = r.self->shape();
    if (shape.rank != 0) shape.sizes[r.dim] = static_cast<std::int32_t>(r.take);
    const std::int64_t count = r.self->rank == 0 ? 1 : r.self->sizes[r.dim];
    TRY_ASSIGN(r.values, out_of_shape(args, values, shape));
    TRY_ASSIGN(r.indices, out_of_shape(args, indices, shape));
    TRY(want_type(args, values, *r.values, r.self->type));
    TRY(want_type(args, indices, *r.indices, ScalarType::Int64));
    TRY_ASSIGN(const auto room, args.temporary(static_cast<std::size_t>(count) * sizeof(Ranked<std::int64_t>)));
    if (count == 0 || r.take == 0) return {};
    if (domain_of(r.self->type) == Domain::Float)
        rank_slices<float>(r, room);
    else
        rank_slices<std::int64_t>(r, room);
    return {};
}

// self, dim at `dim_arg`; may have no memory yet.
Result<std::size_t> room_for_slice(const Arguments& args, std::size_t dim_arg) {
    const Value& v = args.value(0);
    if (v.kind != Value::Kind::Tensor || v.tensor == nullptr) return std::size_t{0};
    TRY_ASSIGN(const auto dim, dimension(args, dim_arg, v.tensor->rank));
    return (v.tensor->rank == 0 ? 1 : static_cast<std::size_t>(v.tensor->sizes[dim])) * sizeof(Ranked<std::int64_t>);
}

Result<void> sort(Arguments& args, std::size_t dim_arg) {
    Ranking r;
    TRY_ASSIGN(r.self, computable(args, 0));
    TRY_ASSIGN(r.dim, dimension(args, dim_arg, r.self->rank));
    TRY_ASSIGN(r.largest, args.boolean(dim_arg + 1));
    r.take = r.self->rank == 0 ? 1 : r.self->sizes[r.dim];
    return run_ranking(args, r);
}

}  // namespace

Result<void> run_argmax(Arguments& args) {
    return arg_best(args, true);
}
Result<void> run_argmin(Arguments& args) {
    return arg_best(args, false);
}
Result<void> run_max_dim(Arguments& args) {
    return best_along(args, true);
}
Result<void> run_min_dim(Arguments& args) {
    return best_along(args, false);
}

Result<void> run_topk(Arguments& args) {  // self, k, dim, largest, sorted, values, indices; always sorted here
    Ranking r;
    TRY_ASSIGN(r.self, computable(args, 0));
    TRY_ASSIGN(r.take, args.integer(1));
    TRY_ASSIGN(r.dim, dimension(args, 2, r.self->rank));
    TRY_ASSIGN(r.largest, args.boolean(3));
    const std::int64_t size = r.self->rank == 0 ? 1 : r.self->sizes[r.dim];
    if (r.take < 0 || r.take > size)
        return args.error(ErrorCode::InvalidArgument, "{}: {} elements are wanted of a dimension of size {}", r.take,
                          size);
    return run_ranking(args, r);
}
Result<std::size_t> temporary_topk(const Arguments& args) {
    return room_for_slice(args, 2);
}

Result<void> run_sort(Arguments& args) {
    return sort(args, 1);
}  // self, dim, descending, values, indices
Result<void> run_sort_stable(Arguments& args) {
    return sort(args, 2);
}  // self, stable, dim, descending, values, indices
Result<std::size_t> temporary_sort(const Arguments& args) {
    return room_for_slice(args, 1);
}
Result<std::size_t> temporary_sort_stable(const Arguments& args) {
    return room_for_slice(args, 2);
}

}  // namespace talpa::runtime::operators
