// Operators that only name, order or repeat dimensions: view, permute, squeeze, expand, repeat, flip and their
// relatives. They copy elements of any type. (pte-format, section 6.3)
#include <cstring>

#include "base/core/checked_math.h"
#include "runtime/operators/call.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

// The bytes of self under another shape.
Result<void> copy_reshaped(const Arguments& args, const Tensor& self, std::size_t out_arg, const Shape& shape) {
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, out_arg, shape));
    TRY(want_type(args, out_arg, *out, self.type));
    if (!lies_contiguous(self) || !lies_contiguous(*out))
        return args.error(ErrorCode::NotSupported, "{}: needs contiguous tensors, one is in another dimension order");
    if (self.size_bytes() != 0) std::memmove(out->data, self.data, self.size_bytes());
    return {};
}

// out[i…] = self[…] where dimension d of the output has the strides `from`.
Result<void> copy_restrided(const Arguments& args, const Tensor& self, std::size_t out_arg, const Shape& shape,
                            const Strides& from, std::int64_t offset_bytes = 0) {
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, out_arg, shape));
    TRY(want_type(args, out_arg, *out, self.type));
    copy_elements(out->shape(), order_of(*out), scalar_size(out->type), out->data, byte_strides(*out),
                  self.data + offset_bytes, from);
    return {};
}

Result<void> copy_permuted(const Arguments& args, const Tensor& self, std::size_t out_arg,
                           std::span<const std::uint8_t> dims) {
    const Strides own = byte_strides(self);
    Shape shape;
    shape.rank = self.rank;
    Strides from{};
    for (std::size_t d = 0; d < self.rank; ++d) {
        shape.sizes[d] = self.sizes[dims[d]];
        from[d] = own[dims[d]];
    }
    return copy_restrided(args, self, out_arg, shape, from);
}

// self without the dimensions of the set that have size 1
Result<void> squeeze(const Arguments& args, std::uint32_t set, const Tensor& self, std::size_t out_arg) {
    const Strides own = byte_strides(self);
    Shape shape;
    Strides from{};
    for (std::size_t d = 0; d < self.rank; ++d) {
        if (self.sizes[d] == 1 && (set >> d & 1) != 0) continue;
        from[shape.rank] = own[d];
        shape.sizes[shape.rank++] = self.sizes[d];
    }
    return copy_restrided(args, self, out_arg, shape, from);
}

}  // namespace

Result<Shape> resolve_view(const Arguments& args, const Tensor& self, std::size_t size_arg) {
    TRY_ASSIGN(IntList sizes, size_list(args, size_arg, true));
    std::int64_t known = 1;
    std::size_t inferred = sizes.count;
    for (std::size_t d = 0; d < sizes.count; ++d) {
        if (sizes[d] == -1) {
            if (inferred != sizes.count)
                return args.error(ErrorCode::InvalidArgument, "{}: argument {} has more than one -1",
                                  static_cast<unsigned>(size_arg));
            inferred = d;
            continue;
        }
        const auto product = checked_mul(known, sizes[d]);
        if (!product)
            return args.error(ErrorCode::InvalidArgument, "{}: the sizes of argument {} are too large",
                              static_cast<unsigned>(size_arg));
        known = *product;
    }
    const auto elements = static_cast<std::int64_t>(self.numel());
    if (inferred != sizes.count && known != 0 && elements % known == 0) {
        sizes.items[inferred] = elements / known;
        known = elements;
    }
    if (known != elements || (inferred != sizes.count && sizes[inferred] == -1))
        return args.error(ErrorCode::InvalidArgument, "{}: {} elements do not fit the sizes of argument {}",
                          static_cast<unsigned long long>(elements), static_cast<unsigned>(size_arg));
    return shape_of(args, size_arg, sizes);
}

Result<void> run_view_copy(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const Shape shape, resolve_view(args, *self, 1));
    return copy_reshaped(args, *self, 2, shape);
}

Result<void> run_permute_copy(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const IntList list, int_list(args, 1));
    if (list.count != self->rank)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 1 orders {} dimensions, the tensor has {}",
                          static_cast<unsigned>(list.count), static_cast<unsigned>(self->rank));
    TRY(dimension_set(args, 1, self->rank, EmptyList::MeansNone));  // each at most once
    std::array<std::uint8_t, kMaxRank> dims{};
    for (std::size_t d = 0; d < list.count; ++d) {
        TRY_ASSIGN(const auto dim, checked_dimension(args, 1, list[d], self->rank));
        dims[d] = static_cast<std::uint8_t>(dim);
    }
    return copy_permuted(args, *self, 2, {dims.data(), self->rank});
}

Result<void> run_transpose_copy(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const auto a, dimension(args, 1, self->rank));
    TRY_ASSIGN(const auto b, dimension(args, 2, self->rank));
    std::array<std::uint8_t, kMaxRank> dims{};
    for (std::size_t d = 0; d < self->rank; ++d) dims[d] = static_cast<std::uint8_t>(d == a ? b : d == b ? a : d);
    return copy_permuted(args, *self, 3, {dims.data(), self->rank});
}

