// Copies of whole tensors: between memory formats, with type conversion, and in place. (pte-format, section 6.3)
#include "runtime/operators/call.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

Result<void> want_convertible(const Arguments& args, std::size_t from_arg, const Tensor& from, std::size_t out_arg,
                              const Tensor& out) {
    if (from.type == out.type) return {};
    TRY(want_computable(args, from_arg, from));
    return want_computable(args, out_arg, out);
}

// Argument 0 into the last one, which has the same shape.
Result<void> copy_converted(Arguments& args, bool may_convert) {
    const std::size_t out_arg = args.count() - 1;
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, out_arg, self->shape()));
    if (may_convert)
        TRY(want_convertible(args, 0, *self, out_arg, *out));
    else
        TRY(want_type(args, out_arg, *out, self->type));
    convert_elements(out->shape(), order_of(*out), place_of(*out), place_of(*self));
    return {};
}

// Contiguous (0, 1, 2, 3) or channels-last (0, 2, 3, 1).
bool is_known_order(const IntList& order) {
    const auto is_dim = [&](std::size_t k, std::size_t d) { return order[k] == static_cast<std::int64_t>(d); };
    bool contiguous = true;
    bool channels_last = order.count >= 3 && is_dim(0, 0) && is_dim(order.count - 1, 1);
    for (std::size_t k = 0; k < order.count; ++k) {
        contiguous = contiguous && is_dim(k, k);
        if (k > 0 && k + 1 < order.count) channels_last = channels_last && is_dim(k, k + 1);
    }
    return contiguous || channels_last;
}

// Argument 2 of the dim_order_ops names the order that the output must have; Null: the input's.
Result<void> check_dim_order(const Arguments& args) {
    if (args.is_null(2)) return {};
    TRY_ASSIGN(const Tensor* const out, args.tensor(3));
    TRY_ASSIGN(const IntList order, int_list(args, 2));
    if (!is_known_order(order))
        return args.error(ErrorCode::NotSupported,
                          "{}: argument 2 is neither the contiguous nor the channels-last order");
    bool same = order.count == out->rank;
    for (std::size_t k = 0; same && k < order.count; ++k) same = order[k] == out->dim_order[k];
    if (!same) return args.error(ErrorCode::InvalidArgument, "{}: argument 2 is not the dimension order of the output");
    return {};
}

// src, broadcast, into `to_arg`.
Result<void> copy_broadcast(const Arguments& args, Tensor& to, std::size_t to_arg, std::size_t src_arg) {
    TRY_ASSIGN(const Tensor* const src, any_tensor(args, src_arg));
    TRY_ASSIGN(const Shape shape, broadcast(args, src_arg, to.shape(), *src));
    if (shape.rank != to.rank || shape.numel() != to.numel())
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} does not fit the shape of argument 0",
                          static_cast<unsigned>(src_arg));
    TRY(want_convertible(args, src_arg, *src, to_arg, to));
    convert_elements(to.shape(), order_of(to), place_of(to),
                     {src->data, src->type, broadcast_strides(*src, to.shape())});
    return {};
}

}  // namespace

Result<void> run_to_copy(Arguments& args) {
    return copy_converted(args, true);
}
Result<void> run_clone(Arguments& args) {
    return copy_converted(args, false);
}

Result<void> run_to_dim_order_copy(Arguments& args) {
    TRY(check_dim_order(args));
    return copy_converted(args, true);
}
Result<void> run_clone_dim_order(Arguments& args) {
    TRY(check_dim_order(args));
    return copy_converted(args, false);
}

Result<void> run_copy_in_place(Arguments& args) {  // writes src into self: the state update at the end of a method
    TRY_ASSIGN(Tensor* const self, args.out(0));
    return copy_broadcast(args, *self, 0, 1);
}

Result<void> run_copy(Arguments& args) {  // out is self with src written over it, so self gives only its shape
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, self->shape()));
    TRY(want_type(args, 3, *out, self->type));
    return copy_broadcast(args, *out, 3, 1);
}

}  // namespace talpa::runtime::operators
