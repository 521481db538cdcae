#include "runtime/operators/call.h"

#include <algorithm>

#include "base/core/checked_math.h"

namespace talpa::runtime::operators {
namespace {

constexpr std::array<std::uint8_t, kMaxRank> kRowMajor = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr const char* kTypes =
    "{}: argument {} is {}; supported are uint8, int8, int16, int32, int64, float32 and bool";

bool refers_to(const Arguments& args, std::size_t arg, const Tensor* t) {
    const Value& v = args.value(arg);
    if (v.kind == Value::Kind::Tensor) return v.tensor == t;
    if (v.kind != Value::Kind::TensorList && v.kind != Value::Kind::OptionalTensorList) return false;
    for (std::uint32_t item = 0; item < v.count; ++item) {
        const auto listed = args.list_tensor(arg, item);
        if (listed && *listed == t) return true;
    }
    return false;
}

// Strides multiply the sizes even where one of them is 0, so their product is bounded without it too.
bool is_countable(std::span<const std::int32_t> sizes) {
    std::int64_t product = sizeof(std::int64_t);
    for (const std::int32_t size : sizes) {
        const auto next = checked_mul<std::int64_t>(product, size > 0 ? size : 1);
        if (!next) return false;
        product = *next;
    }
    return true;
}

// Sizes of an input were read before its output is resized; both being one tensor would make them stale.
Result<Tensor*> resized(const Arguments& args, std::size_t arg, Tensor* t, const Shape& shape) {
    if (std::ranges::equal(t->shape(), shape.span())) return t;
    for (std::size_t other = 0; other < args.count(); ++other)
        if (other != arg && refers_to(args, other, t))
            return args.error(ErrorCode::InvalidArgument,
                              "{}: output argument {} is argument {} too and would get another shape",
                              static_cast<unsigned>(arg), static_cast<unsigned>(other));
    if (!is_countable(shape.span()))
        return args.error(ErrorCode::InvalidArgument, "{}: the sizes of output argument {} are too large",
                          static_cast<unsigned>(arg));
    TRY(args.resize(*t, shape.span()));
    return t;
}

}  // namespace

std::span<const std::uint8_t> row_major(std::size_t rank) {
    return {kRowMajor.data(), rank};
}

bool lies_contiguous(const Tensor& t) {
    const Strides strides = t.strides();
    std::int64_t step = 1;
    for (std::size_t d = t.rank; d-- > 0;) {
        if (t.sizes[d] <= 1) continue;
        if (strides[d] != step) return false;
        step *= t.sizes[d];
    }
    return true;
}

Result<Tensor*> any_tensor(const Arguments& args, std::size_t arg) {
    TRY_ASSIGN(Tensor* const t, args.tensor(arg));
    if (scalar_size(t->type) == 0)
        return args.error(ErrorCode::InvalidType, "{}: argument {} has no known scalar type",
                          static_cast<unsigned>(arg));
    return t;
}

Result<Tensor*> computable(const Arguments& args, std::size_t arg) {
    TRY_ASSIGN(Tensor* const t, args.tensor(arg));
    TRY(want_computable(args, arg, *t));
    return t;
}

Result<Tensor*> tensor_of(const Arguments& args, std::size_t arg, ScalarType type) {
    TRY_ASSIGN(Tensor* const t, args.tensor(arg));
    TRY(want_type(args, arg, *t, type));
    return t;
}

Result<Tensor*> index_tensor(const Arguments& args, std::size_t arg) {
    TRY_ASSIGN(Tensor* const t, args.tensor(arg));
    if (t->type != ScalarType::Int64 && t->type != ScalarType::Int32)
        return args.error(ErrorCode::InvalidType, "{}: argument {} holds indices and must be int64 or int32, is {}",
                          static_cast<unsigned>(arg), scalar_name(t->type));
    return t;
}

Result<Tensor*> out_of_shape(const Arguments& args, std::size_t arg, const Shape& shape) {
    TRY_ASSIGN(Tensor* const t, args.out(arg));
    return resized(args, arg, t, shape);
}

Result<Tensor*> list_out_of_shape(const Arguments& args, std::size_t arg, std::uint32_t item, const Shape& shape) {
    TRY_ASSIGN(Tensor* const t, args.list_tensor(arg, item));
    if (t == nullptr || t->is_constant)
        return args.error(ErrorCode::InvalidProgram, "{}: item {} of argument {} is an output, but no writable tensor",
                          item, static_cast<unsigned>(arg));
    return resized(args, arg, t, shape);
}

Result<void> want_type(const Arguments& args, std::size_t arg, const Tensor& t, ScalarType type) {
    if (t.type == type) return {};
    return args.error(ErrorCode::InvalidType, "{}: argument {} must be {}, is {}", static_cast<unsigned>(arg),
                      scalar_name(type), scalar_name(t.type));
}

Result<void> want_storable(const Arguments& args, std::size_t arg, ScalarType from, const Tensor& out) {
    TRY(want_computable(args, arg, out));
    if (can_store(from, out.type)) return {};
    return args.error(ErrorCode::InvalidType, "{}: a result of type {} does not go into argument {} of type {}",
                      scalar_name(from), static_cast<unsigned>(arg), scalar_name(out.type));
}

Result<void> want_computable(const Arguments& args, std::size_t arg, const Tensor& t) {
    if (is_computable(t.type)) return {};
    return args.error(ErrorCode::NotSupported, kTypes, static_cast<unsigned>(arg), scalar_name(t.type));
}

Result<std::size_t> checked_dimension(const Arguments& args, std::size_t arg, std::int64_t dim, std::size_t rank) {
    const auto dims = static_cast<std::int64_t>(rank == 0 ? 1 : rank);
    if (dim < -dims || dim >= dims)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} names dimension {}, there are {}",
                          static_cast<unsigned>(arg), dim, dims);
    return static_cast<std::size_t>(dim < 0 ? dim + dims : dim);
}

