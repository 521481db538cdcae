// Elementwise operators with constants: clamps, the activations, where and masked_fill. (pte-format, section 6.3)
#include <cmath>
#include <limits>

#include "runtime/operators/elementwise.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

Result<void> run_one(Arguments& args, const Tensor* self, ScalarType type, Kernel kernel, Batch& batch) {
    const Input input{.tensor = self, .arg = 0, .number = {}};
    return run_elementwise(
        args, {.inputs = {&input, 1}, .out_arg = args.count() - 1, .compute = type, .result = type, .kernel = kernel},
        batch);
}

// min(max(x, low), high): a NaN stays.
template <typename T>
void clamp(Batch& b) {
    T low = b.i[0];
    T high = b.i[1];
    if constexpr (sizeof(T) == sizeof(float)) low = b.f[0], high = b.f[1];
    const T* x = elements<T>(b.in[0]);
    for (std::size_t k = 0; k < b.n; ++k) {
        const T lifted = x[k] < low ? low : x[k];
        elements<T>(b.out)[k] = high < lifted ? high : lifted;
    }
}

// Bounds at `arg`; Null is none.
Result<void> read_bound(const Arguments& args, std::size_t arg, bool is_low, ScalarType& type, Batch& batch) {
    const std::size_t k = is_low ? 0 : 1;
    batch.f[k] = is_low ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    batch.i[k] = is_low ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
    if (args.is_null(arg)) return {};
    TRY_ASSIGN(const Scalar bound, scalar(args, arg));
    type = promote_with(type, bound);
    batch.f[k] = bound.as_float();
    batch.i[k] = value_of<std::int64_t>(bound);
    return {};
}

// An activation of float32 whose constants stand in batch.f.
Result<void> run_float_activation(Arguments& args, Kernel kernel, Batch& batch) {
    TRY_ASSIGN(const Tensor* const self, float_tensor(args, 0));
    return run_one(args, self, ScalarType::Float32, kernel, batch);
}
template <typename Function>
void map_with(Batch& b) {
    for (std::size_t k = 0; k < b.n; ++k) b.out.f[k] = Function{}(b.in[0].f[k], b);
}
template <typename Function>
Result<void> run_mapped(Arguments& args, Batch& batch, Function) {
    return run_float_activation(args, map_with<Function>, batch);
}

float between(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

template <typename T>
void select(Batch& b) {
    for (std::size_t k = 0; k < b.n; ++k)
        elements<T>(b.out)[k] = b.in[0].i[k] != 0 ? elements<T>(b.in[1])[k] : elements<T>(b.in[2])[k];
}

Result<void> run_select(Arguments& args, std::span<const Input> inputs, ScalarType type) {
    Batch batch;
    const Kernel kernel = domain_of(type) == Domain::Float ? select<float> : select<std::int64_t>;
    return run_elementwise(args,
                           {.inputs = inputs,
                            .out_arg = args.count() - 1,
                            .compute = type,
                            .result = type,
                            .kernel = kernel,
                            .first_input_is_bool = true},
                           batch);
}

Result<const Tensor*> mask(const Arguments& args, std::size_t arg) {
    TRY_ASSIGN(const Tensor* const t, args.tensor(arg));
    if (t->type != ScalarType::Bool && t->type != ScalarType::UInt8)
        return args.error(ErrorCode::InvalidType, "{}: argument {} is a mask and must be bool or uint8, is {}",
                          static_cast<unsigned>(arg), scalar_name(t->type));
    return t;
}

}  // namespace

Result<void> run_clamp(Arguments& args) {  // clamp: either bound may be Null; hardtanh has both
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    ScalarType type = self->type;
    Batch batch;
    TRY(read_bound(args, 1, true, type, batch));
    TRY(read_bound(args, 2, false, type, batch));
    return run_one(args, self, type, domain_of(type) == Domain::Float ? clamp<float> : clamp<std::int64_t>, batch);
}

