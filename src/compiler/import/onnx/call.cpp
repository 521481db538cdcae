#include "compiler/import/onnx/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/graph/constant.h"

namespace talpa::compiler::import::onnx {

using host::failure;
using host::Result;

Result<Bound> Call::bound(std::size_t i) const {
    if (!has(i)) return failure(ErrorCode::InvalidProgram, "input {} is missing", i);
    return operands_[i];
}

Result<ValueId> Call::operand(std::size_t i) const {
    TRY_ASSIGN(const Bound from, bound(i));
    if (from.integers)
        return failure(ErrorCode::NotSupported, "input {} is used as quantized integers, without DequantizeLinear", i);
    return from.id;
}

Result<ValueId> Call::optional(std::size_t i) const {
    if (!has(i)) return kNoValue;
    return operand(i);
}

Result<ValueId> Call::moved(std::size_t i) {
    TRY_ASSIGN(const Bound from, bound(i));
    integers_ |= from.integers;
    return from.id;
}

Result<std::vector<std::int64_t>> Call::constants(std::size_t i) const {
    TRY_ASSIGN(const Bound from, bound(i));
    const Value& v = b[from.id];
    if (!v.is_constant() || v.type == DType::Float32)
        return failure(ErrorCode::NotSupported, "input {} ('{}') must be constant whole numbers", i, v.name);
    return stored_integers(v);
}

Result<std::vector<float>> Call::real_constants(std::size_t i) const {
    TRY_ASSIGN(const auto id, operand(i));
    if (!b[id].is_constant())
        return failure(ErrorCode::NotSupported, "input {} ('{}') must be a constant", i, b[id].name);
    return real_numbers(b[id]);
}

const Attribute* Call::attribute(std::string_view wanted) {
    const auto found = std::ranges::find(node_.attributes, wanted, &Attribute::name);
    if (found == node_.attributes.end()) return nullptr;
    read_.emplace(wanted);
    return &*found;
}

Result<std::int64_t> Call::integer(std::string_view wanted, std::optional<std::int64_t> usual) {
    const Attribute* a = attribute(wanted);
    if (a != nullptr && a->integer) return *a->integer;
    if (a == nullptr && usual) return *usual;
    return failure(ErrorCode::InvalidProgram, "attribute '{}' is {}", wanted, a == nullptr ? "missing" : "no integer");
}

Result<double> Call::real(std::string_view wanted, double usual) {
    const Attribute* a = attribute(wanted);
    if (a == nullptr) return usual;
    if (!a->real) return failure(ErrorCode::InvalidProgram, "attribute '{}' is no number", wanted);
    return static_cast<double>(*a->real);
}

Result<std::string> Call::text(std::string_view wanted, std::string usual) {
    const Attribute* a = attribute(wanted);
    if (a == nullptr) return usual;
    if (!a->text) return failure(ErrorCode::InvalidProgram, "attribute '{}' is no text", wanted);
    return *a->text;
}

Result<std::vector<std::int64_t>> Call::integers(std::string_view wanted, std::vector<std::int64_t> usual) {
    const Attribute* a = attribute(wanted);
    return a == nullptr ? usual : a->integers;
}

Result<std::optional<std::vector<std::int64_t>>> Call::numbers(std::string_view wanted, std::size_t i) {
    if (const Attribute* a = attribute(wanted)) return a->integers;
    if (!has(i)) return std::nullopt;
    return constants(i);
}

void Call::ignore(std::initializer_list<std::string_view> names) {
    for (const auto n : names) read_.emplace(n);
}

std::optional<std::string> Call::unread() const {
    for (const Attribute& a : node_.attributes)
        if (!read_.contains(a.name)) return a.name;
    return std::nullopt;
}

Result<void> Call::make(Op op, std::vector<ValueId> operands, Attributes attributes) {
    TRY_ASSIGN(const auto id, b.add(op, std::move(operands), std::move(attributes), name(results_.size())));
    give(id);
    return {};
}

Result<int> positive_axis(std::int64_t axis, std::size_t rank) {
    const auto r = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
    if (axis < -r || axis >= r) return failure(ErrorCode::InvalidProgram, "axis {} of a tensor of rank {}", axis, rank);
    return static_cast<int>(axis < 0 ? axis + r : axis);
}

}  // namespace talpa::compiler::import::onnx
