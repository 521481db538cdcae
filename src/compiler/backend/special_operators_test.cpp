// Operators that the random networks do not reach: bilinear resizing of LiteRT's kind, 16-bit additions in one
// operation, matrix products with and without a batch, strides of patches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "compiler/backend/integer_reference_for_test.h"
#include "compiler/backend/run_for_test.h"

namespace talpa::compiler {
namespace {

Value map(const std::string& name, Shape shape, DType type, double scale, std::int32_t zero_point = 0) {
    Value v;
    v.name = name;
    v.shape = std::move(shape);
    v.quantization = Quantization{};
    v.quantization->type = type;
    v.quantization->scales = {scale};
    v.quantization->zero_points = {zero_point};
    if (type == DType::Int16) {
        v.quantization->min = -32768;
        v.quantization->max = 32767;
    }
    return v;
}

std::vector<std::int64_t> numbers(const Value& v, std::mt19937& random) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(element_count(v.shape)));
    const Quantization& q = *v.quantization;
    for (auto& n : out) {
        n = q.min + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(q.max - q.min + 1));
        if (random() % 16 == 0) n = random() % 2 == 0 ? q.min : q.max;
    }
    return out;
}

struct Ran {
    std::vector<std::int64_t> got, wanted;
    CompileReport report;
};

// Inputs at random; all of it must be on the NPU.
Ran run(const Graph& graph, std::uint32_t seed, bool reference = true) {
    std::mt19937 random(seed);
    testing::IntegerReference plain(graph);
    std::vector<std::vector<std::uint8_t>> inputs;
    for (const ValueId id : graph.inputs) {
        const auto n = numbers(graph[id], random);
        plain.set(id, n);
        inputs.push_back(testing::to_bytes(n, graph[id].stored_type()));
    }
    Ran r;
    auto result = testing::compile_and_run(graph, inputs);
    EXPECT_TRUE(result.has_value()) << result.error().describe();
    if (!result) return r;
    EXPECT_TRUE(result->report.cpu_nodes.empty());
    const ValueId out = graph.outputs[0];
    r.got = testing::to_numbers(result->outputs[0], graph[out].stored_type());
    r.report = std::move(result->report);
    if (reference) {
        plain.run();
        r.wanted = plain[out];
    }
    return r;
}

TEST(SpecialOperators, SixteenBitSumsOfScalesAPowerOfTwoApartAreOneOperation) {
    for (const int apart : {0, 1, 5, 11, -3})
        for (const Op op : {Op::Add, Op::Sub})
            for (const double out_scale : {0.25, 0.013, 3.0}) {
                Graph g;
                const ValueId a = g.add_value(map("a", {1, 9, 7, 19}, DType::Int16, 0.01)),
                              b = g.add_value(map("b", {1, 9, 7, 19}, DType::Int16, std::ldexp(0.01, apart)));
                g.inputs = {a, b};
                const double larger = std::ldexp(0.01, std::max(apart, 0));
                g.outputs = {g.add_node(op, {a, b}, BinaryAttr{},
                                        map("sum", {1, 9, 7, 19}, DType::Int16, larger * out_scale), {})};
                const Ran r = run(g, static_cast<std::uint32_t>(apart + 40));
                EXPECT_EQ(r.got, r.wanted) << apart << " " << out_scale;
                ASSERT_EQ(r.report.delegates.size(), 1u);
                // Beside copies in and out; a step may run in stripes.
                std::set<std::string> steps;
                for (const OperationOrigin& o : r.report.origins)
                    if (!o.operation.starts_with(npu::op_kind_name(npu::OpKind::Dma))) steps.insert(o.operation);
                EXPECT_EQ(steps.size(), 1u) << apart << " " << out_scale;
            }
}

