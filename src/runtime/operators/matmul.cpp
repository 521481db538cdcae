// Matrix products: mm, bmm, addmm, linear. Products are summed in the order of the inner dimension, in float32 or
// modulo 2^64.
#include "runtime/operators/call.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

// A matrix as rows and columns of steps in bytes; a batch of them may stand behind one another.
struct Matrix {
    std::uint8_t* data = nullptr;
    ScalarType type = ScalarType::Float32;
    std::int64_t rows = 0, columns = 0, row_step = 0, column_step = 0;
};
Matrix matrix_of(const Tensor& t) {  // of the last two dimensions
    const Strides s = byte_strides(t);
    const std::size_t r = t.rank - 2U;
    return {t.data, t.type, t.sizes[r], t.sizes[r + 1], s[r], s[r + 1]};
}
Matrix transposed(const Matrix& m) {
    return {m.data, m.type, m.columns, m.rows, m.column_step, m.row_step};
}

template <typename T>
T multiply_add(T sum, T a, T b) {
    if constexpr (sizeof(T) == sizeof(float))
        return sum + a * b;
    else
        return static_cast<T>(static_cast<std::uint64_t>(sum) +
                              static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

// out[i][j] = finish(Σ a[i][k]·b[k][j], i, j); the columns of a row are worked on 64 at a time, so that b is read along
// its rows.
template <typename T, typename Finish>
void multiply(const Matrix& a, const Matrix& b, const Matrix& out, Finish&& finish) {
    Chunk sums, row;
    for (std::int64_t i = 0; i < a.rows; ++i)
        for (std::int64_t j = 0; j < b.columns; j += static_cast<std::int64_t>(kChunk)) {
            const auto n = static_cast<std::size_t>(
                b.columns - j < static_cast<std::int64_t>(kChunk) ? b.columns - j : static_cast<std::int64_t>(kChunk));
            T* const sum = elements<T>(sums);
            for (std::size_t c = 0; c < n; ++c) sum[c] = T{0};
            for (std::int64_t k = 0; k < a.columns; ++k) {
                const T factor = load_one<T>(a.type, a.data + i * a.row_step + k * a.column_step);
                load(kDomainOf<T>, b.type, b.data + k * b.row_step + j * b.column_step, b.column_step, n, row);
                if (n == kChunk)  // a constant count, which compilers turn into vectors
                    for (std::size_t c = 0; c < kChunk; ++c) sum[c] = multiply_add(sum[c], factor, elements<T>(row)[c]);
                else
                    for (std::size_t c = 0; c < n; ++c) sum[c] = multiply_add(sum[c], factor, elements<T>(row)[c]);
            }
            for (std::size_t c = 0; c < n; ++c) sum[c] = finish(sum[c], i, j + static_cast<std::int64_t>(c));
            store(kDomainOf<T>, sums, n, out.type, out.data + i * out.row_step + j * out.column_step, out.column_step);
        }
}
void multiply(const Matrix& a, const Matrix& b, const Matrix& out) {
    if (domain_of(out.type) == Domain::Float)
        multiply<float>(a, b, out, [](float sum, std::int64_t, std::int64_t) { return sum; });
    else
        multiply<std::int64_t>(a, b, out, [](std::int64_t sum, std::int64_t, std::int64_t) { return sum; });
}

Result<const Tensor*> matrix_tensor(const Arguments& args, std::size_t arg, std::size_t rank) {
    TRY_ASSIGN(const Tensor* const t, computable(args, arg));
    if (t->rank != rank)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} must have {} dimensions, has {}",
                          static_cast<unsigned>(arg), static_cast<unsigned>(rank), static_cast<unsigned>(t->rank));
    return t;
}
Result<void> want_inner(const Arguments& args, std::int64_t a, std::int64_t b) {
    if (a == b) return {};
    return args.error(ErrorCode::InvalidArgument, "{}: the inner dimensions differ: {} and {}", a, b);
}
Result<void> want_one_type(const Arguments& args, const Tensor& a, const Tensor& b, std::size_t b_arg,
                           const Tensor& out) {
    TRY(want_type(args, b_arg, b, a.type));
    return want_type(args, args.count() - 1, out, a.type);
}

}  // namespace

Result<void> run_mm(Arguments& args) {
    TRY_ASSIGN(const Tensor* const a, matrix_tensor(args, 0, 2));
    TRY_ASSIGN(const Tensor* const b, matrix_tensor(args, 1, 2));
    TRY(want_inner(args, a->sizes[1], b->sizes[0]));
    const std::int32_t sizes[] = {a->sizes[0], b->sizes[1]};
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 2, std::span<const std::int32_t>(sizes)));
    TRY(want_one_type(args, *a, *b, 1, *out));
    multiply(matrix_of(*a), matrix_of(*b), matrix_of(*out));
    return {};
}