Result<void> run_clamp_tensor(Arguments& args) {  // bounds are tensors that broadcast; either may be Null
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    ScalarType type = self->type;
    std::array<Input, 3> inputs{Input{self, 0, {}}, Input{}, Input{}};
    for (std::size_t arg = 1; arg <= 2; ++arg) {
        if (args.is_null(arg)) {
            inputs[arg].number = Scalar{Value::Kind::Int, arg == 1 ? INT64_MIN : INT64_MAX, 0};
        } else {
            TRY_ASSIGN(const Tensor* const bound, computable(args, arg));
            inputs[arg] = {bound, arg, {}};
            type = promote(type, bound->type);
        }
    }
    if (type == ScalarType::Float32)
        for (std::size_t arg = 1; arg <= 2; ++arg)
            inputs[arg].number =
                Scalar{Value::Kind::Double, 0,
                       arg == 1 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()};
    const Kernel floats = [](Batch& b) {  // a NaN on any side is the result
        for (std::size_t k = 0; k < b.n; ++k) {
            const float x = b.in[0].f[k], low = b.in[1].f[k], high = b.in[2].f[k];
            const float lifted = x != x || x > low ? x : low;
            b.out.f[k] = lifted != lifted || lifted < high ? lifted : high;
        }
    };
    const Kernel integers = [](Batch& b) {
        for (std::size_t k = 0; k < b.n; ++k) {
            const std::int64_t lifted = b.in[0].i[k] < b.in[1].i[k] ? b.in[1].i[k] : b.in[0].i[k];
            b.out.i[k] = b.in[2].i[k] < lifted ? b.in[2].i[k] : lifted;
        }
    };
    Batch batch;
    return run_elementwise(args,
                           {.inputs = inputs,
                            .out_arg = 3,
                            .compute = type,
                            .result = type,
                            .kernel = domain_of(type) == Domain::Float ? floats : integers},
                           batch);
}

Result<void> run_leaky_relu(Arguments& args) {
    TRY_ASSIGN(const Scalar slope, scalar(args, 1));
    Batch batch;
    batch.f[0] = slope.as_float();
    return run_mapped(args, batch, [](float x, const Batch& b) { return x > 0 ? x : x * b.f[0]; });
}

Result<void> run_elu(Arguments& args) {
    Batch batch;
    for (std::size_t k = 0; k < 3; ++k) {  // alpha, scale, input_scale
        TRY_ASSIGN(const Scalar constant, scalar(args, 1 + k));
        batch.f[k] = constant.as_float();
    }
    return run_mapped(args, batch, [](float x, const Batch& b) {
        return x <= 0 ? std::expm1(x * b.f[2]) * (b.f[0] * b.f[1]) : x * b.f[1];
    });
}

Result<void> run_gelu(Arguments& args) {
    TRY_ASSIGN(const auto approximate, text(args, 1, "none"));
    Batch batch;
    if (approximate == "none")
        return run_mapped(args, batch, [](float x, const Batch&) {
            return x * 0.5F * (1.0F + std::erf(x * 0.70710678118654752440F));
        });
    if (approximate == "tanh")
        return run_mapped(args, batch, [](float x, const Batch&) {
            const float inner = 0.79788456080286535588F * (x + 0.044715F * (x * x * x));
            return 0.5F * x * (1.0F + std::tanh(inner));
        });
    return args.error(ErrorCode::InvalidArgument, "{}: approximation \"{}\" is unknown, there are none and tanh",
                      approximate);
}

Result<void> run_hardsigmoid(Arguments& args) {
    Batch batch;
    return run_mapped(args, batch, [](float x, const Batch&) { return between(x + 3.0F, 0.0F, 6.0F) / 6.0F; });
}
Result<void> run_hardswish(Arguments& args) {
    Batch batch;
    return run_mapped(args, batch, [](float x, const Batch&) { return x * between(x + 3.0F, 0.0F, 6.0F) / 6.0F; });
}

Result<void> run_logit(Arguments& args) {
    Batch batch;
    batch.f[0] = 0.0F;
    batch.f[1] = 1.0F;
    if (!args.is_null(1)) {
        TRY_ASSIGN(const Scalar eps, scalar(args, 1));
        batch.f[0] = eps.as_float();
        batch.f[1] = 1.0F - eps.as_float();
        return run_mapped(args, batch, [](float x, const Batch& b) {
            const float z = between(x, b.f[0], b.f[1]);
            return std::log(z / (1.0F - z));
        });
    }
    return run_mapped(args, batch, [](float x, const Batch&) { return std::log(x / (1.0F - x)); });
}

Result<void> run_where(Arguments& args) {
    TRY_ASSIGN(const Tensor* const condition, mask(args, 0));
    TRY_ASSIGN(const Tensor* const a, computable(args, 1));
    TRY_ASSIGN(const Tensor* const b, computable(args, 2));
    const std::array inputs{Input{condition, 0, {}}, Input{a, 1, {}}, Input{b, 2, {}}};
    return run_select(args, inputs, promote(a->type, b->type));
}

Result<void> run_masked_fill_scalar(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const Tensor* const where, mask(args, 1));
    TRY_ASSIGN(const Scalar value, scalar(args, 2));
    if (promote_with(self->type, value) != self->type)
        return args.error(ErrorCode::InvalidType, "{}: argument 2 does not go into a tensor of type {}",
                          scalar_name(self->type));
    const std::array inputs{Input{where, 1, {}}, Input{nullptr, 2, value}, Input{self, 0, {}}};
    return run_select(args, inputs, self->type);
}

}  // namespace talpa::runtime::operators
