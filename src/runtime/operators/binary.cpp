// Elementwise operators of two tensors, or of a tensor and a Scalar, with broadcasting. The arithmetic is done in the
// promoted type: float32, or 64-bit integers that wrap to it. (pte-format, section 6.3)
#include <cmath>

#include "runtime/operators/elementwise.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

template <typename T, typename Function>
void combine(Batch& batch) {
    const T* a = elements<T>(batch.in[0]);
    const T* b = elements<T>(batch.in[1]);
    for (std::size_t k = 0; k < batch.n; ++k) elements<T>(batch.out)[k] = Function{}(a[k], b[k], batch);
}
template <typename T, typename Function>
void compare(Batch& batch) {
    const T* a = elements<T>(batch.in[0]);
    const T* b = elements<T>(batch.in[1]);
    for (std::size_t k = 0; k < batch.n; ++k) batch.out.i[k] = Function{}(a[k], b[k]) ? 1 : 0;
}

// 64-bit arithmetic modulo 2^64.
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_sub(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
// Quotient and remainder of a division that may be by 0 (noted) or overflow (wraps).
std::int64_t quotient(std::int64_t a, std::int64_t b, Batch& batch) {
    if (b == 0) {
        batch.divided_by_zero = true;
        return 0;
    }
    return b == -1 ? wrapping_sub(0, a) : a / b;
}
std::int64_t remainder_of(std::int64_t a, std::int64_t b, Batch& batch) {
    if (b == 0) {
        batch.divided_by_zero = true;
        return 0;
    }
    return b == -1 ? 0 : a % b;
}
std::int64_t floored_quotient(std::int64_t a, std::int64_t b, Batch& batch) {
    const std::int64_t q = quotient(a, b, batch);
    return b != 0 && remainder_of(a, b, batch) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// Python's //: the floor of the exact quotient, worked out from the remainder so that rounding cannot lift it past a
// multiple.
float floored_quotient(float a, float b) {
    if (b == 0) return a / b;
    const float mod = std::fmod(a, b);
    float div = (a - mod) / b;
    if (mod != 0 && (b < 0) != (mod < 0)) div -= 1.0F;
    if (div == 0) return std::copysign(0.0F, a / b);
    const float floor = std::floor(div);
    return div - floor > 0.5F ? floor + 1.0F : floor;
}
float floored_remainder(float a, float b) {
    const float mod = std::fmod(a, b);
    return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
    std::int64_t result = 1;
    for (; exponent != 0; exponent >>= 1, base = wrapping_mul(base, base))
        if ((exponent & 1) != 0) result = wrapping_mul(result, base);
    return result;
}

struct Kernels {
    Kernel floats;
    Kernel integers;
};
template <typename FloatFunction, typename IntegerFunction>
constexpr Kernels arithmetic(FloatFunction, IntegerFunction) {
    return {combine<float, FloatFunction>, combine<std::int64_t, IntegerFunction>};
}
template <typename Function>
constexpr Kernels comparison(Function) {
    return {compare<float, Function>, compare<std::int64_t, Function>};
}

// The two inputs of a call and the type they promote to.
struct Operands {
    std::array<Input, 2> inputs;
    ScalarType type = ScalarType::Float32;
};

Result<Operands> two_tensors(const Arguments& args) {
    TRY_ASSIGN(const Tensor* const a, computable(args, 0));
    TRY_ASSIGN(const Tensor* const b, computable(args, 1));
    return Operands{{Input{a, 0, {}}, Input{b, 1, {}}}, promote(a->type, b->type)};
}
Result<Operands> tensor_and_scalar(const Arguments& args) {
    TRY_ASSIGN(const Tensor* const a, computable(args, 0));
    TRY_ASSIGN(const Scalar b, scalar(args, 1));
    return Operands{{Input{a, 0, {}}, Input{nullptr, 1, b}}, promote_with(a->type, b)};
}
Result<Operands> scalar_and_tensor(const Arguments& args) {
    TRY_ASSIGN(const Scalar a, scalar(args, 0));
    TRY_ASSIGN(const Tensor* const b, computable(args, 1));
    return Operands{{Input{nullptr, 0, a}, Input{b, 1, {}}}, promote_with(b->type, a)};
}

Result<void> run(Arguments& args, const Operands& operands, ScalarType compute, ScalarType result,
                 const Kernels& kernels, Batch& batch) {
    const Kernel kernel = domain_of(compute) == Domain::Float ? kernels.floats : kernels.integers;
    return run_elementwise(args,
                           {.inputs = operands.inputs,
                            .out_arg = args.count() - 1,
                            .compute = compute,
                            .result = result,
                            .kernel = kernel},
                           batch);
}
Result<void> run_arithmetic(Arguments& args, Result<Operands> (*read)(const Arguments&), const Kernels& kernels) {
    TRY_ASSIGN(const Operands operands, read(args));
    Batch batch;
    return run(args, operands, operands.type, operands.type, kernels, batch);
}
Result<void> run_in_floats(Arguments& args, Result<Operands> (*read)(const Arguments&), Kernel kernel) {
    TRY_ASSIGN(const Operands operands, read(args));
    Batch batch;
    return run(args, operands, ScalarType::Float32, ScalarType::Float32, {kernel, kernel}, batch);
}
Result<void> run_comparison(Arguments& args, Result<Operands> (*read)(const Arguments&), const Kernels& kernels) {
    TRY_ASSIGN(const Operands operands, read(args));
    Batch batch;
    return run(args, operands, operands.type, ScalarType::Bool, kernels, batch);
}

constexpr Kernels kScaledSum =
    arithmetic([](float a, float b, Batch& c) { return a + c.f[0] * b; },
               [](std::int64_t a, std::int64_t b, Batch& c) { return wrapping_add(a, wrapping_mul(c.i[0], b)); });
constexpr Kernels kScaledDifference =
    arithmetic([](float a, float b, Batch& c) { return a - c.f[0] * b; },
               [](std::int64_t a, std::int64_t b, Batch& c) { return wrapping_sub(a, wrapping_mul(c.i[0], b)); });
constexpr Kernels kReverseDifference =
    arithmetic([](float a, float b, Batch& c) { return b - c.f[0] * a; },
               [](std::int64_t a, std::int64_t b, Batch& c) { return wrapping_sub(b, wrapping_mul(c.i[0], a)); });

// add, sub, rsub: argument 2 is alpha.
Result<void> run_scaled(Arguments& args, Result<Operands> (*read)(const Arguments&), const Kernels& kernels) {
    TRY_ASSIGN(const Operands operands, read(args));
    TRY_ASSIGN(const Scalar alpha, scalar(args, 2));
    Batch batch;
    batch.f[0] = alpha.as_float();
    if (domain_of(operands.type) == Domain::Integer) {
        TRY_ASSIGN(batch.i[0], integer_scalar(args, 2, alpha));
    }
    return run(args, operands, operands.type, operands.type, kernels, batch);
}

constexpr Kernels kProduct = arithmetic([](float a, float b, Batch&) { return a * b; },
                                        [](std::int64_t a, std::int64_t b, Batch&) { return wrapping_mul(a, b); });
constexpr auto kQuotient = [](float a, float b, Batch&) { return a / b; };
constexpr Kernels kTruncatedQuotient =
    arithmetic([](float a, float b, Batch&) { return std::trunc(a / b); },
               [](std::int64_t a, std::int64_t b, Batch& c) { return quotient(a, b, c); });
constexpr Kernels kFlooredQuotient =
    arithmetic([](float a, float b, Batch&) { return floored_quotient(a, b); },
               [](std::int64_t a, std::int64_t b, Batch& c) { return floored_quotient(a, b, c); });
constexpr Kernels kFmod = arithmetic([](float a, float b, Batch&) { return std::fmod(a, b); },
                                     [](std::int64_t a, std::int64_t b, Batch& c) { return remainder_of(a, b, c); });
constexpr Kernels kRemainder = arithmetic([](float a, float b, Batch&) { return floored_remainder(a, b); },
                                          [](std::int64_t a, std::int64_t b, Batch& c) {
                                              const std::int64_t r = remainder_of(a, b, c);
                                              return r != 0 && (r < 0) != (b < 0) ? r + b : r;
                                          });
constexpr Kernels kPower = arithmetic([](float a, float b, Batch&) { return std::pow(a, b); },
                                      [](std::int64_t a, std::int64_t b, Batch&) { return integer_power(a, b); });
// A NaN on either side is the result; of equals (0 and -0) the first.
constexpr Kernels kMinimum = arithmetic([](float a, float b, Batch&) { return b != b || b < a ? b : a; },
                                        [](std::int64_t a, std::int64_t b, Batch&) { return a < b ? a : b; });
constexpr Kernels kMaximum = arithmetic([](float a, float b, Batch&) { return b != b || b > a ? b : a; },
                                        [](std::int64_t a, std::int64_t b, Batch&) { return a > b ? a : b; });

constexpr Kernels kEq = comparison([](auto a, auto b) { return a == b; });
constexpr Kernels kNe = comparison([](auto a, auto b) { return a != b; });
constexpr Kernels kLt = comparison([](auto a, auto b) { return a < b; });
constexpr Kernels kLe = comparison([](auto a, auto b) { return a <= b; });
constexpr Kernels kGt = comparison([](auto a, auto b) { return a > b; });
constexpr Kernels kGe = comparison([](auto a, auto b) { return a >= b; });
constexpr Kernels kLogicalAnd = comparison([](auto a, auto b) { return a != 0 && b != 0; });
constexpr Kernels kLogicalOr = comparison([](auto a, auto b) { return a != 0 || b != 0; });
constexpr Kernels kLogicalXor = comparison([](auto a, auto b) { return (a != 0) != (b != 0); });

Result<void> run_bits(Arguments& args, Result<Operands> (*read)(const Arguments&), Kernel kernel) {
    TRY_ASSIGN(const Operands operands, read(args));
    if (operands.type == ScalarType::Float32)
        return args.error(ErrorCode::InvalidType, "{}: works on bits and takes no float32 operand");
    Batch batch;
    return run(args, operands, operands.type, operands.type, {kernel, kernel}, batch);
}
constexpr Kernel kAnd = combine<std::int64_t, decltype([](std::int64_t a, std::int64_t b, Batch&) { return a & b; })>;
constexpr Kernel kOr = combine<std::int64_t, decltype([](std::int64_t a, std::int64_t b, Batch&) { return a | b; })>;
constexpr Kernel kXor = combine<std::int64_t, decltype([](std::int64_t a, std::int64_t b, Batch&) { return a ^ b; })>;

// div with a rounding mode: argument 2 is Null, "trunc" or "floor".
Result<void> run_div_rounded(Arguments& args, Result<Operands> (*read)(const Arguments&)) {
    TRY_ASSIGN(const auto mode, text(args, 2, ""));
    if (mode.empty()) return run_in_floats(args, read, combine<float, decltype(kQuotient)>);
    if (mode == "trunc") return run_arithmetic(args, read, kTruncatedQuotient);
    if (mode == "floor") return run_arithmetic(args, read, kFlooredQuotient);
    return args.error(ErrorCode::InvalidArgument, "{}: rounding mode \"{}\" is unknown, there are trunc and floor",
                      mode);
}

// Integers to a negative Scalar power are refused as in PyTorch.
Result<void> run_power(Arguments& args, Result<Operands> (*read)(const Arguments&)) {
    TRY_ASSIGN(const Operands operands, read(args));
    if (operands.inputs[1].tensor == nullptr && operands.type != ScalarType::Float32 && operands.inputs[1].number.i < 0)
        return args.error(ErrorCode::InvalidArgument, "{}: integers cannot be raised to the negative power {}",
                          operands.inputs[1].number.i);
    Batch batch;
    return run(args, operands, operands.type, operands.type, kPower, batch);
}

}  // namespace

Result<void> run_add(Arguments& args) {
    return run_scaled(args, two_tensors, kScaledSum);
}
Result<void> run_add_scalar(Arguments& args) {
    return run_scaled(args, tensor_and_scalar, kScaledSum);
}
Result<void> run_sub(Arguments& args) {
    return run_scaled(args, two_tensors, kScaledDifference);
}
Result<void> run_sub_scalar(Arguments& args) {
    return run_scaled(args, tensor_and_scalar, kScaledDifference);
}
Result<void> run_rsub_scalar(Arguments& args) {
    return run_scaled(args, tensor_and_scalar, kReverseDifference);
}
Result<void> run_div_mode(Arguments& args) {
    return run_div_rounded(args, two_tensors);
}
Result<void> run_div_scalar_mode(Arguments& args) {
    return run_div_rounded(args, tensor_and_scalar);
}
Result<void> run_floor_divide(Arguments& args) {
    return run_arithmetic(args, two_tensors, kFlooredQuotient);
}
Result<void> run_pow(Arguments& args) {
    return run_power(args, two_tensors);
}
Result<void> run_pow_tensor_scalar(Arguments& args) {
    return run_power(args, tensor_and_scalar);
}
Result<void> run_pow_scalar(Arguments& args) {
    return run_power(args, scalar_and_tensor);
}
Result<void> run_minimum(Arguments& args) {
    return run_arithmetic(args, two_tensors, kMinimum);
}
Result<void> run_maximum(Arguments& args) {
    return run_arithmetic(args, two_tensors, kMaximum);
}
Result<void> run_logical_and(Arguments& args) {
    return run_comparison(args, two_tensors, kLogicalAnd);
}
Result<void> run_logical_or(Arguments& args) {
    return run_comparison(args, two_tensors, kLogicalOr);
}
Result<void> run_logical_xor(Arguments& args) {
    return run_comparison(args, two_tensors, kLogicalXor);
}
Result<void> run_atan2(Arguments& args) {
    return run_in_floats(args, two_tensors,
                         combine<float, decltype([](float a, float b, Batch&) { return std::atan2(a, b); })>);
}

#define TENSOR_AND_SCALAR(name, how, kernel)            \
    Result<void> run_##name(Arguments& args) {          \
        return how(args, two_tensors, kernel);          \
    }                                                   \
    Result<void> run_##name##_scalar(Arguments& args) { \
        return how(args, tensor_and_scalar, kernel);    \
    }

TENSOR_AND_SCALAR(mul, run_arithmetic, kProduct)
TENSOR_AND_SCALAR(div, run_in_floats, (combine<float, decltype(kQuotient)>))
TENSOR_AND_SCALAR(fmod, run_arithmetic, kFmod)
TENSOR_AND_SCALAR(remainder, run_arithmetic, kRemainder)
TENSOR_AND_SCALAR(eq, run_comparison, kEq)
TENSOR_AND_SCALAR(ne, run_comparison, kNe)
TENSOR_AND_SCALAR(lt, run_comparison, kLt)
TENSOR_AND_SCALAR(le, run_comparison, kLe)
TENSOR_AND_SCALAR(gt, run_comparison, kGt)
TENSOR_AND_SCALAR(ge, run_comparison, kGe)
TENSOR_AND_SCALAR(bitwise_and, run_bits, kAnd)
TENSOR_AND_SCALAR(bitwise_or, run_bits, kOr)
TENSOR_AND_SCALAR(bitwise_xor, run_bits, kXor)
#undef TENSOR_AND_SCALAR

}  // namespace talpa::runtime::operators
