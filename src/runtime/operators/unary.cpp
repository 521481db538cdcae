// Elementwise operators of one tensor. Integers become float32 first where the function has no integer result, as
// PyTorch promotes them. (pte-format, section 6.3)
#include <cmath>

#include "runtime/operators/elementwise.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

// A function of float32 to float32; `Function` is a stateless lambda, so that it is inlined into the loop.
template <typename Function>
void map_floats(Batch& batch) {
    for (std::size_t k = 0; k < batch.n; ++k) batch.out.f[k] = Function{}(batch.in[0].f[k]);
}
template <typename Function>
void map_integers(Batch& batch) {
    for (std::size_t k = 0; k < batch.n; ++k) batch.out.i[k] = Function{}(batch.in[0].i[k]);
}
template <typename Function>
void test_floats(Batch& batch) {
    for (std::size_t k = 0; k < batch.n; ++k) batch.out.i[k] = Function{}(batch.in[0].f[k]) ? 1 : 0;
}

Result<void> run_unary(Arguments& args, ScalarType compute, ScalarType result, Kernel kernel, const Tensor* self) {
    Batch batch;
    const Input input{.tensor = self, .arg = 0, .number = {}};
    return run_elementwise(
        args,
        {.inputs = {&input, 1}, .out_arg = args.count() - 1, .compute = compute, .result = result, .kernel = kernel},
        batch);
}

template <typename Function>
Result<void> in_floats(Arguments& args, Function) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    return run_unary(args, ScalarType::Float32, ScalarType::Float32, map_floats<Function>, self);
}

// Float and integer versions; the result has the input's type.
template <typename FloatFunction, typename IntegerFunction>
Result<void> in_own_type(Arguments& args, FloatFunction, IntegerFunction) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    const bool is_float = domain_of(self->type) == Domain::Float;
    return run_unary(args, self->type, self->type, is_float ? map_floats<FloatFunction> : map_integers<IntegerFunction>,
                     self);
}

template <typename Function>
Result<void> to_bool(Arguments& args, Function) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    return run_unary(args, ScalarType::Float32, ScalarType::Bool, test_floats<Function>, self);
}

constexpr auto kSame = [](std::int64_t x) { return x; };

std::int64_t negated(std::int64_t x) {
    return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x));
}

}  // namespace

#define FLOAT_FUNCTION(name, expression)                            \
    Result<void> run_##name(Arguments& args) {                      \
        return in_floats(args, [](float x) { return expression; }); \
    }

FLOAT_FUNCTION(acos, std::acos(x))
FLOAT_FUNCTION(acosh, std::acosh(x))
FLOAT_FUNCTION(asin, std::asin(x))
FLOAT_FUNCTION(asinh, std::asinh(x))
FLOAT_FUNCTION(atan, std::atan(x))
FLOAT_FUNCTION(atanh, std::atanh(x))
FLOAT_FUNCTION(cos, std::cos(x))
FLOAT_FUNCTION(cosh, std::cosh(x))
FLOAT_FUNCTION(erf, std::erf(x))
FLOAT_FUNCTION(exp, std::exp(x))
FLOAT_FUNCTION(expm1, std::expm1(x))
FLOAT_FUNCTION(log, std::log(x))
FLOAT_FUNCTION(log10, std::log10(x))
FLOAT_FUNCTION(log1p, std::log1p(x))
FLOAT_FUNCTION(log2, std::log2(x))
FLOAT_FUNCTION(reciprocal, 1.0F / x)
FLOAT_FUNCTION(rsqrt, 1.0F / std::sqrt(x))
FLOAT_FUNCTION(sigmoid, 1.0F / (1.0F + std::exp(-x)))
FLOAT_FUNCTION(silu, x / (1.0F + std::exp(-x)))
FLOAT_FUNCTION(sin, std::sin(x))
FLOAT_FUNCTION(sinh, std::sinh(x))
FLOAT_FUNCTION(sqrt, std::sqrt(x))
FLOAT_FUNCTION(tan, std::tan(x))
FLOAT_FUNCTION(tanh, std::tanh(x))
#undef FLOAT_FUNCTION

Result<void> run_ceil(Arguments& args) {
    return in_own_type(args, [](float x) { return std::ceil(x); }, kSame);
}
Result<void> run_floor(Arguments& args) {
    return in_own_type(args, [](float x) { return std::floor(x); }, kSame);
}
Result<void> run_trunc(Arguments& args) {
    return in_own_type(args, [](float x) { return std::trunc(x); }, kSame);
}
Result<void> run_round(Arguments& args) {  // half to even, the default rounding mode
    return in_own_type(args, [](float x) { return std::nearbyint(x); }, kSame);
}
Result<void> run_abs(Arguments& args) {
    return in_own_type(
        args, [](float x) { return std::fabs(x); }, [](std::int64_t x) { return x < 0 ? negated(x) : x; });
}
Result<void> run_neg(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    if (self->type == ScalarType::Bool) return args.error(ErrorCode::InvalidType, "{}: a bool tensor has no negative");
    return in_own_type(args, [](float x) { return -x; }, [](std::int64_t x) { return negated(x); });
}
Result<void> run_sign(Arguments& args) {
    return in_own_type(
        args, [](float x) { return x > 0    ? 1.0F
                                   : x < 0  ? -1.0F
                                   : x != x ? x
                                            : 0.0F; },
        [](std::int64_t x) { return std::int64_t{x > 0} - std::int64_t{x < 0}; });
}
Result<void> run_relu(Arguments& args) {  // NaN stays NaN
    return in_own_type(
        args, [](float x) { return x < 0 ? 0.0F : x; }, [](std::int64_t x) { return x < 0 ? std::int64_t{0} : x; });
}
Result<void> run_isnan(Arguments& args) {
    return to_bool(args, [](float x) { return x != x; });
}
Result<void> run_isinf(Arguments& args) {
    return to_bool(args, [](float x) { return std::fabs(x) == __builtin_inff(); });
}

Result<void> run_logical_not(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    const bool is_float = domain_of(self->type) == Domain::Float;
    const Kernel kernel = is_float ? Kernel([](Batch& b) {
        for (std::size_t k = 0; k < b.n; ++k) b.out.i[k] = b.in[0].f[k] == 0 ? 1 : 0;
    })
                                   : Kernel([](Batch& b) {
                                         for (std::size_t k = 0; k < b.n; ++k) b.out.i[k] = b.in[0].i[k] == 0 ? 1 : 0;
                                     });
    return run_unary(args, self->type, ScalarType::Bool, kernel, self);
}

Result<void> run_bitwise_not(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    if (self->type == ScalarType::Float32)
        return args.error(ErrorCode::InvalidType, "{}: a float32 tensor has no bits to flip");
    const Kernel kernel = self->type == ScalarType::Bool
                              ? map_integers<decltype([](std::int64_t x) { return std::int64_t{x == 0}; })>
                              : map_integers<decltype([](std::int64_t x) { return ~x; })>;
    return run_unary(args, self->type, self->type, kernel, self);
}

}  // namespace talpa::runtime::operators
