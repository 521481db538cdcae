// Reductions to a value: sum, mean, prod, var, amax, amin, any. Elements enter the type of the result first and are
// accumulated one after the other in index order, in float32 or modulo 2^64. (pte-format, section 6.3)
#include <cmath>
#include <limits>

#include "runtime/operators/functions.h"
#include "runtime/operators/slices.h"

namespace talpa::runtime::operators {
namespace {

// One reduction: `step` takes an element into the accumulator, `finish` makes the result of it.
template <typename T>
struct Fold {
    T start;
    T (*step)(T accumulator, T element);
    T (*finish)(T accumulator, std::int64_t count) = nullptr;
};

struct Plan {
    const Tensor* self = nullptr;
    Tensor* out = nullptr;
    std::uint32_t set = 0;
    bool keep = false;
};

template <typename T>
void fold(const Plan& plan, const Fold<T>& how) {
    const std::span<const std::int32_t> shape = plan.self->shape();
    const Strides strides = byte_strides(*plan.self);
    const SliceShape slice(shape, plan.set);
    const std::int64_t count = slice.count();
    SliceWalk walk(shape, plan.set);
    walk.add(plan.self->data, strides);
    walk.add(plan.out->data, reduced_strides(*plan.out, plan.self->rank, plan.set, plan.keep));
    while (walk.next()) {
        T accumulator = how.start;
        for_each_chunk(slice, walk.from(0), plan.self->type, strides, kDomainOf<T>, [&](Chunk& chunk, std::size_t n) {
            for (std::size_t k = 0; k < n; ++k) accumulator = how.step(accumulator, elements<T>(chunk)[k]);
        });
        if (how.finish != nullptr) accumulator = how.finish(accumulator, count);
        store_one(accumulator, plan.out->type, walk.to(1));
    }
}

// A slice without elements has no largest one.
Result<void> want_elements(const Arguments& args, const Plan& plan) {
    if (plan.out->numel() != 0 && plan.self->numel() == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: an empty tensor has no largest or smallest element");
    return {};
}

Result<Plan> plan_reduction(const Arguments& args, std::uint32_t set, bool keep) {
    Plan plan;
    plan.set = set;
    plan.keep = keep;
    TRY_ASSIGN(plan.self, computable(args, 0));
    TRY_ASSIGN(plan.out, out_of_shape(args, args.count() - 1, reduced_shape(plan.self->shape(), set, keep)));
    TRY(want_computable(args, args.count() - 1, *plan.out));
    return plan;
}

// self, dims at 1, keepdim at `keep_arg`
Result<Plan> plan_dims(const Arguments& args, std::size_t keep_arg) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const auto set, dimension_set(args, 1, self->rank, EmptyList::MeansAll));
    TRY_ASSIGN(const bool keep, args.boolean(keep_arg));
    return plan_reduction(args, set, keep);
}
Result<Plan> plan_dim(const Arguments& args, std::size_t keep_arg) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY_ASSIGN(const bool keep, args.boolean(keep_arg));
    return plan_reduction(args, self->rank == 0 ? 0 : std::uint32_t{1} << dim, keep);
}
Result<Plan> plan_all(const Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    return plan_reduction(args, (std::uint32_t{1} << self->rank) - 1, false);
}

// The dtype argument must say what the output is.
Result<void> check_dtype(const Arguments& args, std::size_t arg, const Tensor& out) {
    if (args.is_null(arg)) return {};
    TRY_ASSIGN(const auto dtype, args.integer(arg));
    if (dtype == static_cast<std::int64_t>(out.type)) return {};
    return args.error(ErrorCode::InvalidType, "{}: argument {} asks for scalar type {}, the output is {}",
                      static_cast<unsigned>(arg), dtype, scalar_name(out.type));
}

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

Result<void> fold_in_out_type(const Plan& plan, const Fold<float>& floats, const Fold<std::int64_t>& integers) {
    if (domain_of(plan.out->type) == Domain::Float)
        fold(plan, floats);
    else
        fold(plan, integers);
    return {};
}