Result<void> run_t_copy(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    if (self->rank > 2)
        return args.error(ErrorCode::InvalidArgument, "{}: takes at most 2 dimensions, argument 0 has {}",
                          static_cast<unsigned>(self->rank));
    constexpr std::uint8_t kSwapped[] = {1, 0};
    return copy_permuted(args, *self, 1,
                         self->rank == 2 ? std::span<const std::uint8_t>(kSwapped) : row_major(self->rank));
}

Result<void> run_unsqueeze_copy(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    if (self->rank == kMaxRank)
        return args.error(ErrorCode::NotSupported, "{}: argument 0 has {} dimensions already",
                          static_cast<unsigned>(kMaxRank));
    TRY_ASSIGN(const auto at, dimension(args, 1, self->rank + 1U));
    const Strides own = byte_strides(*self);
    Shape shape;
    Strides from{};
    shape.rank = static_cast<std::uint8_t>(self->rank + 1);
    for (std::size_t d = 0, s = 0; d < shape.rank; ++d) {
        shape.sizes[d] = d == at ? 1 : self->sizes[s];
        from[d] = d == at ? 0 : own[s];
        s += d != at;
    }
    return copy_restrided(args, *self, 2, shape, from);
}

Result<void> run_squeeze_copy_dims(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const auto set, dimension_set(args, 1, self->rank, EmptyList::MeansNone));
    return squeeze(args, set, *self, 2);
}
Result<void> run_squeeze_copy_dim(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    return squeeze(args, std::uint32_t{1} << dim, *self, 2);
}

Result<void> run_expand_copy(Arguments& args) {  // self, size (-1 keeps a dimension), implicit, out
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(IntList sizes, size_list(args, 1, true));
    if (sizes.count < self->rank)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 1 gives {} dimensions, the tensor has {}",
                          static_cast<unsigned>(sizes.count), static_cast<unsigned>(self->rank));
    const std::size_t lead = sizes.count - self->rank;
    for (std::size_t d = 0; d < sizes.count; ++d) {
        if (d >= lead && sizes[d] == -1) sizes.items[d] = self->sizes[d - lead];
        if (d >= lead && self->sizes[d - lead] != 1 && self->sizes[d - lead] != sizes[d])
            return args.error(ErrorCode::InvalidArgument, "{}: dimension {} of size {} does not expand to {}",
                              static_cast<unsigned>(d - lead), self->sizes[d - lead], sizes[d]);
    }
    TRY_ASSIGN(const Shape shape, shape_of(args, 1, sizes));
    return copy_restrided(args, *self, 3, shape, broadcast_strides(*self, shape.span()));
}

Result<void> run_flip(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const auto set, dimension_set(args, 1, self->rank, EmptyList::MeansNone));
    Strides from = byte_strides(*self);
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < self->rank; ++d) {
        if ((set >> d & 1) == 0 || self->numel() == 0) continue;
        offset += from[d] * (self->sizes[d] - 1);
        from[d] = -from[d];
    }
    return copy_restrided(args, *self, 2, self->shape(), from, offset);
}

// The output is walked as [repeats0, size0, repeats1, size1 …], in which the repeats have no step in self.
Result<void> run_repeat(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const IntList repeats, size_list(args, 1, false));
    if (repeats.count < self->rank)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 1 gives {} repeats, the tensor has {} dimensions",
                          static_cast<unsigned>(repeats.count), static_cast<unsigned>(self->rank));
    const std::size_t lead = repeats.count - self->rank;
    IntList sizes = repeats;
    for (std::size_t d = lead; d < repeats.count; ++d) {
        const auto size = checked_mul<std::int64_t>(repeats[d], self->sizes[d - lead]);
        sizes.items[d] = size.value_or(-1);
    }
    TRY_ASSIGN(const Shape shape, shape_of(args, 1, sizes));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 2, shape));
    TRY(want_type(args, 2, *out, self->type));
    const Strides own = byte_strides(*self);
    const Strides to = byte_strides(*out);
    // Each repeat of the whole tensor is one copy, so that the walk stays within kMaxRank dimensions.
    Shape tile;
    tile.rank = shape.rank;
    Strides from{};
    std::size_t tiles = out->numel() == 0 ? 0 : 1;
    for (std::size_t d = 0; d < shape.rank; ++d) {
        tile.sizes[d] = d < lead ? 1 : self->sizes[d - lead];
        from[d] = d < lead ? 0 : own[d - lead];
        tiles *= static_cast<std::size_t>(repeats[d]);
    }
    std::array<std::int64_t, kMaxRank> index{};
    for (std::size_t k = 0; k < tiles; ++k) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < shape.rank; ++d) offset += index[d] * tile.sizes[d] * to[d];
        copy_elements(tile.span(), order_of(*out), scalar_size(out->type), out->data + offset, to, self->data, from);
        for (std::size_t d = shape.rank; d-- > 0;) {
            if (++index[d] < repeats[d]) break;
            index[d] = 0;
        }
    }
    return {};
}

}  // namespace talpa::runtime::operators
