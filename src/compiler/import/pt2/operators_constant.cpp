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

struct Number {
    double value = 0;
    bool whole = false;
};

// A number, and whether the program has it as a whole one: that decides the type of a result that names none.
Result<Number> either(Call& call, std::string_view name, std::optional<std::int64_t> usual = {}) {
    if (const auto whole = call.integer(name, usual)) return Number{static_cast<double>(*whole), true};
    TRY_ASSIGN(const double value, call.number(name));
    return Number{value, false};
}

Result<void> import_arange(Call& call, Op) {
    TRY_ASSIGN(const Number start, either(call, "start", 0));
    TRY_ASSIGN(const Number end, either(call, "end"));
    TRY_ASSIGN(const Number step, either(call, "step", 1));
    bool whole = start.whole && end.whole && step.whole;
    if (call.has("dtype")) {
        TRY_ASSIGN(whole, wants_integers(call));
    }
    constexpr double kExact = 9007199254740992;  // 2^53
    const bool all_whole = start.whole && end.whole && step.whole;
    if (whole && !all_whole) return failure(ErrorCode::NotSupported, "whole numbers of a row in steps that are not");
    if (whole && !(std::abs(start.value) <= kExact && std::abs(end.value) <= kExact && std::abs(step.value) <= kExact))
        return failure(ErrorCode::InvalidProgram, "numbers from {} to {} in steps of {}", start.value, end.value,
                       step.value);
    const double count = std::ceil((end.value - start.value) / step.value);
    if (!(count >= 0 && count <= static_cast<double>(kFoldLimit)))
        return failure(ErrorCode::InvalidProgram, "numbers from {} to {} in steps of {}", start.value, end.value,
                       step.value);
    std::vector<std::int64_t> integers;
    std::vector<float> reals;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
        const double value = start.value + static_cast<double>(i) * step.value;
        if (whole)
            integers.push_back(static_cast<std::int64_t>(start.value) + i * static_cast<std::int64_t>(step.value));
        else
            reals.push_back(static_cast<float>(value));
    }
    const Shape shape{static_cast<std::int64_t>(count)};
    call.give(
        call.b.value(whole ? int64_constant(call.name(), shape, integers) : float_constant(call.name(), shape, reals)));
    call.ignore({"dtype", "layout", "device", "pin_memory"});
    return {};
}

// From both ends to the middle, in float32, as the framework does it.
Result<void> import_linspace(Call& call, Op) {
    TRY_ASSIGN(const Number start, either(call, "start"));
    TRY_ASSIGN(const Number end, either(call, "end"));
    TRY_ASSIGN(const auto steps, call.integer("steps"));
    TRY_ASSIGN(const bool whole, wants_integers(call));
    if (whole) return failure(ErrorCode::NotSupported, "whole numbers of a linspace");
    if (steps < 0 || steps > kFoldLimit) return failure(ErrorCode::InvalidProgram, "a linspace of {} numbers", steps);
    const auto first = static_cast<float>(start.value), last = static_cast<float>(end.value);
    const float step = steps > 1 ? (last - first) / static_cast<float>(steps - 1) : 0;
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < steps; ++i)
        numbers.push_back(i < steps / 2 || steps == 1 ? first + step * static_cast<float>(i)
                                                      : last - step * static_cast<float>(steps - i - 1));
    call.give(call.b.value(float_constant(call.name(), {steps}, numbers)));
    call.ignore({"dtype", "layout", "device", "pin_memory"});
    return {};
}

constexpr Operator kConstantOperators[] = {
    {"aten.arange.default", import_arange},
    {"aten.arange.start", import_arange},
    {"aten.arange.start_step", import_arange},
    {"aten.linspace.default", import_linspace},
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
    return kConstantOperators;
}

}  // namespace talpa::compiler::import::pt2