Result<std::size_t> dimension(const Arguments& args, std::size_t arg, std::size_t rank) {
    TRY_ASSIGN(const auto dim, args.integer(arg));
    return checked_dimension(args, arg, dim, rank);
}

Result<std::uint32_t> dimension_set(const Arguments& args, std::size_t arg, std::size_t rank, EmptyList empty) {
    const std::uint32_t all = (std::uint32_t{1} << rank) - 1;
    if (args.is_null(arg)) return all;
    TRY_ASSIGN(const IntList dims, int_list(args, arg));
    if (dims.count == 0 && empty == EmptyList::MeansAll) return all;
    std::uint32_t set = 0;
    for (std::size_t k = 0; k < dims.count; ++k) {
        TRY_ASSIGN(const auto d, checked_dimension(args, arg, dims[k], rank));
        if ((set >> d & 1) != 0)
            return args.error(ErrorCode::InvalidArgument, "{}: argument {} names dimension {} twice",
                              static_cast<unsigned>(arg), static_cast<unsigned>(d));
        set |= std::uint32_t{1} << d;
    }
    return set & all;
}

Result<IntList> int_list(const Arguments& args, std::size_t arg) {
    TRY_ASSIGN(const auto count, args.list_size(arg));
    IntList list;
    if (count > list.items.size())
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} is a list of {} items, at most {} are supported",
                          static_cast<unsigned>(arg), count, static_cast<unsigned>(list.items.size()));
    for (std::uint32_t k = 0; k < count; ++k) {
        TRY_ASSIGN(list.items[k], args.list_integer(arg, k));
    }
    list.count = count;
    return list;
}

