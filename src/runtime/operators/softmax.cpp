// _softmax and _log_softmax: m = max; e = exp(x - m); the sum of e in index order in float32; e / sum. The exponential
// is our own, so that host and M33 give the same bits. (pte-format, section 6.3)
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/operators/functions.h"
#include "runtime/operators/slices.h"

namespace talpa::runtime::operators {
namespace {

// e^x for x <= 0, to one unit in the last place: e^x = 2^n · e^r with |r| <= ln 2 / 2, ln 2 in two parts so that r is
// exact, and the Taylor series to r^7/7! (its remainder is below 2^-27 there).
float exp_of_negative(float x) {
    if (x != x) return x;
    if (x < -87.0F) return x < -104.0F ? 0.0F : exp_of_negative(x + 32.0F) * 1.26641655e-14F;  // denormals: e^-32
    const float scaled = x * 1.44269504F;
    const int n = static_cast<int>(scaled - 0.5F);
    const auto whole = static_cast<float>(n);
    const float r = (x - whole * 0.693359375F) - whole * -2.12194440e-4F;
    float p = 1.98412698e-4F;
    p = p * r + 1.38888889e-3F;
    p = p * r + 8.33333333e-3F;
    p = p * r + 4.16666667e-2F;
    p = p * r + 1.66666667e-1F;
    p = p * r + 0.5F;
    p = p * r * r + r + 1.0F;
    return p * std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
}

// Calls slice(in, out, in_step, out_step, n) for every slice along the dimension.
template <typename Slice>
Result<void> along_dimension(Arguments& args, Slice&& slice) {
    TRY_ASSIGN(const Tensor* const self, float_tensor(args, 0));
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY_ASSIGN(const bool half_to_float, args.boolean(2));
    if (half_to_float)
        return args.error(ErrorCode::NotSupported, "{}: half_to_float is for float16, which is not supported");
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, self->shape()));
    TRY(want_type(args, 3, *out, ScalarType::Float32));
    if (self->numel() == 0) return {};
    const Strides from = byte_strides(*self);
    const Strides to = byte_strides(*out);
    SliceWalk walk(self->shape(), self->rank == 0 ? 0 : std::uint32_t{1} << dim);
    walk.add(self->data, from);
    walk.add(out->data, to);
    const std::int32_t n = self->rank == 0 ? 1 : self->sizes[dim];
    constexpr std::int64_t kElement = sizeof(float);
    while (walk.next())
        slice(reinterpret_cast<const float*>(walk.from(0)), reinterpret_cast<float*>(walk.to(1)), from[dim] / kElement,
              to[dim] / kElement, n);
    return {};
}

float largest(const float* in, std::int64_t step, std::int32_t n) {
    float m = -std::numeric_limits<float>::infinity();
    for (std::int32_t k = 0; k < n; ++k)
        if (in[k * step] > m || in[k * step] != in[k * step]) m = in[k * step];
    return m;
}

}  // namespace

Result<void> run_softmax(Arguments& args) {
    return along_dimension(
        args, [](const float* in, float* out, std::int64_t in_step, std::int64_t out_step, std::int32_t n) {
            const float m = largest(in, in_step, n);
            float sum = 0;
            for (std::int32_t k = 0; k < n; ++k) {
                const float e = exp_of_negative(in[k * in_step] - m);
                out[k * out_step] = e;
                sum += e;
            }
            for (std::int32_t k = 0; k < n; ++k) out[k * out_step] /= sum;
        });
}

Result<void> run_log_softmax(Arguments& args) {
    return along_dimension(
        args, [](const float* in, float* out, std::int64_t in_step, std::int64_t out_step, std::int32_t n) {
            const float m = largest(in, in_step, n);
            float sum = 0;
            for (std::int32_t k = 0; k < n; ++k) sum += exp_of_negative(in[k * in_step] - m);
            const float log_sum = std::log(sum);
            for (std::int32_t k = 0; k < n; ++k) out[k * out_step] = in[k * in_step] - m - log_sum;
        });
}

}  // namespace talpa::runtime::operators
