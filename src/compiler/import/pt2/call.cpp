#include "compiler/import/pt2/call.h"

#include <fmt/format.h>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/pt2/archive.h"

namespace talpa::compiler::import::pt2 {

using host::Error;
using host::failure;
using host::Result;

namespace {

Result<void> collect_result(Json result, std::vector<std::string_view>& names) {
    TRY_ASSIGN(const Json only, result.only());
    if (only.key() == "as_tensor") {
        TRY_ASSIGN(const Json name, only.member("name"));
        TRY_ASSIGN(const auto text, name.text());
        names.push_back(text);
        return {};
    }
    if (only.key() == "as_tensors") {
        TRY(only.array());
        for (const Json item : each(only)) {
            TRY_ASSIGN(const Json name, item.member("name"));
            TRY_ASSIGN(const auto text, name.text());
            names.push_back(text);
        }
        return {};
    }
    if (only.key() == "as_none") return {};
    return std::unexpected(
        Error(ErrorCode::NotSupported, fmt::format("its result ({}) depends on data or is no tensor", only.key())));
}

}  // namespace

Result<Call> Call::read(Json node, Builder& builder, Names& names) {
    Call call(builder, names);
    if (const Json name = node.find("name")) call.node_name_ = name.text().value_or("");
    TRY_ASSIGN(const Json inputs, node.member("inputs"));
    TRY(inputs.array());
    for (const Json input : each(inputs)) {
        TRY_ASSIGN(const Json name, input.member("name"));
        TRY_ASSIGN(const auto text, name.text());
        TRY_ASSIGN(const Json arg, input.member("arg"));
        TRY_ASSIGN(const Json only, arg.only());
        if (call.find(text) != nullptr) return std::unexpected(name.error(fmt::format("'{}' is passed twice", text)));
        call.arguments_.push_back({text, only});
    }
    TRY_ASSIGN(const Json outputs, node.member("outputs"));
    TRY(outputs.array());
    for (const Json output : each(outputs)) TRY(collect_result(output, call.result_names_));
    return call;
}

Call::Argument* Call::find(std::string_view name) {
    for (Argument& a : arguments_)
        if (a.name == name) return &a;
    // dropout_ and others call "self" what their plain form calls "input".
    if (name == "input") return find("self");
    return nullptr;
}

const Call::Argument* Call::find(std::string_view name) const {
    return const_cast<Call*>(this)->find(name);
}

bool Call::has(std::string_view name) const {
    const Argument* a = find(name);
    return a != nullptr && a->value.key() != "as_none";
}

void Call::ignore(std::initializer_list<std::string_view> list) {
    for (const auto name : list)
        if (Argument* a = find(name)) a->read = true;
}

std::optional<std::string_view> Call::unread() const {
    for (const Argument& a : arguments_)
        if (!a.read) return a.name;
    return std::nullopt;
}

Result<Json> Call::argument(std::string_view name) {
    Argument* a = find(name);
    if (a == nullptr) return failure(ErrorCode::InvalidProgram, "argument '{}' is missing", name);
    a->read = true;
    return a->value;
}

Error Call::wrong_tag(std::string_view name, Json value) const {
    const bool symbolic = value.key().starts_with("as_sym");
    return {symbolic ? ErrorCode::NotSupported : ErrorCode::InvalidProgram,
            symbolic ? fmt::format("argument '{}' is a size that is known only at run time", name)
                     : fmt::format("argument '{}' is of the wrong kind ({})", name, value.key()),
            symbolic ? "Sizes must be fixed: export without dynamic_shapes." : ""};
}

std::string_view Call::operand_name() const {
    for (const Argument& a : arguments_)
        if (a.value.key() == "as_tensor")
            if (const Json name = a.value.find("name")) return name.text().value_or("");
    return {};
}

bool Call::is_tensor(std::string_view name) const {
    const Argument* a = find(name);
    return a != nullptr && a->value.key() == "as_tensor";
}

Result<Bound> Call::bound(std::string_view name) {
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() != "as_tensor") return std::unexpected(wrong_tag(name, value));
    TRY_ASSIGN(const Json text, value.member("name"));
    TRY_ASSIGN(const auto tensor_name, text.text());
    return names_->lookup(tensor_name);
}

namespace {
Result<ValueId> of_reals(const Result<Bound>& bound, std::string_view name) {
    if (!bound) return std::unexpected(bound.error());
    if (bound->integers)
        return failure(ErrorCode::NotSupported, "'{}' is used as quantized integers, without a dequantize", name);
    return bound->id;
}
}  // namespace

Result<ValueId> Call::tensor(std::string_view name) {
    return of_reals(bound(name), name);
}

Result<ValueId> Call::moved(std::string_view name) {
    TRY_ASSIGN(const Bound from, bound(name));
    integers_ |= from.integers;
    return from.id;
}

Result<ValueId> Call::optional_tensor(std::string_view name) {
    if (!has(name)) {
        ignore({name});
        return kNoValue;
    }
    return tensor(name);
}

