#include "runtime/operators/window.h"

namespace talpa::runtime::operators {

Result<Pair> pair(const Arguments& args, std::size_t arg, std::int64_t at_least, const Pair* empty) {
    TRY_ASSIGN(const IntList list, int_list(args, arg));
    if (list.count == 0 && empty != nullptr) return *empty;
    if (list.count != 1 && list.count != 2)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} must be a list of 1 or 2 numbers, has {}",
                          static_cast<unsigned>(arg), static_cast<unsigned>(list.count));
    const Pair p{list[0], list[list.count - 1]};
    for (const std::int64_t v : {p.y, p.x})
        if (v < at_least || v > INT32_MAX)
            return args.error(ErrorCode::InvalidArgument, "{}: argument {} has {}, at least {} is needed",
                              static_cast<unsigned>(arg), v, at_least);
    return p;
}

std::int64_t window_count(std::int64_t size, const Window& w, bool ceil) {
    // Each factor is below 2^31, so nothing overflows.
    const std::int64_t room = size + 2 * w.padding - w.dilation * (w.kernel - 1) - 1 + (ceil ? w.stride - 1 : 0);
    if (room < 0) return -1;
    std::int64_t count = room / w.stride + 1;
    if (ceil && (count - 1) * w.stride >= size + w.padding) --count;
    return count;
}

Result<Planes> planes(const Arguments& args, std::size_t arg, const Tensor& t) {
    if (t.rank != 3 && t.rank != 4)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} must have 3 or 4 dimensions, has {}",
                          static_cast<unsigned>(arg), static_cast<unsigned>(t.rank));
    const Strides s = byte_strides(t);
    const std::size_t c = t.rank - 3U;
    Planes p;
    p.batches = t.rank == 4 ? t.sizes[0] : 1;
    p.batch_step = t.rank == 4 ? s[0] : 0;
    p.channels = t.sizes[c];
    p.height = t.sizes[c + 1];
    p.width = t.sizes[c + 2];
    p.channel_step = s[c];
    p.y_step = s[c + 1];
    p.x_step = s[c + 2];
    return p;
}

Result<Shape> with_plane_size(const Arguments& args, const Tensor& t, std::int64_t height, std::int64_t width) {
    IntList sizes;
    sizes.count = t.rank;
    for (std::size_t d = 0; d < t.rank; ++d) sizes.items[d] = t.sizes[d];
    sizes.items[t.rank - 2U] = height;
    sizes.items[t.rank - 1U] = width;
    return shape_of(args, 0, sizes);
}

}  // namespace talpa::runtime::operators
