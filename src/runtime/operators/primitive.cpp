// Operators on numbers and shapes for programs with dynamic shapes: sym_size, executorch_prim::*. They write a value of
// the method's table instead of a tensor, and their out value appears once in the call. (pte-format, sections 5.3
// and 6.1)
#include <cmath>
#include <cstring>

#include "runtime/operators/call.h"
#include "runtime/operators/functions.h"

namespace talpa::runtime::operators {
namespace {

void set(Value& out, std::int64_t i) {
    out.kind = Value::Kind::Int;
    out.i = i;
}
void set(Value& out, double d) {
    out.kind = Value::Kind::Double;
    out.d = d;
}
void set(Value& out, bool b) {
    out.kind = Value::Kind::Bool;
    out.i = b ? 1 : 0;
}

// The value that the call writes: one that holds a number already, so that no tensor or list is overwritten.
Result<Value*> out_number(Arguments& args) {
    Value& out = args.value(args.count() - 1);
    TRY(args.number(args.count() - 1));
    return &out;
}

double as_double(const Scalar& s) {
    return s.is_double() ? s.d : static_cast<double>(s.i);
}

struct Pair {
    Scalar a, b;
    Value* out = nullptr;
    [[nodiscard]] bool integers() const { return !a.is_double() && !b.is_double(); }
};
Result<Pair> read(Arguments& args) {
    Pair p;
    TRY_ASSIGN(p.a, scalar(args, 0));
    TRY_ASSIGN(p.b, scalar(args, 1));
    TRY_ASSIGN(p.out, out_number(args));
    return p;
}
Result<Pair> read_integers(Arguments& args) {
    TRY_ASSIGN(const Pair p, read(args));
    if (!p.integers()) return args.error(ErrorCode::InvalidType, "{}: takes integers only");
    return p;
}

constexpr const char* kOverflow = "{}: {} and {} overflow 64 bits";
constexpr const char* kByZero = "{}: {} is divided by zero";

// Integers by a checked builtin, anything else in double.
template <typename Checked, typename Function>
Result<void> algebra(Arguments& args, Checked&& checked, Function&& function) {
    TRY_ASSIGN(const Pair p, read(args));
    if (!p.integers()) {
        set(*p.out, function(as_double(p.a), as_double(p.b)));
        return {};
    }
    std::int64_t result = 0;
    if (checked(p.a.i, p.b.i, &result)) return args.error(ErrorCode::InvalidArgument, kOverflow, p.a.i, p.b.i);
    set(*p.out, result);
    return {};
}
template <typename Function>
Result<void> compare(Arguments& args, Function&& function) {
    TRY_ASSIGN(const Pair p, read(args));
    set(*p.out, p.integers() ? function(p.a.i, p.b.i) : function(as_double(p.a), as_double(p.b)));
    return {};
}

// Quotient and remainder of integers as C++ divides them, with every bad case an error.
struct Division {
    std::int64_t quotient = 0, remainder = 0;
};
Result<Division> divide(const Arguments& args, std::int64_t a, std::int64_t b) {
    if (b == 0) return args.error(ErrorCode::InvalidArgument, kByZero, a);
    if (a == INT64_MIN && b == -1) return args.error(ErrorCode::InvalidArgument, kOverflow, a, b);
    return Division{a / b, a % b};
}

double floored(double a, double b) {  // Python's //
    if (b == 0) return std::signbit(a) ? -HUGE_VAL : HUGE_VAL;
    const double mod = std::fmod(a, b);
    const double div = (a - mod) / b;
    return mod != 0 && std::signbit(b) != std::signbit(mod) ? div - 1 : div;
}

template <typename Function>
Result<void> round_to_integer(Arguments& args, Function&& function) {
    TRY_ASSIGN(const Scalar a, scalar(args, 0));
    TRY_ASSIGN(Value* const out, out_number(args));
    const double rounded = a.is_double() ? function(a.d) : 0;
    if (!(std::fabs(rounded) < 9223372036854775808.0))
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 does not fit an Int");
    set(*out, a.is_double() ? static_cast<std::int64_t>(rounded) : a.i);
    return {};
}

}  // namespace

Result<void> run_sym_size(Arguments& args) {  // self, dim, out
    TRY_ASSIGN(const Tensor* const self, args.tensor(0));
    if (self->rank == 0) return args.error(ErrorCode::InvalidArgument, "{}: argument 0 has no dimensions");
    TRY_ASSIGN(const auto dim, dimension(args, 1, self->rank));
    TRY_ASSIGN(Value* const out, out_number(args));
    set(*out, std::int64_t{self->sizes[dim]});
    return {};
}
Result<void> run_sym_numel(Arguments& args) {  // self, out
    TRY_ASSIGN(const Tensor* const self, args.tensor(0));
    TRY_ASSIGN(Value* const out, out_number(args));
    set(*out, static_cast<std::int64_t>(self->numel()));
    return {};
}
Result<void> run_local_scalar_dense(Arguments& args) {  // self of one element, out
    TRY_ASSIGN(const Tensor* const self, computable(args, 0));
    if (self->numel() != 1)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 0 has {} elements, must have 1",
                          static_cast<unsigned long long>(self->numel()));
    TRY_ASSIGN(Value* const out, out_number(args));
    if (self->type == ScalarType::Float32)
        set(*out, static_cast<double>(load_one<float>(self->type, self->data)));
    else if (self->type == ScalarType::Bool)
        set(*out, load_one<std::int64_t>(self->type, self->data) != 0);
    else
        set(*out, load_one<std::int64_t>(self->type, self->data));
    return {};
}

