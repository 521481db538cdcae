// Typed access to the arguments of a kernel call. Indices of arguments and of list items were checked when the method
// was loaded (V8, V9); kinds are checked here, because a MoveCall may have changed them since.
#include "runtime/operator.h"

#include "base/core/byte_reader.h"
#include "base/core/checked_math.h"

namespace talpa::runtime {
namespace {

constexpr std::size_t kTemporaryAlignment = 16;

std::unexpected<Error> wrong_kind(std::string_view op, std::size_t arg, const char* wanted, Value::Kind has) {
    return fail(ErrorCode::InvalidType, "{}: argument {} must be {}, is {}", op, static_cast<unsigned>(arg), wanted,
                value_kind_name(has));
}

struct KindLetter {
    char letter;
    const char* wanted;
    std::uint16_t kinds;  // bit set of Value::Kind
};

constexpr std::uint16_t bit(Value::Kind kind) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(kind));
}
constexpr std::uint16_t kIntegers = bit(Value::Kind::Int) | bit(Value::Kind::Bool);

constexpr KindLetter kKindLetters[] = {
    {'t', TALPA_SENTENCE("a Tensor"), bit(Value::Kind::Tensor)},
    {'o', TALPA_SENTENCE("an output Tensor"), bit(Value::Kind::Tensor)},
    {'i', TALPA_SENTENCE("an Int"), kIntegers},
    {'r', TALPA_SENTENCE("an Int"), kIntegers},
    {'n', TALPA_SENTENCE("an Int, Bool or Double"), kIntegers | bit(Value::Kind::Double)},
    {'b', TALPA_SENTENCE("a Bool"), bit(Value::Kind::Bool)},
    {'I', TALPA_SENTENCE("an IntList"), bit(Value::Kind::IntList)},
    {'D', TALPA_SENTENCE("a DoubleList"), bit(Value::Kind::DoubleList)},
    {'B', TALPA_SENTENCE("a BoolList"), bit(Value::Kind::BoolList)},
    {'T', TALPA_SENTENCE("a TensorList"), bit(Value::Kind::TensorList)},
    {'O', TALPA_SENTENCE("a TensorList"), bit(Value::Kind::TensorList)},
    {'Q', TALPA_SENTENCE("a list of tensors"), bit(Value::Kind::TensorList) | bit(Value::Kind::OptionalTensorList)},
    {'*', TALPA_SENTENCE("anything"), 0xFFFF},
};

Result<void> check_not_constant(std::string_view op, std::size_t arg, const Tensor* tensor) {
    if (tensor != nullptr && tensor->is_constant)
        return fail(ErrorCode::InvalidProgram, "{}: argument {} is an output, but the tensor is a constant", op,
                    static_cast<unsigned>(arg));
    return {};
}

}  // namespace

Result<void> check_kinds(const Operator& op, const Arguments& args) {
    std::size_t arg = 0;
    for (std::size_t k = 0; k < op.kinds.size(); ++k, ++arg) {
        const char letter = op.kinds[k];
        const bool may_be_null = k + 1 < op.kinds.size() && op.kinds[k + 1] == '?';
        k += may_be_null;
        if (arg >= args.count())
            return fail(ErrorCode::InvalidProgram, "{}: argument {} is missing", op.name, static_cast<unsigned>(arg));
        const Value& v = args.value(arg);
        if (may_be_null && v.kind == Value::Kind::Null) continue;
        for (const KindLetter& k_letter : kKindLetters) {
            if (k_letter.letter == letter && (k_letter.kinds & bit(v.kind)) == 0)
                return wrong_kind(op.name, arg, k_letter.wanted, v.kind);
        }
        if (letter == 'o') TRY(check_not_constant(op.name, arg, v.tensor));
        if (letter == 'O') {
            for (std::uint32_t item = 0; item < v.count; ++item) {
                TRY_ASSIGN(const Value* const t, args.list_value(arg, item, Value::Kind::TensorList));
                if (t->kind != Value::Kind::Tensor)
                    return wrong_kind(op.name, arg, TALPA_SENTENCE("a list of Tensor"), t->kind);
                TRY(check_not_constant(op.name, arg, t->tensor));
            }
        }
    }
    return {};
}

