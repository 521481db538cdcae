// Layer, group and batch normalisation in float32. (pte-format, section 6.1)
#include <cmath>

#include "runtime/operators/call.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

// A tensor of `count` floats, or null for a Null argument.
Result<const float*> optional_vector(const Arguments& args, std::size_t arg, std::size_t count) {
    if (args.is_null(arg)) return nullptr;
    TRY_ASSIGN(const Tensor* const t, float_tensor(args, arg));
    if (t->numel() != count || !lies_contiguous(*t))
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} must be {} contiguous elements",
                          static_cast<unsigned>(arg), static_cast<unsigned long long>(count));
    return t->as<float>();
}

Result<Tensor*> contiguous_out(const Arguments& args, std::size_t arg, const Shape& shape) {
    TRY_ASSIGN(Tensor* const t, out_of_shape(args, arg, shape));
    TRY(want_type(args, arg, *t, ScalarType::Float32));
    if (!lies_contiguous(*t))
        return args.error(ErrorCode::NotSupported, "{}: argument {} must be contiguous", static_cast<unsigned>(arg));
    return t;
}
Result<const Tensor*> contiguous_input(const Arguments& args) {
    TRY_ASSIGN(const Tensor* const t, float_tensor(args, 0));
    if (!lies_contiguous(*t)) return args.error(ErrorCode::NotSupported, "{}: argument 0 must be contiguous");
    return t;
}

struct Moments {
    float mean, rstd;
};
Moments moments(const float* x, std::size_t count, float eps) {
    float sum = 0, squares = 0;
    for (std::size_t k = 0; k < count; ++k) sum += x[k];
    const float mean = sum / static_cast<float>(count);
    for (std::size_t k = 0; k < count; ++k) squares += (x[k] - mean) * (x[k] - mean);
    return {mean, 1.0F / std::sqrt(squares / static_cast<float>(count) + eps)};
}

Result<float> epsilon(const Arguments& args, std::size_t arg) {
    TRY_ASSIGN(const double eps, args.number(arg));
    return static_cast<float>(eps);
}

}  // namespace

// input, normalized_shape, weight?, bias?, eps, out, mean, rstd
Result<void> run_native_layer_norm(Arguments& args) {
    TRY_ASSIGN(const Tensor* const input, contiguous_input(args));
    TRY_ASSIGN(const IntList over, size_list(args, 1, false));
    bool fits = over.count >= 1 && over.count <= input->rank;
    const std::size_t outer = fits ? input->rank - over.count : 0;
    std::size_t count = 1, rows = 1;
    Shape statistics = input->shape();
    for (std::size_t d = 0; fits && d < input->rank; ++d) {
        if (d < outer) {
            rows *= static_cast<std::size_t>(input->sizes[d]);
            continue;
        }
        fits = over[d - outer] == input->sizes[d];
        count *= static_cast<std::size_t>(input->sizes[d]);
        statistics.sizes[d] = 1;
    }
    if (!fits) return args.error(ErrorCode::InvalidArgument, "{}: argument 1 is not the end of the input's shape");
    TRY_ASSIGN(const float* const weight, optional_vector(args, 2, count));
    TRY_ASSIGN(const float* const bias, optional_vector(args, 3, count));
    TRY_ASSIGN(const float eps, epsilon(args, 4));
    TRY_ASSIGN(Tensor* const out, contiguous_out(args, 5, input->shape()));
    TRY_ASSIGN(Tensor* const mean, contiguous_out(args, 6, statistics));
    TRY_ASSIGN(Tensor* const rstd, contiguous_out(args, 7, statistics));
    if (rows != 0 && count == 0)
        return args.error(ErrorCode::InvalidArgument, "{}: there is nothing to normalise over");
    for (std::size_t r = 0; r < rows; ++r) {
        const float* const x = input->as<float>() + r * count;
        float* const y = out->as<float>() + r * count;
        const Moments m = moments(x, count, eps);
        for (std::size_t k = 0; k < count; ++k)
            y[k] =
                (x[k] - m.mean) * m.rstd * (weight == nullptr ? 1.0F : weight[k]) + (bias == nullptr ? 0.0F : bias[k]);
        mean->as<float>()[r] = m.mean;
        rstd->as<float>()[r] = m.rstd;
    }
    return {};
}