Result<void> sum(const Plan& plan) {
    return fold_in_out_type(plan, {0.0F, [](float a, float x) { return a + x; }}, {0, wrapping_add});
}
Result<void> product(const Plan& plan) {
    return fold_in_out_type(plan, {1.0F, [](float a, float x) { return a * x; }}, {1, wrapping_mul});
}
Result<void> mean(const Arguments& args, const Plan& plan) {
    if (plan.out->type != ScalarType::Float32)
        return args.error(ErrorCode::InvalidType, "{}: the result of a mean is float32, the output is {}",
                          scalar_name(plan.out->type));
    fold<float>(plan, {0.0F, [](float a, float x) { return a + x; },
                       [](float a, std::int64_t count) { return a / static_cast<float>(count); }});
    return {};
}
Result<void> any(const Arguments& args, const Plan& plan) {
    if (plan.out->type != ScalarType::Bool && plan.out->type != ScalarType::UInt8)
        return args.error(ErrorCode::InvalidType, "{}: the output must be bool or uint8, is {}",
                          scalar_name(plan.out->type));
    if (domain_of(plan.self->type) == Domain::Float)
        fold<float>(plan, {0.0F, [](float a, float x) { return a != 0 || x != 0 ? 1.0F : 0.0F; }});
    else
        fold<std::int64_t>(plan, {0, [](std::int64_t a, std::int64_t x) { return std::int64_t{a != 0 || x != 0}; }});
    return {};
}

// The largest or smallest element in the input's type; a NaN wins.
Result<void> extreme(const Arguments& args, const Plan& plan, bool largest) {
    TRY(want_elements(args, plan));
    TRY(want_type(args, args.count() - 1, *plan.out, plan.self->type));
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const Fold<float> floats = largest
                                   ? Fold<float>{-kInfinity, [](float a, float x) { return a != a || a > x ? a : x; }}
                                   : Fold<float>{kInfinity, [](float a, float x) { return a != a || a < x ? a : x; }};
    const Fold<std::int64_t> integers =
        largest ? Fold<std::int64_t>{INT64_MIN, [](std::int64_t a, std::int64_t x) { return a > x ? a : x; }}
                : Fold<std::int64_t>{INT64_MAX, [](std::int64_t a, std::int64_t x) { return a < x ? a : x; }};
    return fold_in_out_type(plan, floats, integers);
}

// Two passes: the mean, then the squared distances from it.
Result<void> variance(const Arguments& args, const Plan& plan, float correction) {
    TRY(want_type(args, 0, *plan.self, ScalarType::Float32));
    TRY(want_type(args, args.count() - 1, *plan.out, ScalarType::Float32));
    const std::span<const std::int32_t> shape = plan.self->shape();
    const Strides strides = byte_strides(*plan.self);
    const SliceShape slice(shape, plan.set);
    const auto count = static_cast<float>(slice.count());
    const float divisor = count - correction;
    SliceWalk walk(shape, plan.set);
    walk.add(plan.self->data, strides);
    walk.add(plan.out->data, reduced_strides(*plan.out, plan.self->rank, plan.set, plan.keep));
    while (walk.next()) {
        float total = 0;
        for_each_chunk(slice, walk.from(0), ScalarType::Float32, strides, Domain::Float,
                       [&](Chunk& chunk, std::size_t n) {
                           for (std::size_t k = 0; k < n; ++k) total += chunk.f[k];
                       });
        const float average = total / count;
        float squares = 0;
        for_each_chunk(slice, walk.from(0), ScalarType::Float32, strides, Domain::Float,
                       [&](Chunk& chunk, std::size_t n) {
                           for (std::size_t k = 0; k < n; ++k)
                               squares += (chunk.f[k] - average) * (chunk.f[k] - average);
                       });
        store_one(divisor <= 0 ? std::numeric_limits<float>::quiet_NaN() : squares / divisor, ScalarType::Float32,
                  walk.to(1));
    }
    return {};
}

}  // namespace