Result<IntList> size_list(const Arguments& args, std::size_t arg, bool allow_inferred) {
    TRY_ASSIGN(const IntList list, int_list(args, arg));
    if (list.count > kMaxRank)
        return args.error(ErrorCode::InvalidArgument, "{}: argument {} gives {} dimensions, at most {} are supported",
                          static_cast<unsigned>(arg), static_cast<unsigned>(list.count),
                          static_cast<unsigned>(kMaxRank));
    for (std::size_t k = 0; k < list.count; ++k)
        if (list[k] < (allow_inferred ? -1 : 0) || list[k] > INT32_MAX)
            return args.error(ErrorCode::InvalidArgument, "{}: item {} of argument {} is no size: {}",
                              static_cast<unsigned>(k), static_cast<unsigned>(arg), list[k]);
    return list;
}

Result<Shape> shape_of(const Arguments& args, std::size_t arg, const IntList& sizes) {
    Shape shape;
    shape.rank = static_cast<std::uint8_t>(sizes.count);
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < sizes.count; ++d) {
        const auto product = checked_mul<std::int64_t>(elements, sizes[d]);
        if (sizes[d] < 0 || sizes[d] > INT32_MAX || !product)
            return args.error(ErrorCode::InvalidArgument, "{}: dimension {} that follows from argument {} would be {}",
                              static_cast<unsigned>(d), static_cast<unsigned>(arg), sizes[d]);
        elements = *product;
        shape.sizes[d] = static_cast<std::int32_t>(sizes[d]);
    }
    return shape;
}

Result<Scalar> scalar(const Arguments& args, std::size_t arg) {
    TRY(args.number(arg));  // checks the kind
    const Value& v = args.value(arg);
    Scalar s;
    s.kind = v.kind;
    if (v.kind == Value::Kind::Double)
        s.d = v.d;
    else
        s.i = v.i;
    return s;
}

Result<std::int64_t> integer_scalar(const Arguments& args, std::size_t arg, const Scalar& s) {
    if (!s.is_double()) return s.i;
    constexpr double kLimit = 9223372036854775808.0;  // 2^63
    if (s.d >= -kLimit && s.d < kLimit && static_cast<double>(static_cast<std::int64_t>(s.d)) == s.d)
        return static_cast<std::int64_t>(s.d);
    return args.error(ErrorCode::InvalidType, "{}: argument {} must be a whole number for integer tensors",
                      static_cast<unsigned>(arg));
}

ScalarType promote_with(ScalarType tensor, const Scalar& s) {
    if (tensor == ScalarType::Float32 || s.is_double()) return ScalarType::Float32;
    if (tensor == ScalarType::Bool && s.kind == Value::Kind::Int) return ScalarType::Int64;
    return tensor;
}

Result<std::string_view> text(const Arguments& args, std::size_t arg, std::string_view otherwise) {
    const Value& v = args.value(arg);
    if (v.kind == Value::Kind::Null) return otherwise;
    if (v.kind != Value::Kind::String)
        return args.error(ErrorCode::InvalidType, "{}: argument {} must be a String, is {}", static_cast<unsigned>(arg),
                          value_kind_name(v.kind));
    return std::string_view(reinterpret_cast<const char*>(v.items), v.count);
}

Result<Shape> broadcast(const Arguments& args, std::size_t arg, const Shape& shape, const Tensor& t) {
    Shape result = shape;
    if (t.rank > result.rank) {
        const std::size_t lead = t.rank - result.rank;
        for (std::size_t d = result.rank; d-- > 0;) result.sizes[d + lead] = result.sizes[d];
        for (std::size_t d = 0; d < lead; ++d) result.sizes[d] = 1;
        result.rank = t.rank;
    }
    const std::size_t lead = result.rank - t.rank;
    for (std::size_t d = 0; d < t.rank; ++d) {
        std::int32_t& size = result.sizes[lead + d];
        if (size == 1)
            size = t.sizes[d];
        else if (t.sizes[d] != 1 && t.sizes[d] != size)
            return args.error(ErrorCode::InvalidArgument,
                              "{}: dimension {} of argument {} has size {}, which does not broadcast with {}",
                              static_cast<unsigned>(d), static_cast<unsigned>(arg), t.sizes[d], size);
    }
    return result;
}

}  // namespace talpa::runtime::operators
