// Tensors made from numbers: full, zeros, arange, scalar_tensor and their relatives. (pte-format, section 6.1)
#include <cmath>

#include "runtime/operators/call.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

Result<void> fill(const Arguments& args, Tensor& out, std::size_t out_arg, const Scalar& value) {
    TRY(want_computable(args, out_arg, out));
    Chunk chunk;
    if (value.is_double())
        chunk.f[0] = value.as_float();
    else
        chunk.i[0] = value.i;
    const Domain domain = value.is_double() ? Domain::Float : Domain::Integer;
    const std::size_t element = scalar_size(out.type);
    for (std::size_t k = 0; k < out.numel(); ++k) store(domain, chunk, 1, out.type, out.data + k * element, 0);
    return {};
}

Result<Tensor*> out_of_sizes(const Arguments& args, std::size_t sizes_arg, std::size_t out_arg) {
    TRY_ASSIGN(const IntList sizes, size_list(args, sizes_arg, false));
    TRY_ASSIGN(const Shape shape, shape_of(args, sizes_arg, sizes));
    return out_of_shape(args, out_arg, shape);
}

// size, out
Result<void> fill_constant(const Arguments& args, std::int64_t value) {
    TRY_ASSIGN(Tensor* const out, out_of_sizes(args, 0, 1));
    return fill(args, *out, 1, Scalar{Value::Kind::Int, value, 0});
}

// self gives the shape
Result<void> fill_like(const Arguments& args, std::size_t out_arg, const Scalar& value) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, out_arg, self->shape()));
    return fill(args, *out, out_arg, value);
}

// start + k·step for k in 0 … ceil((end - start) / step) - 1
Result<void> arange(const Arguments& args, const Scalar& start, const Scalar& end, const Scalar& step,
                    std::size_t out_arg) {
    const auto as_double = [](const Scalar& s) { return s.is_double() ? s.d : static_cast<double>(s.i); };
    const double first = as_double(start);
    const double stride = as_double(step);
    const double steps = std::ceil((as_double(end) - first) / stride);
    if (!(steps >= 0) || stride == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: the step does not lead from start to end");
    if (steps > static_cast<double>(INT32_MAX))
        return args.error(ErrorCode::InvalidArgument, "{}: the result has more than 2147483647 elements");
    const std::int32_t count = static_cast<std::int32_t>(steps);
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, out_arg, std::span(&count, 1)));
    TRY(want_computable(args, out_arg, *out));
    const std::size_t element = scalar_size(out->type);
    const bool whole = !start.is_double() && !step.is_double();
    for (std::int64_t k = 0; k < count; ++k) {
        std::uint8_t* const to = out->data + static_cast<std::size_t>(k) * element;
        if (whole)
            store_one<std::int64_t>(
                static_cast<std::int64_t>(static_cast<std::uint64_t>(start.i) +
                                          static_cast<std::uint64_t>(step.i) * static_cast<std::uint64_t>(k)),
                out->type, to);
        else
            store_one<float>(static_cast<float>(first + stride * static_cast<double>(k)), out->type, to);
    }
    return {};
}

constexpr Scalar kZero{Value::Kind::Int, 0, 0};
constexpr Scalar kOne{Value::Kind::Int, 1, 0};

}  // namespace

Result<void> run_full(Arguments& args) {
    TRY_ASSIGN(const Scalar value, scalar(args, 1));
    TRY_ASSIGN(Tensor* const out, out_of_sizes(args, 0, 2));
    return fill(args, *out, 2, value);
}
Result<void> run_zeros(Arguments& args) {
    return fill_constant(args, 0);
}
Result<void> run_ones(Arguments& args) {
    return fill_constant(args, 1);
}

Result<void> run_empty(Arguments& args) {  // upstream leaves garbage; zeros make runs repeatable
    TRY_ASSIGN(Tensor* const out, out_of_sizes(args, 0, 2));
    return fill(args, *out, 2, kZero);
}
Result<void> run_full_like(Arguments& args) {
    TRY_ASSIGN(const Scalar value, scalar(args, 1));
    return fill_like(args, 3, value);
}
Result<void> run_fill_scalar(Arguments& args) {
    TRY_ASSIGN(const Scalar value, scalar(args, 1));
    return fill_like(args, 2, value);
}
Result<void> run_scalar_tensor(Arguments& args) {
    TRY_ASSIGN(const Scalar value, scalar(args, 0));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 1, Shape{}));
    return fill(args, *out, 1, value);
}
Result<void> run_arange(Arguments& args) {
    TRY_ASSIGN(const Scalar end, scalar(args, 0));
    return arange(args, kZero, end, kOne, 1);
}
Result<void> run_arange_start(Arguments& args) {
    TRY_ASSIGN(const Scalar start, scalar(args, 0));
    TRY_ASSIGN(const Scalar end, scalar(args, 1));
    TRY_ASSIGN(const Scalar step, scalar(args, 2));
    return arange(args, start, end, step, 3);
}

}  // namespace talpa::runtime::operators