Result<void> run_sum(Arguments& args) {  // self, dims, keepdim, dtype, out
    TRY_ASSIGN(const Plan plan, plan_dims(args, 2));
    TRY(check_dtype(args, 3, *plan.out));
    return sum(plan);
}
Result<void> run_mean(Arguments& args) {
    TRY_ASSIGN(const Plan plan, plan_dims(args, 2));
    TRY(check_dtype(args, 3, *plan.out));
    return mean(args, plan);
}
Result<void> run_mean_all(Arguments& args) {  // self, dtype, out
    TRY_ASSIGN(const Plan plan, plan_all(args));
    TRY(check_dtype(args, 1, *plan.out));
    return mean(args, plan);
}
Result<void> run_prod_dim(Arguments& args) {  // self, dim, keepdim, dtype, out
    TRY_ASSIGN(const Plan plan, plan_dim(args, 2));
    TRY(check_dtype(args, 3, *plan.out));
    return product(plan);
}
Result<void> run_prod(Arguments& args) {  // self, dtype, out
    TRY_ASSIGN(const Plan plan, plan_all(args));
    TRY(check_dtype(args, 1, *plan.out));
    return product(plan);
}
Result<void> run_amax(Arguments& args) {  // self, dims, keepdim, out
    TRY_ASSIGN(const Plan plan, plan_dims(args, 2));
    return extreme(args, plan, true);
}
Result<void> run_amin(Arguments& args) {
    TRY_ASSIGN(const Plan plan, plan_dims(args, 2));
    return extreme(args, plan, false);
}
Result<void> run_max_all(Arguments& args) {  // self, out
    TRY_ASSIGN(const Plan plan, plan_all(args));
    return extreme(args, plan, true);
}
Result<void> run_min_all(Arguments& args) {
    TRY_ASSIGN(const Plan plan, plan_all(args));
    return extreme(args, plan, false);
}
Result<void> run_any_all(Arguments& args) {  // self, out
    TRY_ASSIGN(const Plan plan, plan_all(args));
    return any(args, plan);
}
Result<void> run_any_dims(Arguments& args) {  // self, dims, keepdim, out
    TRY_ASSIGN(const Plan plan, plan_dims(args, 2));
    return any(args, plan);
}
Result<void> run_any_dim(Arguments& args) {  // self, dim, keepdim, out
    TRY_ASSIGN(const Plan plan, plan_dim(args, 2));
    return any(args, plan);
}
Result<void> run_var(Arguments& args) {  // self, dims, unbiased, keepdim, out
    TRY_ASSIGN(const Plan plan, plan_dims(args, 3));
    TRY_ASSIGN(const bool unbiased, args.boolean(2));
    return variance(args, plan, unbiased ? 1.0F : 0.0F);
}
Result<void> run_var_correction(Arguments& args) {  // self, dims, correction or Null, keepdim, out
    TRY_ASSIGN(const Plan plan, plan_dims(args, 3));
    float correction = 1;
    if (!args.is_null(2)) {
        TRY_ASSIGN(const Scalar s, scalar(args, 2));
        correction = s.as_float();
    }
    return variance(args, plan, correction);
}

Result<void> run_cumsum(Arguments& args) {  // self, dim, dtype, out
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, self->shape()));
    TRY(want_computable(args, 3, *out));
    TRY(check_dtype(args, 2, *out));
    const Strides in_strides = byte_strides(*self);
    const Strides out_strides = byte_strides(*out);
    const std::int32_t count = self->rank == 0 ? 1 : self->sizes[dim];
    SliceWalk walk(self->shape(), self->rank == 0 ? 0 : std::uint32_t{1} << dim);
    walk.add(self->data, in_strides);
    walk.add(out->data, out_strides);
    const auto accumulate = [&]<typename T>(T total) {
        for (std::int32_t k = 0; k < count; ++k) {
            const T element = load_one<T>(self->type, walk.from(0) + k * in_strides[dim]);
            if constexpr (sizeof(T) == sizeof(float))
                total += element;
            else
                total = wrapping_add(total, element);
            store_one(total, out->type, walk.to(1) + k * out_strides[dim]);
        }
    };
    const bool is_float = domain_of(out->type) == Domain::Float;
    while (count != 0 && walk.next()) is_float ? accumulate(0.0F) : accumulate(std::int64_t{0});
    return {};
}

}  // namespace talpa::runtime::operators