TEST(SpecialOperators, LiteRtsBilinearDoubling) {
    for (const bool middle : {true, false})
        for (const DType type : {DType::Int8, DType::UInt8})
            for (const Shape& shape : {Shape{1, 1, 1, 3}, Shape{1, 5, 4, 17}, Shape{1, 12, 9, 2}}) {
                Graph g;
                g.arithmetic = Arithmetic::TfLite;
                Value in = map("in", shape, type, 0.1, type == DType::UInt8 ? 128 : 3);
                if (type == DType::UInt8) {
                    in.quantization->min = 0;
                    in.quantization->max = 255;
                }
                Value out = in;
                out.name = "out";
                out.shape[1] *= 2;
                out.shape[2] *= 2;
                const ValueId x = g.add_value(in);
                g.inputs = {x};
                ResizeAttr attr;
                attr.mode = ResizeAttr::Mode::Bilinear;
                attr.half_pixel = middle;
                g.outputs = {g.add_node(Op::Resize, {x}, attr, out, {})};
                const Ran r = run(g, 5, false);
                std::mt19937 random(5);
                const auto n = numbers(g[x], random);
                // The definition: sample positions in the input, their neighbours' share, halves away from zero.
                const auto source = [&](std::int64_t at, std::int64_t size) {
                    const double s = middle ? (static_cast<double>(at) + 0.5) / 2 - 0.5 : static_cast<double>(at) / 2;
                    return std::pair{std::max(0.0, s), size};
                };
                std::size_t wrong = 0, i = 0;
                for (std::int64_t oy = 0; oy < out.shape[1]; ++oy)
                    for (std::int64_t ox = 0; ox < out.shape[2]; ++ox)
                        for (std::int64_t c = 0; c < shape[3]; ++c, ++i) {
                            const auto [sy, h] = source(oy, shape[1]);
                            const auto [sx, w] = source(ox, shape[2]);
                            const auto y0 = static_cast<std::int64_t>(sy), x0 = static_cast<std::int64_t>(sx);
                            const double fy = sy - static_cast<double>(y0), fx = sx - static_cast<double>(x0);
                            const auto pixel = [&](std::int64_t y, std::int64_t px) {
                                return static_cast<double>(n[static_cast<std::size_t>(
                                    (std::min(y, h - 1) * w + std::min(px, w - 1)) * shape[3] + c)]);
                            };
                            const double sum = (1 - fy) * ((1 - fx) * pixel(y0, x0) + fx * pixel(y0, x0 + 1)) +
                                               fy * ((1 - fx) * pixel(y0 + 1, x0) + fx * pixel(y0 + 1, x0 + 1));
                            if (r.got.size() <= i || static_cast<double>(r.got[i]) != std::round(sum)) ++wrong;
                        }
                EXPECT_EQ(wrong, 0u) << i << " elements, middle " << middle;
            }
}

TEST(SpecialOperators, ProductsOfTwoActivations) {
    struct Case {
        Shape a, b, out;
    };
    for (const Case& c : {Case{{5, 7}, {7, 3}, {5, 3}}, Case{{3, 30}, {30, 40}, {3, 40}},
                          Case{{2, 4, 6, 16}, {2, 4, 16, 6}, {2, 4, 6, 6}}, Case{{1, 9, 1}, {1, 1, 9}, {1, 9, 9}},
                          Case{{4, 1, 33}, {33, 20}, {4, 1, 20}}}) {
        Graph g;
        const ValueId a = g.add_value(map("a", c.a, DType::Int8, 0.02, 7)),
                      b = g.add_value(map("b", c.b, DType::Int8, 0.05, -128));
        g.inputs = {a, b};
        const double depth = static_cast<double>(c.a.back());
        g.outputs = {g.add_node(Op::MatMul, {a, b}, NoAttr{},
                                map("product", c.out, DType::Int8, 0.02 * 0.05 * 70 * std::sqrt(depth), -9), {})};
        const Ran r = run(g, 11);
        EXPECT_EQ(r.got, r.wanted);
    }
}

// Averages by another number than the window has: the zero point does not cancel.
TEST(SpecialOperators, AveragesByAnotherDivisor) {
    for (const std::int64_t divisor : {3, 4, 7})
        for (const std::int64_t padding : {0, 1}) {
            Graph g;
            const Value in = map("in", {1, 6, 8, 5}, DType::Int8, 0.05, 21);
            g.inputs = {g.add_value(in)};
            PoolAttr a;
            a.kernel = a.stride = {2, 2};
            a.padding = {padding, padding, padding, padding};
            a.divisor = divisor;
            const std::int64_t height = 3 + padding, width = 4 + padding;
            g.outputs = {g.add_node(Op::AvgPool2d, {g.inputs[0]}, a,
                                    map("out", {1, height, width, 5}, DType::Int8, 0.05, 21), {})};
            std::mt19937 random(5);
            const auto x = numbers(in, random);
            const Ran r = run(g, 5, false);
            ASSERT_EQ(r.got.size(), static_cast<std::size_t>(height * width * 5));
            std::size_t i = 0;
            for (std::int64_t y = 0; y < height; ++y)
                for (std::int64_t w = 0; w < width; ++w)
                    for (std::int64_t c = 0; c < 5; ++c, ++i) {
                        std::int64_t sum = 0;
                        for (std::int64_t ky = 2 * y - padding; ky < 2 * y - padding + 2; ++ky)
                            for (std::int64_t kx = 2 * w - padding; kx < 2 * w - padding + 2; ++kx)
                                if (ky >= 0 && ky < 6 && kx >= 0 && kx < 8)
                                    sum += x[static_cast<std::size_t>((ky * 8 + kx) * 5 + c)] - 21;
                        const double wanted =
                            std::clamp(static_cast<double>(sum) / static_cast<double>(divisor) + 21, -128.0, 127.0);
                        ASSERT_NEAR(static_cast<double>(r.got[i]), wanted, 0.51) << divisor << " " << padding;
                    }
        }
}