Result<void> run_prim_add(Arguments& args) {
    return algebra(
        args, [](auto a, auto b, auto* r) { return __builtin_add_overflow(a, b, r); },
        [](double a, double b) { return a + b; });
}
Result<void> run_prim_sub(Arguments& args) {
    return algebra(
        args, [](auto a, auto b, auto* r) { return __builtin_sub_overflow(a, b, r); },
        [](double a, double b) { return a - b; });
}
Result<void> run_prim_mul(Arguments& args) {
    return algebra(
        args, [](auto a, auto b, auto* r) { return __builtin_mul_overflow(a, b, r); },
        [](double a, double b) { return a * b; });
}
Result<void> run_prim_floordiv(Arguments& args) {
    TRY_ASSIGN(const Pair p, read(args));
    if (!p.integers()) {
        set(*p.out, floored(as_double(p.a), as_double(p.b)));
        return {};
    }
    TRY_ASSIGN(const Division d, divide(args, p.a.i, p.b.i));
    set(*p.out, d.remainder != 0 && (d.remainder < 0) != (p.b.i < 0) ? d.quotient - 1 : d.quotient);
    return {};
}
Result<void> run_prim_floordiv_int(Arguments& args) {  // upstream truncates here
    TRY_ASSIGN(const Pair p, read_integers(args));
    TRY_ASSIGN(const Division d, divide(args, p.a.i, p.b.i));
    set(*p.out, d.quotient);
    return {};
}
Result<void> run_prim_truediv(Arguments& args) {
    TRY_ASSIGN(const Pair p, read(args));
    if (as_double(p.b) == 0) return args.error(ErrorCode::InvalidArgument, "{}: division by zero");
    set(*p.out, as_double(p.a) / as_double(p.b));
    return {};
}
Result<void> run_prim_mod(Arguments& args) {  // the sign of the dividend, as in C++
    TRY_ASSIGN(const Pair p, read_integers(args));
    TRY_ASSIGN(const Division d, divide(args, p.a.i, p.b.i));
    set(*p.out, d.remainder);
    return {};
}
Result<void> run_prim_sym_max(Arguments& args) {
    TRY_ASSIGN(const Pair p, read_integers(args));
    set(*p.out, p.a.i > p.b.i ? p.a.i : p.b.i);
    return {};
}
Result<void> run_prim_sym_min(Arguments& args) {
    TRY_ASSIGN(const Pair p, read_integers(args));
    set(*p.out, p.a.i < p.b.i ? p.a.i : p.b.i);
    return {};
}
Result<void> run_prim_eq(Arguments& args) {
    return compare(args, [](auto a, auto b) { return a == b; });
}
Result<void> run_prim_gt(Arguments& args) {
    return compare(args, [](auto a, auto b) { return a > b; });
}
Result<void> run_prim_lt(Arguments& args) {
    return compare(args, [](auto a, auto b) { return a < b; });
}
Result<void> run_prim_ge(Arguments& args) {
    return compare(args, [](auto a, auto b) { return a >= b; });
}
Result<void> run_prim_le(Arguments& args) {
    return compare(args, [](auto a, auto b) { return a <= b; });
}
Result<void> run_prim_neg(Arguments& args) {  // a, out
    TRY_ASSIGN(const Scalar a, scalar(args, 0));
    TRY_ASSIGN(Value* const out, out_number(args));
    if (!a.is_double() && a.i == INT64_MIN)
        return args.error(ErrorCode::InvalidArgument, "{}: -{} overflows 64 bits", a.i);
    a.is_double() ? set(*out, -a.d) : set(*out, -a.i);
    return {};
}
Result<void> run_prim_sym_float(Arguments& args) {
    TRY_ASSIGN(const Scalar a, scalar(args, 0));
    TRY_ASSIGN(Value* const out, out_number(args));
    set(*out, as_double(a));
    return {};
}
Result<void> run_prim_ceil(Arguments& args) {
    return round_to_integer(args, [](double x) { return std::ceil(x); });
}
Result<void> run_prim_round(Arguments& args) {  // half to even, as Python's round
    return round_to_integer(args, [](double x) { return std::nearbyint(x); });
}
Result<void> run_prim_trunc(Arguments& args) {
    return round_to_integer(args, [](double x) { return std::trunc(x); });
}

