// Where uint8 meets int8: every one of the 256 numbers through a change of quantization, a function and a maximum,
// against the real numbers rounded to the result's grid.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "compiler/backend/run_for_test.h"

namespace talpa::compiler {
namespace {

Quantization quantization(DType type, double scale, std::int32_t zero) {
    Quantization q;
    q.type = type;
    q.scales = {scale};
    q.zero_points = {zero};
    if (type == DType::UInt8) q.min = 0, q.max = 255;
    return q;
}

Value value(const char* name, const Quantization& q) {
    Value v;
    v.name = name;
    v.shape = {1, 16, 16, 1};
    v.quantization = q;
    return v;
}

std::vector<std::int64_t> all_of(DType type) {
    std::vector<std::int64_t> n(256);
    std::iota(n.begin(), n.end(), type == DType::UInt8 ? 0 : -128);
    return n;
}

double real(std::int64_t stored, const Quantization& q) {
    return static_cast<double>(stored - q.zero_points[0]) * q.scales[0];
}

std::int64_t stored(double real, const Quantization& q) {
    const auto n = static_cast<std::int64_t>(std::nearbyint(real / q.scales[0])) + q.zero_points[0];
    return std::clamp<std::int64_t>(n, q.min, q.max);
}

/// What `graph`, of one output, makes of the inputs; empty after a failure.
std::vector<std::int64_t> run(const Graph& graph, const std::vector<std::vector<std::int64_t>>& numbers) {
    std::vector<std::vector<std::uint8_t>> inputs;
    for (std::size_t i = 0; i < numbers.size(); ++i)
        inputs.push_back(testing::to_bytes(numbers[i], graph[graph.inputs[i]].stored_type()));
    const auto result = testing::compile_and_run(graph, inputs);
    EXPECT_TRUE(result.has_value()) << result.error().describe();
    if (!result) return {};
    EXPECT_TRUE(result->report.cpu_nodes.empty());
    return testing::to_numbers(result->outputs[0], graph[graph.outputs[0]].stored_type());
}

struct Pairing {
    Quantization from, to;
    [[nodiscard]] std::string text() const {
        return std::string(dtype_name(from.type)) + " " + std::to_string(from.scales[0]) + " to " +
               dtype_name(to.type) + " " + std::to_string(to.scales[0]);
    }
};

// Quotients of odd numbers, so that no real number lies half way between two results.
std::vector<Pairing> pairings() {
    std::vector<Pairing> all;
    const std::pair<double, double> scales[] = {{0.031, 0.047}, {0.047, 0.031}, {0.035, 0.033},
                                                {0.099, 0.031}, {0.031, 0.099}, {0.031, 0.031}};
    for (const auto& [a, b] : scales)
        for (const std::int32_t shift : {0, 5, -77}) {
            all.push_back({quantization(DType::UInt8, a, 128 + shift), quantization(DType::Int8, b, 3 - shift)});
            all.push_back({quantization(DType::Int8, a, shift), quantization(DType::UInt8, b, 131 + shift)});
        }
    return all;
}

TEST(SignChange, RequantizeRoundsTheRealNumber) {
    for (const Arithmetic arithmetic : {Arithmetic::Tosa, Arithmetic::TfLite})
        for (const Pairing& p : pairings()) {
            // LiteRT's two roundings are one for factors of a half and more only.
            if (arithmetic == Arithmetic::TfLite && p.from.scales[0] < p.to.scales[0] / 2) continue;
            SCOPED_TRACE(p.text());
            Graph g;
            g.arithmetic = arithmetic;
            g.inputs = {g.add_value(value("in", p.from))};
            g.outputs = {g.add_node(Op::Requantize, {g.inputs[0]}, NoAttr{}, value("out", p.to))};
            const auto numbers = all_of(p.from.type), got = run(g, {numbers});
            ASSERT_EQ(got.size(), 256u);
            for (std::size_t i = 0; i < 256; ++i)
                ASSERT_EQ(got[i], stored(real(numbers[i], p.from), p.to)) << numbers[i];
        }
}

TEST(SignChange, FunctionsLookUpTheRightEntry) {
    for (const Pairing& p : pairings()) {
        SCOPED_TRACE(p.text());
        Graph g;
        g.inputs = {g.add_value(value("in", p.from))};
        g.outputs = {g.add_node(Op::Tanh, {g.inputs[0]}, UnaryAttr{}, value("out", p.to))};
        const auto numbers = all_of(p.from.type), got = run(g, {numbers});
        ASSERT_EQ(got.size(), 256u);
        for (std::size_t i = 0; i < 256; ++i)
            ASSERT_EQ(got[i], stored(std::tanh(real(numbers[i], p.from)), p.to)) << numbers[i];
    }
}

TEST(SignChange, AMaximumOfBothKindsIsTheLargerRealNumber) {
    for (const Pairing& p : pairings()) {
        SCOPED_TRACE(p.text());
        // The second operand is in the result's type and the first's scale.
        const Quantization second = quantization(p.to.type, p.from.scales[0], p.to.zero_points[0]);
        Graph g;
        g.inputs = {g.add_value(value("a", p.from)), g.add_value(value("b", second))};
        g.outputs = {g.add_node(Op::Maximum, {g.inputs[0], g.inputs[1]}, BinaryAttr{}, value("out", p.to))};
        const auto a = all_of(p.from.type);
        auto b = all_of(second.type);
        for (std::size_t i = 0; i < 256; ++i) b[i] = all_of(second.type)[i * 37 % 256];
        const auto got = run(g, {a, b});
        ASSERT_EQ(got.size(), 256u);
        for (std::size_t i = 0; i < 256; ++i)
            ASSERT_EQ(got[i], stored(std::max(real(a[i], p.from), real(b[i], second)), p.to)) << a[i] << " " << b[i];
    }
}

}  // namespace
}  // namespace talpa::compiler