// A vision transformer's first layer, and strides that divide nothing.
TEST(SpecialOperators, StridesAboveThree) {
    struct Case {
        std::int64_t height, width, depth, kernel, stride, padding, groups;
    };
    for (const Case& c : {Case{32, 32, 3, 8, 8, 0, 1}, Case{33, 37, 5, 7, 4, 3, 1}, Case{20, 21, 16, 3, 5, 1, 16},
                          Case{30, 11, 8, 9, 4, 4, 2}, Case{16, 64, 2, 4, 16, 0, 1}}) {
        Graph g;
        const ValueId x = g.add_value(map("in", {1, c.height, c.width, c.depth}, DType::Int8, 0.05, 3));
        g.inputs = {x};
        const std::int64_t outputs = c.groups == 1 ? 24 : c.depth;
        Value w = map("w", {outputs, c.kernel, c.kernel, c.depth / c.groups}, DType::Int8, 0.01);
        std::mt19937 random(3);
        auto bytes = std::make_shared<Bytes>(static_cast<std::size_t>(element_count(w.shape)));
        for (auto& b : *bytes) b = static_cast<std::uint8_t>(static_cast<int>(random() % 255) - 127);
        w.constant = std::move(bytes);
        ConvAttr a;
        a.stride = {c.stride, c.stride};
        a.padding = {c.padding, c.padding, c.padding, c.padding};
        a.groups = c.groups;
        const auto out = [&](std::int64_t size) { return (size + 2 * c.padding - c.kernel) / c.stride + 1; };
        const ValueId weight = g.add_value(w);
        g.outputs = {g.add_node(Op::Conv2d, {x, weight, kNoValue}, a,
                                map("out", {1, out(c.height), out(c.width), outputs}, DType::Int8, 1.5, -4), {})};
        const Ran r = run(g, 17);
        EXPECT_EQ(r.got, r.wanted) << c.kernel << " " << c.stride;
    }
}

// A clamp that joined the operator holds: -1 and 2 are -30 and 30 in steps of 0.05 from -10.
TEST(SpecialOperators, PreluKeepsItsClamp) {
    Graph g;
    const ValueId x = g.add_value(map("x", {1, 8, 8, 16}, DType::Int8, 0.1));
    Value slope = map("slope", {1}, DType::Int8, 0.01);
    slope.constant = std::make_shared<Bytes>(Bytes{50});
    g.inputs = {x};
    const ValueId s = g.add_value(slope);
    g.outputs = {
        g.add_node(Op::Prelu, {x, s}, BinaryAttr{{-1, 2}}, map("y", {1, 8, 8, 16}, DType::Int8, 0.05, -10), {})};
    const Ran r = run(g, 3, false);
    ASSERT_FALSE(r.got.empty());
    EXPECT_EQ(std::ranges::min(r.got), -30);
    EXPECT_EQ(std::ranges::max(r.got), 30);
}

// Its output in the place of its input would look as if the NPU had done nothing.
TEST(SpecialOperators, ANetworkThatChangesNothingIsTakenForOneThatRan) {
    Graph g;
    const ValueId in = g.add_value(map("in", {1, 16, 16, 8}, DType::Int8, 0.1));
    g.inputs = {in};
    SliceAttr rows;
    rows.starts = {0, 0, 0, 0};
    rows.ends = {1, 2, 16, 8};
    rows.steps = {1, 1, 1, 1};
    const Shape shape{1, 2, 16, 8};
    const ValueId part = g.add_node(Op::Slice, {in}, rows, map("part", shape, DType::Int8, 0.1), {}),
                  least =
                      g.add_node(Op::Minimum, {part, part}, BinaryAttr{}, map("least", shape, DType::Int8, 0.1), {});
    g.outputs = {g.add_node(Op::Maximum, {least, least}, BinaryAttr{}, map("most", shape, DType::Int8, 0.1), {})};
    const Ran r = run(g, 1);
    EXPECT_EQ(r.got, r.wanted);
    EXPECT_FALSE(r.got.empty());
}

// The first row of a cumulative sum is its input's first row: what an output is watched by may be all in it.
TEST(SpecialOperators, CumulativeSumsBeginAsTheirInput) {
    for (const std::int64_t rows : {4, 64}) {
        Graph g;
        const ValueId x = g.add_value(map("x", {1, rows, 2048}, DType::Int8, 0.02, 3));
        g.inputs = {x};
        const ValueId once =
            g.add_node(Op::CumSum, {x}, ReduceAttr{{1}, true}, map("once", {1, rows, 2048}, DType::Int8, 0.02, 3));
        g.outputs = {
            g.add_node(Op::CumSum, {once}, ReduceAttr{{1}, true}, map("twice", {1, rows, 2048}, DType::Int8, 0.02, 3))};
        const Ran r = run(g, static_cast<std::uint32_t>(rows));
        EXPECT_EQ(r.got, r.wanted) << rows;
    }
}

}  // namespace
}  // namespace talpa::compiler