// self, size, out: the out tensor becomes another name for self's memory. Nothing is copied.
Result<void> run_et_view(Arguments& args) {
    TRY_ASSIGN(const Tensor* const self, any_tensor(args, 0));
    TRY_ASSIGN(const Shape shape, resolve_view(args, *self, 1));
    const Value& v = args.value(2);
    if (v.kind != Value::Kind::Tensor || v.tensor == nullptr)
        return args.error(ErrorCode::InvalidType, "{}: argument 2 must be a Tensor, is {}", value_kind_name(v.kind));
    Tensor& out = *v.tensor;
    TRY(want_type(args, 2, out, self->type));
    if (!lies_contiguous(*self)) return args.error(ErrorCode::NotSupported, "{}: argument 0 must be contiguous");
    if (&out == self) {
        TRY(args.resize(out, shape.span()));
        return {};
    }
    Tensor view = out;  // the memory must have room for the old sizes too while resize compares
    view.data = self->data;
    view.capacity_bytes = self->capacity_bytes;
    view.is_constant = self->is_constant;
    TRY(args.resize(view, shape.span()));
    if (!lies_contiguous(view)) return args.error(ErrorCode::NotSupported, "{}: argument 2 must be contiguous");
    out = view;
    return {};
}

// copy_to, to_copy, index: writes to_copy as entry `index` of copy_to, which a loop fills one entry after the other.
Result<void> run_et_copy_index(Arguments& args) {
    TRY_ASSIGN(Tensor* const to, args.out(0));
    TRY_ASSIGN(const Tensor* const from, any_tensor(args, 1));
    TRY_ASSIGN(const auto index, args.integer(2));
    TRY(want_type(args, 0, *to, from->type));
    if (to->rank != from->rank + 1U || index < 0 || index >= INT32_MAX)
        return args.error(ErrorCode::InvalidArgument, "{}: argument 1 of {} dimensions is no entry {} of argument 0",
                          static_cast<unsigned>(from->rank), index);
    Shape shape;
    shape.rank = to->rank;
    shape.sizes[0] = static_cast<std::int32_t>(to->is_dynamic ? index + 1 : to->sizes[0]);
    for (std::size_t d = 0; d < from->rank; ++d) shape.sizes[d + 1] = from->sizes[d];
    TRY_ASSIGN(Tensor* const grown, out_of_shape(args, 0, shape));
    if (index >= grown->sizes[0])
        return args.error(ErrorCode::InvalidArgument, "{}: entry {} is outside of {} entries", index, grown->sizes[0]);
    if (!lies_contiguous(*grown) || !lies_contiguous(*from))
        return args.error(ErrorCode::NotSupported, "{}: needs contiguous tensors");
    const std::size_t bytes = from->size_bytes();
    if (bytes != 0) std::memmove(grown->data + static_cast<std::size_t>(index) * bytes, from->data, bytes);
    return {};
}

}  // namespace talpa::runtime::operators