// input, weight?, bias?, N, C, HxW, group, eps, out, mean, rstd
Result<void> run_native_group_norm(Arguments& args) {
    TRY_ASSIGN(const Tensor* const input, contiguous_input(args));
    std::array<std::int64_t, 4> given{};
    for (std::size_t k = 0; k < 4; ++k) {
        TRY_ASSIGN(given[k], args.integer(3 + k));
    }
    const auto [batches, channels, pixels, groups] = given;
    const bool shaped = input->rank >= 2 && batches == input->sizes[0] && channels == input->sizes[1] && pixels >= 1 &&
                        batches >= 1 && channels >= 1;
    if (!shaped || groups < 1 || channels % groups != 0 ||
        input->numel() / static_cast<std::size_t>(channels) / static_cast<std::size_t>(batches) !=
            static_cast<std::size_t>(pixels))
        return args.error(ErrorCode::InvalidArgument, "{}: arguments 3 to 6 do not describe argument 0");
    TRY_ASSIGN(const float* const weight, optional_vector(args, 1, static_cast<std::size_t>(channels)));
    TRY_ASSIGN(const float* const bias, optional_vector(args, 2, static_cast<std::size_t>(channels)));
    TRY_ASSIGN(const float eps, epsilon(args, 7));
    const std::int32_t statistics[] = {static_cast<std::int32_t>(batches), static_cast<std::int32_t>(groups)};
    TRY_ASSIGN(Tensor* const out, contiguous_out(args, 8, input->shape()));
    TRY_ASSIGN(Tensor* const mean, contiguous_out(args, 9, std::span<const std::int32_t>(statistics)));
    TRY_ASSIGN(Tensor* const rstd, contiguous_out(args, 10, std::span<const std::int32_t>(statistics)));
    const auto area = static_cast<std::size_t>(pixels);
    const auto group_channels = static_cast<std::size_t>(channels / groups);
    const std::size_t count = group_channels * area;
    for (std::size_t r = 0; r < static_cast<std::size_t>(batches * groups); ++r) {
        const float* const x = input->as<float>() + r * count;
        float* const y = out->as<float>() + r * count;
        const Moments m = moments(x, count, eps);
        for (std::size_t k = 0; k < count; ++k) {
            const std::size_t channel = r % static_cast<std::size_t>(groups) * group_channels + k / area;
            y[k] = (x[k] - m.mean) * m.rstd * (weight == nullptr ? 1.0F : weight[channel]) +
                   (bias == nullptr ? 0.0F : bias[channel]);
        }
        mean->as<float>()[r] = m.mean;
        rstd->as<float>()[r] = m.rstd;
    }
    return {};
}

// input, weight?, bias?, running_mean, running_var, momentum, eps, out, save_mean, save_invstd; the last two stay empty
Result<void> run_batch_norm_no_training(Arguments& args) {
    TRY_ASSIGN(const Tensor* const input, float_tensor(args, 0));
    if (input->rank < 2)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 needs 2 dimensions, has {}",
                          static_cast<unsigned>(input->rank));
    const auto channels = static_cast<std::size_t>(input->sizes[1]);
    TRY_ASSIGN(const float* const weight, optional_vector(args, 1, channels));
    TRY_ASSIGN(const float* const bias, optional_vector(args, 2, channels));
    TRY_ASSIGN(const float* const mean, optional_vector(args, 3, channels));
    TRY_ASSIGN(const float* const var, optional_vector(args, 4, channels));
    if ((mean == nullptr || var == nullptr) && channels != 0)
        return args.error(ErrorCode::InvalidArgument, "{}: arguments 3 and 4 must be given");
    TRY_ASSIGN(const float eps, epsilon(args, 6));
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 7, input->shape()));
    TRY(want_type(args, 7, *out, ScalarType::Float32));
    constexpr std::int32_t kNone[] = {0};
    TRY(out_of_shape(args, 8, std::span<const std::int32_t>(kNone)));
    TRY(out_of_shape(args, 9, std::span<const std::int32_t>(kNone)));
    if (input->numel() == 0) return {};
    Shape plane = input->shape();
    plane.sizes[1] = 1;
    const Strides from = byte_strides(*input), to = byte_strides(*out);
    for (std::size_t c = 0; c < channels; ++c) {
        const float scale = 1.0F / std::sqrt(var[c] + eps);
        const float w = weight == nullptr ? 1.0F : weight[c], b = bias == nullptr ? 0.0F : bias[c];
        Walk walk(plane.span(), row_major(plane.rank), kChunk);
        walk.add(input->data + static_cast<std::int64_t>(c) * from[1], from);
        walk.add(out->data + static_cast<std::int64_t>(c) * to[1], to);
        Chunk chunk;
        while (walk.next()) {
            load(Domain::Float, ScalarType::Float32, walk.from(0), walk.step(0), walk.count(), chunk);
            for (std::size_t k = 0; k < walk.count(); ++k) chunk.f[k] = (chunk.f[k] - mean[c]) * scale * w + b;
            store(Domain::Float, chunk, walk.count(), ScalarType::Float32, walk.to(1), walk.step(1));
        }
    }
    return {};
}

}  // namespace talpa::runtime::operators
