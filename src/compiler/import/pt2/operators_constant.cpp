// What makes constants: folded when met (model-formats, section 1.5).
#include <fmt/format.h>

#include <cmath>

#include "compiler/graph/constant.h"
#include "compiler/graph/fold.h"
#include "compiler/graph/infer.h"
#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

Result<void> give_filled(Call& call, const Shape& shape, double value, bool whole) {
    TRY_ASSIGN(const auto count, checked_count(shape));
    if (count > kFoldLimit) return failure(ErrorCode::OutOfResources, "a constant of {} elements", count);
    const auto n = static_cast<std::size_t>(count);
    if (std::isnan(value) || (whole && !(std::abs(value) < 9e18)))
        return failure(ErrorCode::InvalidProgram, "a constant of {}", value);
    if (whole)
        call.give(call.b.value(
            int64_constant(call.name(), shape, std::vector<std::int64_t>(n, static_cast<std::int64_t>(value)))));
    else
        call.give(call.b.value(float_constant(call.name(), shape, std::vector<float>(n, static_cast<float>(value)))));
    call.ignore({"dtype", "layout", "device", "pin_memory", "memory_format"});
    return {};
}

Result<bool> wants_integers(Call& call) {
    if (!call.has("dtype")) return false;
    TRY_ASSIGN(const auto type, call.dtype("dtype"));
    if (type == RawType::Int64) return true;
    if (type != RawType::Float32) return failure(ErrorCode::NotSupported, "a constant of {}", raw_name(type));
    return false;
}

template <int kValue>
Result<void> import_fill(Call& call, Op) {
    TRY_ASSIGN(const auto shape, call.integers("size"));
    TRY_ASSIGN(const bool whole, wants_integers(call));
    call.ignore({"self"});
    return give_filled(call, shape, kValue, whole);
}

template <int kValue>
Result<void> import_fill_like(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.tensor("self"));
    TRY_ASSIGN(const bool whole, wants_integers(call));
    return give_filled(call, call.b[x].shape, kValue, whole);
}

Result<void> import_full(Call& call, Op) {
    TRY_ASSIGN(const auto shape, call.integers("size"));
    TRY_ASSIGN(const auto value, call.number("fill_value"));
    TRY_ASSIGN(const bool whole, wants_integers(call));
    call.ignore({"self"});
    return give_filled(call, shape, value, whole);
}

Result<void> import_full_like(Call& call, Op) {
    TRY_ASSIGN(const auto x, call.tensor("self"));
    TRY_ASSIGN(const auto value, call.number("fill_value"));
    TRY_ASSIGN(const bool whole, wants_integers(call));
    return give_filled(call, call.b[x].shape, value, whole);
}

Result<void> import_scalar_tensor(Call& call, Op) {
    TRY_ASSIGN(const auto value, call.number("s"));
    TRY_ASSIGN(const bool whole, wants_integers(call));
    return give_filled(call, {}, value, whole);
}

constexpr Operator kTable[] = {
    {"aten.full.default", import_full},
    {"aten.new_full.default", import_full},
    {"aten.full_like.default", import_full_like},
    {"aten.zeros.default", import_fill<0>},
    {"aten.new_zeros.default", import_fill<0>},
    {"aten.ones.default", import_fill<1>},
    {"aten.new_ones.default", import_fill<1>},
    {"aten.zeros_like.default", import_fill_like<0>},
    {"aten.ones_like.default", import_fill_like<1>},
    {"aten.scalar_tensor.default", import_scalar_tensor},
};

}  // namespace

std::span<const Operator> constant_operators() {
    return kTable;
}

}  // namespace talpa::compiler::import::pt2
