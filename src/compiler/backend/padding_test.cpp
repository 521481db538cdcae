// Every padding there is for kernels of 1 to 5, strides of 1 to 3 and widths of 1 to 20: convolution, depthwise and
// pools, against plain loops; along rows, and along columns, where stripes are cut. All that share a width and a kernel
// are outputs of one network.
#include <gtest/gtest.h>

#include <random>

#include "compiler/backend/integer_reference_for_test.h"
#include "compiler/backend/run_for_test.h"

namespace talpa::compiler {
namespace {

class PaddedNetwork {
  public:
    /// `down`: the width is the height, and the kernel a column.
    PaddedNetwork(std::int64_t width, std::int64_t kernel, bool down)
        : random_(static_cast<unsigned>(width * 8 + kernel)), down_(down) {
        Value in;
        in.name = "in";
        in.shape = turned({1, 2, width, 3});
        in.quantization = quantization(0.05, 3);
        input_ = graph.add_value(in);
        graph.inputs = {input_};
        for (std::int64_t stride = 1; stride <= 3; ++stride)
            for (std::int64_t left = 0; left < kernel; ++left)
                for (std::int64_t right = 0; right < kernel; ++right) {
                    const std::int64_t reach = width + left + right - kernel;
                    if (reach < 0) continue;
                    const Shape shape{1, 2, reach / stride + 1, 3};
                    // Windows that hold nothing but padding are no averages.
                    const bool all_full = left < kernel && right < kernel && (shape[2] - 1) * stride - left < width;
                    convolution(kernel, stride, left, right, shape, 1);
                    convolution(kernel, stride, left, right, shape, 3);
                    if (all_full) pool(Op::MaxPool2d, kernel, stride, left, right, shape);
                    if (all_full) pool(Op::AvgPool2d, kernel, stride, left, right, shape);
                }
    }
    Graph graph;

    std::vector<std::int64_t> numbers() {
        std::vector<std::int64_t> n(static_cast<std::size_t>(element_count(graph[input_].shape)));
        for (auto& v : n) v = static_cast<std::int64_t>(random_() % 256) - 128;
        return n;
    }

  private:
    [[nodiscard]] Shape turned(Shape s) const {
        if (down_) std::swap(s[1], s[2]);
        return s;
    }
    [[nodiscard]] Pair along(std::int64_t n) const { return down_ ? Pair{n, 1} : Pair{1, n}; }
    [[nodiscard]] Edges edges(std::int64_t before, std::int64_t after) const {
        return down_ ? Edges{before, 0, after, 0} : Edges{0, before, 0, after};
    }
    static Quantization quantization(double scale, std::int32_t zero) {
        Quantization q;
        q.scales = {scale};
        q.zero_points = {zero};
        return q;
    }
    Value result(const Shape& shape, double scale, std::int32_t zero) {
        Value v;
        v.name = "v" + std::to_string(graph.values.size());
        v.shape = turned(shape);
        v.quantization = quantization(scale, zero);
        return v;
    }
    void convolution(std::int64_t kernel, std::int64_t stride, std::int64_t left, std::int64_t right,
                     const Shape& shape, std::int64_t groups) {
        ConvAttr a;
        a.stride = along(stride);
        a.padding = edges(left, right);
        a.groups = groups;
        Value w;
        w.name = "w" + std::to_string(graph.values.size());
        w.shape = turned({3, 1, kernel, 3 / groups});
        w.quantization = quantization(0.02, 0);
        w.quantization->min = -127;
        Bytes bytes(static_cast<std::size_t>(element_count(w.shape)));
        for (auto& b : bytes) b = static_cast<std::uint8_t>(static_cast<int>(random_() % 255) - 127);
        w.constant = std::make_shared<Bytes>(bytes);
        const ValueId weight = graph.add_value(w);
        graph.outputs.push_back(graph.add_node(Op::Conv2d, {input_, weight, kNoValue}, a, result(shape, 0.2, -7),
                                               Source{"conv", "", "", ""}));
    }
    void pool(Op op, std::int64_t kernel, std::int64_t stride, std::int64_t left, std::int64_t right,
              const Shape& shape) {
        PoolAttr a;
        a.kernel = along(kernel);
        a.stride = along(stride);
        a.padding = edges(left, right);
        graph.outputs.push_back(graph.add_node(op, {input_}, a, result(shape, 0.05, 3), Source{"pool", "", "", ""}));
    }

    std::mt19937 random_;
    bool down_;
    ValueId input_ = kNoValue;
};

void check_all(bool down) {
    std::size_t checked = 0;
    for (std::int64_t width = 1; width <= 20; ++width)
        for (std::int64_t kernel = 1; kernel <= 5; ++kernel) {
            PaddedNetwork net(width, kernel, down);
            if (net.graph.outputs.empty()) continue;
            const auto numbers = net.numbers();
            testing::IntegerReference reference(net.graph);
            reference.set(net.graph.inputs[0], numbers);
            reference.run();
            const auto result = testing::compile_and_run(net.graph, {testing::to_bytes(numbers, DType::Int8)});
            ASSERT_TRUE(result.has_value())
                << "width " << width << " kernel " << kernel << ": " << result.error().describe();
            EXPECT_TRUE(result->report.cpu_nodes.empty());
            for (std::size_t i = 0; i < net.graph.outputs.size(); ++i, ++checked)
                ASSERT_EQ(testing::to_numbers(result->outputs[i], DType::Int8), reference[net.graph.outputs[i]])
                    << "width " << width << " kernel " << kernel << " output " << i;
        }
    EXPECT_GT(checked, 10000u);
}

TEST(Padding, IsExactForEveryKernelStrideAndWidth) {
    check_all(false);
}
TEST(Padding, IsExactForEveryKernelStrideAndHeight) {
    check_all(true);
}

}  // namespace
}  // namespace talpa::compiler