Result<void> run_bmm(Arguments& args) {
    TRY_ASSIGN(const Tensor* const a, matrix_tensor(args, 0, 3));
    TRY_ASSIGN(const Tensor* const b, matrix_tensor(args, 1, 3));
    TRY(want_inner(args, a->sizes[2], b->sizes[1]));
    if (a->sizes[0] != b->sizes[0])
        return args.error(ErrorCode::InvalidArgument, "{}: the batches differ: {} and {}", a->sizes[0], b->sizes[0]);
    const std::int32_t sizes[] = {a->sizes[0], a->sizes[1], b->sizes[2]};
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 2, std::span<const std::int32_t>(sizes)));
    TRY(want_one_type(args, *a, *b, 1, *out));
    Matrix left = matrix_of(*a), right = matrix_of(*b), result = matrix_of(*out);
    for (std::int32_t n = 0; n < sizes[0]; ++n) {
        multiply(left, right, result);
        left.data = moved(left.data, byte_strides(*a)[0]);
        right.data = moved(right.data, byte_strides(*b)[0]);
        result.data = moved(result.data, byte_strides(*out)[0]);
    }
    return {};
}

Result<void> run_addmm(Arguments& args) {  // self, mat1, mat2, beta, alpha, out = beta·self + alpha·(mat1 × mat2)
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    TRY_ASSIGN(const Tensor* const a, matrix_tensor(args, 1, 2));
    TRY_ASSIGN(const Tensor* const b, matrix_tensor(args, 2, 2));
    TRY_ASSIGN(const Scalar beta, scalar(args, 3));
    TRY_ASSIGN(const Scalar alpha, scalar(args, 4));
    TRY(want_inner(args, a->sizes[1], b->sizes[0]));
    const std::int32_t sizes[] = {a->sizes[0], b->sizes[1]};
    TRY_ASSIGN(const Shape shape, broadcast(args, 0, std::span<const std::int32_t>(sizes), *self));
    if (shape.rank != 2 || shape.sizes[0] != sizes[0] || shape.sizes[1] != sizes[1])
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 does not broadcast to {} x {}", sizes[0],
                          sizes[1]);
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 5, shape));
    TRY(want_one_type(args, *a, *b, 2, *out));
    TRY(want_type(args, 0, *self, a->type));
    const Strides steps = broadcast_strides(*self, shape.span());
    const auto run = [&]<typename T>(T scale, T self_scale) {
        multiply<T>(matrix_of(*a), matrix_of(*b), matrix_of(*out), [&](T sum, std::int64_t i, std::int64_t j) {
            const T addend = load_one<T>(self->type, self->data + i * steps[0] + j * steps[1]);
            return multiply_add(multiply_add(T{0}, sum, scale), addend, self_scale);
        });
    };
    if (domain_of(out->type) == Domain::Float) {
        run(alpha.as_float(), beta.as_float());
    } else {
        TRY_ASSIGN(const auto scale, integer_scalar(args, 4, alpha));
        TRY_ASSIGN(const auto self_scale, integer_scalar(args, 3, beta));
        run(scale, self_scale);
    }
    return {};
}

Result<void> run_linear(Arguments& args) {  // input [… in], weight [out, in], bias [out]?, out
    TRY_ASSIGN(const Tensor* const input, float_tensor(args, 0));
    TRY_ASSIGN(const Tensor* const weight, matrix_tensor(args, 1, 2));
    TRY(want_type(args, 1, *weight, ScalarType::Float32));
    const Tensor* bias = nullptr;
    if (!args.is_null(2)) {
        TRY_ASSIGN(bias, float_tensor(args, 2));
        if (bias->rank != 1 || bias->sizes[0] != weight->sizes[0])
            return args.error(ErrorCode::InvalidArgument, "{}: argument 2 must have {} elements", weight->sizes[0]);
    }
    if (input->rank == 0) return args.error(ErrorCode::InvalidArgument, "{}: argument 0 has no dimensions");
    TRY(want_inner(args, input->sizes[input->rank - 1U], weight->sizes[1]));
    Shape shape = input->shape();
    shape.sizes[shape.rank - 1U] = weight->sizes[0];
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, 3, shape));
    TRY(want_type(args, 3, *out, ScalarType::Float32));
    if (!lies_contiguous(*input) || !lies_contiguous(*out))
        return args.error(ErrorCode::NotSupported, "{}: needs contiguous tensors");
    constexpr std::int64_t kElement = sizeof(float);
    std::int64_t rows = 1;
    for (std::size_t d = 0; d + 1 < input->rank; ++d) rows *= input->sizes[d];
    const std::int64_t in = weight->sizes[1], outs = weight->sizes[0];
    const Matrix a{input->data, ScalarType::Float32, rows, in, in * kElement, kElement};
    const Matrix result{out->data, ScalarType::Float32, rows, outs, outs * kElement, kElement};
    multiply<float>(a, transposed(matrix_of(*weight)), result, [&](float sum, std::int64_t, std::int64_t j) {
        return bias == nullptr ? sum : sum + bias->as<float>()[j];
    });
    return {};
}

}  // namespace talpa::runtime::operators
