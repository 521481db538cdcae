// Pads that repeat what is there (reflection_pad, replication_pad), and roll, which puts back in front what it pushes
// out behind.
#include <algorithm>

#include "base/core/checked_math.h"
#include "runtime/operators/call.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

enum class Edge : std::uint8_t { Reflect, Replicate };

std::int64_t source_of(std::int64_t at, std::int64_t size, Edge edge) {
    if (edge == Edge::Replicate) return std::clamp<std::int64_t>(at, 0, size - 1);
    return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;  // the edge itself is not repeated
}

// self, padding (before and after, from the last dimension), out; `padded` last dimensions.
Result<void> pad_edges(Arguments& args, std::size_t padded, Edge edge) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const IntList pads, int_list(args, 1));
    if (pads.count != 2 * padded || (self->rank != padded + 1 && self->rank != padded + 2))
        return args.error(ErrorCode::InvalidArgument, "{}: argument 1 has {} items, argument 0 has {} dimensions",
                          static_cast<unsigned>(pads.count), static_cast<unsigned>(self->rank));
    IntList sizes;
    sizes.count = self->rank;
    std::array<std::int64_t, kMaxRank> before{};
    for (std::size_t d = 0; d < self->rank; ++d) {
        const std::size_t back = self->rank - 1U - d;
        sizes.items[d] = self->sizes[d];
        if (back >= padded) continue;
        before[d] = pads[2 * back];
        const std::int64_t after = pads[2 * back + 1], size = self->sizes[d];
        const std::int64_t limit = edge == Edge::Reflect ? size - 1 : INT32_MAX;
        if (size < 1 || before[d] < -size || after < -size || before[d] > limit || after > limit)
            return args.error(ErrorCode::InvalidArgument, "{}: a dimension of size {} is not padded by {} and {}", size,
                              before[d], after);
        sizes.items[d] = size + before[d] + after;
        if (sizes[d] < 1)
            return args.error(ErrorCode::InvalidArgument, "{}: nothing is left of dimension {}",
                              static_cast<unsigned>(d));
    }
    TRY_ASSIGN(const Shape shape, shape_of(args, 1, sizes));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 2, shape));
    TRY(want_type(args, 2, *out, self->type));
    if (out->numel() == 0) return {};
    // One copy for each place in the padded dimensions: the coordinates are the same in all planes.
    Shape planes = shape;
    for (std::size_t d = self->rank - padded; d < self->rank; ++d) planes.sizes[d] = 1;
    const Strides from = byte_strides(*self), to = byte_strides(*out);
    std::array<std::int64_t, kMaxRank> at{};
    for (bool more = true; more;) {
        std::int64_t source = 0, target = 0;
        for (std::size_t d = self->rank - padded; d < self->rank; ++d) {
            source += source_of(at[d] - before[d], self->sizes[d], edge) * from[d];
            target += at[d] * to[d];
        }
        copy_elements(planes.span(), row_major(planes.rank), scalar_size(out->type), out->data + target, to,
                      self->data + source, from);
        more = false;
        for (std::size_t d = self->rank; !more && d-- > self->rank - padded;) {
            more = ++at[d] < shape.sizes[d];
            if (!more) at[d] = 0;
        }
    }
    return {};
}

}  // namespace

Result<void> run_reflection_pad1d(Arguments& args) {
    return pad_edges(args, 1, Edge::Reflect);
}
Result<void> run_reflection_pad2d(Arguments& args) {
    return pad_edges(args, 2, Edge::Reflect);
}
Result<void> run_replication_pad1d(Arguments& args) {
    return pad_edges(args, 1, Edge::Replicate);
}
Result<void> run_replication_pad2d(Arguments& args) {
    return pad_edges(args, 2, Edge::Replicate);
}

// self, shifts, dims, out. Each rolled dimension has two parts that change places: 2^n copies for n of them.
Result<void> run_roll(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const IntList shifts, int_list(args, 1));
    TRY_ASSIGN(const IntList dims, int_list(args, 2));
    if (shifts.count != dims.count || dims.count == 0)
        return args.error(ErrorCode::NotSupported, "{}: needs a dimension for each shift, has {} and {}",
                          static_cast<unsigned>(dims.count), static_cast<unsigned>(shifts.count));
    TRY(dimension_set(args, 2, self->rank, EmptyList::MeansNone));  // each at most once
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, self->shape()));
    TRY(want_type(args, 3, *out, self->type));
    if (out->numel() == 0) return {};
    const Strides from = byte_strides(*self), to = byte_strides(*out);
    for (std::uint32_t parts = 0; parts < std::uint32_t{1} << std::min<std::size_t>(dims.count, kMaxRank); ++parts) {
        Shape shape = self->shape();
        std::int64_t source = 0, target = 0;
        for (std::size_t k = 0; k < dims.count; ++k) {
            TRY_ASSIGN(const auto d, checked_dimension(args, 2, dims[k], self->rank));
            if (self->rank == 0) continue;
            const std::int64_t size = self->sizes[d];
            const std::int64_t shift = (shifts[k] % size + size) % size;
            const bool wrapped = (parts >> k & 1) != 0;  // the last `shift` indices come to the front
            shape.sizes[d] = static_cast<std::int32_t>(wrapped ? shift : size - shift);
            source += wrapped ? (size - shift) * from[d] : 0;
            target += wrapped ? 0 : shift * to[d];
        }
        if (shape.numel() != 0)
            copy_elements(shape.span(), row_major(shape.rank), scalar_size(out->type), out->data + target, to,
                          self->data + source, from);
    }
    return {};
}

}  // namespace talpa::runtime::operators