Result<std::vector<ValueId>> Call::tensors(std::string_view name) {
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() != "as_tensors") return std::unexpected(wrong_tag(name, value));
    TRY(value.array());
    std::vector<ValueId> out;
    for (const Json item : each(value)) {
        TRY_ASSIGN(const Json text, item.member("name"));
        TRY_ASSIGN(const auto tensor_name, text.text());
        TRY_ASSIGN(const Bound from, names_->lookup(tensor_name));
        if (!out.empty() && from.integers != integers_)
            return failure(ErrorCode::NotSupported, "'{}' mixes quantized integers and reals", name);
        integers_ |= from.integers;
        out.push_back(from.id);
    }
    return out;
}

Result<ValueId> Call::tensor_or_number(std::string_view name) {
    if (is_tensor(name)) return tensor(name);
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() == "as_int") {
        TRY_ASSIGN(const auto v, value.integer());
        const float number = static_cast<float>(v);
        return b.value(float_constant(std::string(name), {}, {&number, 1}));
    }
    if (value.key() == "as_float") {
        TRY_ASSIGN(const auto v, value.number());
        const float number = static_cast<float>(v);
        return b.value(float_constant(std::string(name), {}, {&number, 1}));
    }
    return std::unexpected(wrong_tag(name, value));
}

Result<std::int64_t> Call::integer(std::string_view name, std::optional<std::int64_t> usual) {
    if (usual && !has(name)) return ignore({name}), *usual;
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() == "as_int") return value.integer();
    if (value.key() == "as_sym_int")
        if (const Json fixed = value.find("as_int")) return fixed.integer();
    return std::unexpected(wrong_tag(name, value));
}

Result<double> Call::number(std::string_view name, std::optional<double> usual) {
    if (usual && !has(name)) return ignore({name}), *usual;
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() == "as_int" || value.key() == "as_float") return value.number();
    if (value.key() == "as_bool") {
        TRY_ASSIGN(const bool v, value.boolean());
        return v ? 1.0 : 0.0;
    }
    return std::unexpected(wrong_tag(name, value));
}

Result<bool> Call::boolean(std::string_view name, std::optional<bool> usual) {
    if (usual && !has(name)) return ignore({name}), *usual;
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() == "as_bool") return value.boolean();
    return std::unexpected(wrong_tag(name, value));
}

Result<std::string_view> Call::text(std::string_view name, std::optional<std::string_view> usual) {
    if (usual && !has(name)) return ignore({name}), *usual;
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() == "as_string") return value.text();
    return std::unexpected(wrong_tag(name, value));
}

Result<std::vector<std::int64_t>> Call::integers(std::string_view name,
                                                 std::optional<std::vector<std::int64_t>> usual) {
    if (usual && !has(name)) return ignore({name}), *usual;
    TRY_ASSIGN(const Json value, argument(name));
    std::vector<std::int64_t> out;
    if (value.key() == "as_int") {
        TRY_ASSIGN(const auto only, value.integer());
        out.push_back(only);
        return out;
    }
    if (value.key() != "as_ints" && value.key() != "as_sym_ints") return std::unexpected(wrong_tag(name, value));
    TRY(value.array());
    for (const Json item : each(value)) {
        Json number = item;
        if (value.key() == "as_sym_ints") {
            TRY_ASSIGN(number, item.only());
            if (number.key() != "as_int") return std::unexpected(wrong_tag(name, value));
        }
        TRY_ASSIGN(const auto v, number.integer());
        out.push_back(v);
    }
    return out;
}

Result<std::vector<double>> Call::numbers(std::string_view name) {
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() != "as_floats" && value.key() != "as_ints") return std::unexpected(wrong_tag(name, value));
    TRY(value.array());
    std::vector<double> out;
    for (const Json item : each(value)) {
        TRY_ASSIGN(const auto v, item.number());
        out.push_back(v);
    }
    return out;
}

Result<std::vector<std::int64_t>> Call::per_dimension(std::string_view name, std::size_t count,
                                                      std::optional<std::int64_t> usual) {
    std::optional<std::vector<std::int64_t>> filled;
    if (usual) filled.emplace(count, *usual);
    TRY_ASSIGN(auto list, integers(name, filled));
    if (list.size() == 1) list.assign(count, list[0]);
    if (list.size() != count)
        return failure(ErrorCode::InvalidProgram, "argument '{}' has {} numbers for {} dimensions", name, list.size(),
                       count);
    return list;
}

Result<RawType> Call::dtype(std::string_view name) {
    TRY_ASSIGN(const Json value, argument(name));
    if (value.key() != "as_scalar_type" && value.key() != "as_int") return std::unexpected(wrong_tag(name, value));
    return read_dtype(value);
}

Result<int> Call::dimension(std::string_view name, std::size_t rank, std::optional<std::int64_t> usual) {
    TRY_ASSIGN(const auto dim, integer(name, usual));
    const auto most = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
    if (dim < -most || dim >= most)
        return failure(ErrorCode::InvalidProgram, "'{}' is {} for a tensor of rank {}", name, dim, rank);
    return static_cast<int>(dim < 0 ? dim + most : dim);
}

}  // namespace talpa::compiler::import::pt2
