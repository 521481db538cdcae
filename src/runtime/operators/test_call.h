// For tests: calls an operator of the table by its name with values written down in the test.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/operators/all.h"

namespace talpa::runtime::operators::testing {

inline const Operator& operator_named(std::string_view name) {
    for (const Operator& op : all_operators())
        if (op.name == name) return op;
    static constexpr Operator kNone{"none", 0, "", nullptr};
    ADD_FAILURE() << "no operator " << name;
    return kNone;
}

inline Value integer(std::int64_t i) {
    Value v;
    v.kind = Value::Kind::Int;
    v.i = i;
    return v;
}
inline Value real(double d) {
    Value v;
    v.kind = Value::Kind::Double;
    v.d = d;
    return v;
}
inline Value tensor(Tensor& t) {
    Value v;
    v.kind = Value::Kind::Tensor;
    v.tensor = &t;
    return v;
}

// Calls with these values; the last one is the output and is returned, or the error's text.
struct Outcome {
    Value value;
    std::string error;
};
inline Outcome call(std::string_view name, std::vector<Value> values) {
    const Operator& op = operator_named(name);
    std::vector<std::uint32_t> indices(values.size());
    for (std::uint32_t k = 0; k < indices.size(); ++k) indices[k] = k;
    Arguments args(op.name, values, indices, {});
    auto result = check_kinds(op, args);
    if (result) result = op.run(args);
    if (result) return {values.back(), ""};
    std::array<char, 300> text;
    return {values.back(), std::string(result.error().render(text))};
}

/// A contiguous tensor with memory of its own.
struct Filled {
    std::vector<std::uint8_t> memory;
    Tensor t;
};
template <typename T>
[[nodiscard]] Filled filled(ScalarType type, std::vector<std::int32_t> sizes, std::vector<T> elements) {
    Filled f;
    f.memory.resize(elements.size() * sizeof(T));
    if (!elements.empty()) std::memcpy(f.memory.data(), elements.data(), f.memory.size());
    f.t.type = type;
    for (const std::int32_t size : sizes) {
        f.t.dim_order[f.t.rank] = f.t.rank;
        f.t.sizes[f.t.rank++] = size;
    }
    f.t.data = f.memory.data();
    f.t.capacity_bytes = f.memory.size();
    EXPECT_EQ(f.t.size_bytes(), f.memory.size());
    return f;
}
[[nodiscard]] inline Filled floats(std::vector<std::int32_t> sizes, std::vector<float> elements) {
    return filled<float>(ScalarType::Float32, std::move(sizes), std::move(elements));
}
[[nodiscard]] inline Filled int64s(std::vector<std::int32_t> sizes, std::vector<std::int64_t> elements) {
    return filled<std::int64_t>(ScalarType::Int64, std::move(sizes), std::move(elements));
}

}  // namespace talpa::runtime::operators::testing