Result<Tensor*> Arguments::bound(const Value& v, std::size_t arg) const {
    if (v.kind != Value::Kind::Tensor || v.tensor == nullptr)
        return wrong_kind(op_name_, arg, TALPA_SENTENCE("a Tensor"), v.kind);
    if (v.tensor->data == nullptr && v.tensor->size_bytes() != 0)
        return fail(ErrorCode::InvalidState, "{}: argument {} is a tensor without memory", op_name_,
                    static_cast<unsigned>(arg));
    return v.tensor;
}

Result<Tensor*> Arguments::tensor(std::size_t arg) const {
    return bound(value(arg), arg);
}

Result<Tensor*> Arguments::out(std::size_t arg) const {
    TRY_ASSIGN(Tensor* const t, tensor(arg));
    TRY(check_not_constant(op_name_, arg, t));
    return t;
}

Result<std::int64_t> Arguments::integer(std::size_t arg) const {
    const Value& v = value(arg);
    if (v.kind != Value::Kind::Int && v.kind != Value::Kind::Bool)
        return wrong_kind(op_name_, arg, TALPA_SENTENCE("an Int"), v.kind);
    return v.i;
}

Result<double> Arguments::number(std::size_t arg) const {
    const Value& v = value(arg);
    if (v.kind == Value::Kind::Double) return v.d;
    if (v.kind != Value::Kind::Int && v.kind != Value::Kind::Bool)
        return wrong_kind(op_name_, arg, TALPA_SENTENCE("an Int, Bool or Double"), v.kind);
    return static_cast<double>(v.i);
}

Result<float> Arguments::number_as_float(std::size_t arg) const {
    const Value& v = value(arg);
    if (v.kind == Value::Kind::Double) return static_cast<float>(v.d);
    TRY_ASSIGN(const std::int64_t i, integer(arg));
    if (i < INT32_MIN || i > INT32_MAX)
        return fail(ErrorCode::InvalidArgument, "{}: argument {} is {}, more than 32 bits", op_name_,
                    static_cast<unsigned>(arg), i);
    return static_cast<float>(static_cast<std::int32_t>(i));
}

Result<bool> Arguments::boolean(std::size_t arg) const {
    const Value& v = value(arg);
    if (v.kind != Value::Kind::Bool) return wrong_kind(op_name_, arg, TALPA_SENTENCE("a Bool"), v.kind);
    return v.i != 0;
}

Result<std::uint32_t> Arguments::list_size(std::size_t arg) const {
    const Value& v = value(arg);
    switch (v.kind) {
        case Value::Kind::IntList:
        case Value::Kind::DoubleList:
        case Value::Kind::BoolList:
        case Value::Kind::TensorList:
        case Value::Kind::OptionalTensorList:
            return v.count;
        default:
            return wrong_kind(op_name_, arg, TALPA_SENTENCE("a list"), v.kind);
    }
}

Result<const Value*> Arguments::list_value(std::size_t arg, std::uint32_t item, Value::Kind kind) const {
    const Value& v = value(arg);
    if (v.kind != kind) return wrong_kind(op_name_, arg, value_kind_name(kind).data(), v.kind);
    if (item >= v.count)
        return fail(ErrorCode::InvalidArgument, "{}: argument {} is a list of {} items, item {} is wanted", op_name_,
                    static_cast<unsigned>(arg), v.count, item);
    const std::int64_t index = kind == Value::Kind::IntList ? load_le<std::int64_t>(v.items + std::size_t{item} * 8)
                                                            : load_le<std::int32_t>(v.items + std::size_t{item} * 4);
    if (kind == Value::Kind::OptionalTensorList && index == -1) return nullptr;
    if (index < 0 || static_cast<std::uint64_t>(index) >= values_.size())
        return fail(ErrorCode::InvalidProgram, "{}: item {} of argument {} is value {}, there are {}", op_name_, item,
                    static_cast<unsigned>(arg), index, static_cast<unsigned>(values_.size()));
    return &values_[static_cast<std::size_t>(index)];
}

Result<std::int64_t> Arguments::list_integer(std::size_t arg, std::uint32_t item) const {
    TRY_ASSIGN(const Value* const v, list_value(arg, item, Value::Kind::IntList));
    if (v->kind != Value::Kind::Int) return wrong_kind(op_name_, arg, TALPA_SENTENCE("a list of Int"), v->kind);
    return v->i;
}

Result<double> Arguments::list_double(std::size_t arg, std::uint32_t item) const {
    const Value& v = value(arg);
    if (v.kind != Value::Kind::DoubleList) return wrong_kind(op_name_, arg, TALPA_SENTENCE("a DoubleList"), v.kind);
    if (item >= v.count)
        return fail(ErrorCode::InvalidArgument, "{}: argument {} is a list of {} items, item {} is wanted", op_name_,
                    static_cast<unsigned>(arg), v.count, item);
    return load_le<double>(v.items + std::size_t{item} * 8);
}

Result<Tensor*> Arguments::list_tensor(std::size_t arg, std::uint32_t item) const {
    const bool optional = value(arg).kind == Value::Kind::OptionalTensorList;
    TRY_ASSIGN(const Value* const v,
               list_value(arg, item, optional ? Value::Kind::OptionalTensorList : Value::Kind::TensorList));
    if (optional && (v == nullptr || v->kind == Value::Kind::Null)) return nullptr;
    return bound(*v, arg);
}

Result<std::span<std::uint8_t>> Arguments::temporary(std::size_t bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(temporary_.data());
    const std::size_t skip = (kTemporaryAlignment - address % kTemporaryAlignment) % kTemporaryAlignment;
    if (!range_inside(skip, bytes, temporary_.size()))
        return fail(ErrorCode::MemoryAllocation, "{}: needs {} bytes of the temporary pool, {} are left", op_name_,
                    static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(temporary_.size()));
    const auto taken = temporary_.subspan(skip, bytes);
    temporary_ = temporary_.subspan(skip + bytes);
    return taken;
}

Result<void> Arguments::resize(Tensor& tensor, std::span<const std::int32_t> sizes) const {
    if (sizes.size() != tensor.rank)
        return fail(ErrorCode::InvalidArgument, "{}: the result has {} dimensions, its tensor in the program has {}",
                    op_name_, static_cast<unsigned>(sizes.size()), static_cast<unsigned>(tensor.rank));
    std::uint64_t bytes = scalar_size(tensor.type);
    bool same = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        same = same && sizes[i] == tensor.sizes[i];
        const auto product =
            sizes[i] < 0 ? std::nullopt : checked_mul<std::uint64_t>(bytes, static_cast<std::uint64_t>(sizes[i]));
        if (!product)
            return fail(ErrorCode::InvalidArgument, "{}: the result's dimension {} would be {}", op_name_,
                        static_cast<unsigned>(i), sizes[i]);
        bytes = *product;
    }
    if (same) return {};
    if (!tensor.is_dynamic) {
        for (std::size_t i = 0; i < sizes.size(); ++i)
            if (sizes[i] != tensor.sizes[i])
                return fail(ErrorCode::InvalidArgument,
                            "{}: the result's dimension {} is {}, its tensor in the program has {}", op_name_,
                            static_cast<unsigned>(i), sizes[i], tensor.sizes[i]);
    }
    if (bytes > tensor.capacity_bytes)
        return fail(ErrorCode::MemoryAllocation, "{}: the result has {} bytes, its tensor has room for {}", op_name_,
                    bytes, static_cast<unsigned long long>(tensor.capacity_bytes));
    for (std::size_t i = 0; i < sizes.size(); ++i) tensor.sizes[i] = sizes[i];
    return {};
}

}  // namespace talpa::runtime
