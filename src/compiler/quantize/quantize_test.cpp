// Post-training quantization on networks small enough to reason about.
#include "compiler/quantize/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/host/file.h"
#include "compiler/floats/executor.h"
#include "compiler/quantize/compare_runs.h"
#include "compiler/quantize/correct.h"
#include "compiler/quantize/equalize.h"
#include "compiler/quantize/samples.h"

namespace talpa::compiler {
namespace {

Value constant(const std::string& name, Shape shape, const std::vector<float>& numbers) {
    Value value{.name = name, .shape = std::move(shape)};
    auto bytes = std::make_shared<Bytes>(numbers.size() * 4);
    std::memcpy(bytes->data(), numbers.data(), bytes->size());
    value.constant = bytes;
    return value;
}

std::vector<float> random_numbers(std::mt19937& random, std::int64_t count, float spread = 1) {
    std::normal_distribution<float> normal(0, spread);
    std::vector<float> numbers(static_cast<std::size_t>(count));
    for (auto& x : numbers) x = normal(random);
    return numbers;
}

/// x -> 3x3 convolution with relu -> 1x1 convolution -> add x -> global mean -> linear.
Graph small_network(std::mt19937& random) {
    Graph g;
    g.inputs = {g.add_value({.name = "x", .shape = {1, 8, 8, 4}})};
    const auto w1 = g.add_value(constant("w1", {16, 3, 3, 4}, random_numbers(random, 576, 0.2f)));
    const auto b1 = g.add_value(constant("b1", {16}, random_numbers(random, 16, 0.1f)));
    const auto w2 = g.add_value(constant("w2", {4, 1, 1, 16}, random_numbers(random, 64, 0.3f)));
    const auto w3 = g.add_value(constant("w3", {10, 4}, random_numbers(random, 40)));
    const auto a = g.add_node(Op::Conv2d, {g.inputs[0], w1, b1}, ConvAttr{.padding = {1, 1, 1, 1}, .clamp = {0, 6}},
                              {.name = "a", .shape = {1, 8, 8, 16}}, {.node = "conv1"});
    const auto b = g.add_node(Op::Conv2d, {a, w2, kNoValue}, ConvAttr{}, {.name = "b", .shape = {1, 8, 8, 4}});
    const auto c = g.add_node(Op::Add, {g.inputs[0], b}, BinaryAttr{}, {.name = "c", .shape = {1, 8, 8, 4}});
    const auto d = g.add_node(Op::Mean, {c}, ReduceAttr{{1, 2}, false}, {.name = "d", .shape = {1, 4}});
    g.outputs = {g.add_node(Op::FullyConnected, {d, w3}, FullyConnectedAttr{}, {.name = "e", .shape = {1, 10}})};
    return g;
}

std::vector<Sample> random_samples(std::mt19937& random, std::size_t count, std::int64_t size) {
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < count; ++i) samples.push_back({random_numbers(random, size)});
    return samples;
}

TEST(Histogram, DoesNotDependOnOrderOrSplit) {
    std::mt19937 random(5);
    std::vector<std::vector<float>> parts;
    for (int i = 0; i < 12; ++i) parts.push_back(random_numbers(random, 500, std::ldexp(1.0f, i % 5)));
    Histogram forward, backward, left, right;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        forward.add(parts[i]);
        backward.add(parts[parts.size() - 1 - i]);
        (i % 3 == 0 ? left : right).add(parts[i]);
    }
    right.add(left);
    EXPECT_EQ(forward.counts(), backward.counts());
    EXPECT_EQ(forward.counts(), right.counts());
    EXPECT_EQ(forward.least(), right.least());
    EXPECT_EQ(forward.total(), 6000u);
    std::uint64_t below = 0;
    for (int i = 0; i < Histogram::kBins / 2; ++i) below += forward.counts()[static_cast<std::size_t>(i)];
    std::uint64_t negative = 0;
    for (const auto& part : parts)
        negative += static_cast<std::uint64_t>(std::ranges::count_if(part, [](float x) { return x < 0; }));
    EXPECT_EQ(below, negative);
}

TEST(Histogram, CountsWhatIsNotFiniteApart) {
    Histogram h;
    h.add(std::vector<float>{1, NAN, 2, INFINITY});
    EXPECT_EQ(h.not_finite(), 2u);
    EXPECT_EQ(h.total(), 2u);
    EXPECT_EQ(h.greatest(), 2);
}

TEST(Range, HoldsZeroAndCutsRareOutliersOnlyWhereThatPays) {
    Histogram h;
    std::mt19937 random(1);
    h.add(random_numbers(random, 30000));
    h.add(std::vector<float>{100});
    const auto all = choose_range(h, Observer::MinMax, 8), mse = choose_range(h, Observer::Mse, 8);
    EXPECT_EQ(all.high, 100);
    EXPECT_LT(mse.high, 100);  // 30,000 numbers in coarser steps outweigh one that is cut
    EXPECT_GT(mse.high, 3);
    Histogram positive;
    positive.add(std::vector<float>{2, 3});
    EXPECT_EQ(choose_range(positive, Observer::MinMax, 8).low, 0);
    for (const auto observer : {Observer::Percentile, Observer::Mse, Observer::Entropy}) {
        const auto range = choose_range(h, observer, 8);
        EXPECT_LE(range.low, -2) << observer_name(observer);  // 30,000 normal numbers reach some 4
        EXPECT_GE(range.high, 2) << observer_name(observer);
        EXPECT_LE(range.high, 100) << observer_name(observer);
        EXPECT_EQ(find_observer(observer_name(observer)), observer);
    }
    const auto q = quantization_for({0, 6}, DType::Int8);
    EXPECT_EQ(q.zero_points[0], -128);
    EXPECT_FLOAT_EQ(static_cast<float>(q.scales[0]), 6.0f / 255);
    EXPECT_EQ(quantization_for({-1, 1}, DType::Int16).zero_points[0], 0);
}

/// A folder of a test's own.
class Folder {
  public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "talpa_samples_XXXXXX").string();
        path = ::mkdtemp(name.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
    void write(const std::string& name, const std::string& text) const {
        ASSERT_TRUE(host::write_text(path / name, text));
    }
    std::filesystem::path path;
};

Graph picture_network() {
    Graph g;
    g.inputs = {g.add_value({.name = "x", .shape = {1, 3, 4, 4}})};
    g.outputs = {g.add_node(Op::Abs, {g.inputs[0]}, UnaryAttr{}, {.name = "y", .shape = {1, 3, 4, 4}})};
    return g;
}

/// A BMP of 4 x 4 (or another size) whose bytes count up.
std::string bitmap(std::uint32_t width, std::uint32_t height) {
    const std::uint32_t row = (width * 3 + 3) / 4 * 4, size = 54 + row * height;
    std::string file(size, '\0');
    const auto put = [&](std::size_t at, std::uint32_t value, std::size_t bytes) {
        for (std::size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
    };
    file[0] = 'B';
    file[1] = 'M';
    put(2, size, 4);
    put(10, 54, 4);
    put(14, 40, 4);
    put(18, width, 4);
    put(22, height, 4);
    put(26, 1, 2);
    put(28, 24, 2);
    for (std::uint32_t y = 0; y < height; ++y)
        for (std::uint32_t x = 0; x < width * 3; ++x) file[54 + y * row + x] = static_cast<char>(y * 50 + x);
    return file;
}

TEST(Samples, AnEmptyFolderSaysWhatIsWanted) {
    const Folder folder;
    const auto loaded = load_samples(folder.path, picture_network(), {}, 100);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().describe(), ::testing::HasSubstr("no picture, .npy or .bin in it"));
    EXPECT_THAT(loaded.error().describe(), ::testing::HasSubstr("typical pictures"));
    EXPECT_FALSE(load_samples(folder.path / "none", picture_network(), {}, 100));
}

/// NumPy's format version 1.0, zeros of float32.
std::string npy(const std::string& shape, std::size_t count) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    std::string file("\x93NUMPY\x01\x00", 8);
    file += {static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
    return file + header + std::string(count * 4, '\0');
}

TEST(Samples, AnArrayHasTheShapeOfTheInputOrOfSeveral) {
    const std::pair<const char*, std::size_t> good[] = {
        {"1, 3, 4, 4", 1}, {"3, 4, 4", 1}, {"5, 3, 4, 4", 5}, {"5, 1, 3, 4, 4", 5}, {"96,", 2}};
    for (const auto& [shape, count] : good) {
        const Folder folder;
        folder.write("a.npy", npy(shape, count * 48));
        const auto loaded = load_samples(folder.path, picture_network(), {}, 100);
        ASSERT_TRUE(loaded) << shape << ": " << loaded.error().describe();
        EXPECT_EQ(loaded->samples.size(), count) << shape;
    }
    for (const char* shape : {"1, 4, 4, 3", "4, 4, 3", "2, 4, 4, 3", "3, 16"}) {
        const Folder folder;
        folder.write("a.npy", npy(shape, std::string_view(shape).starts_with("2") ? 96 : 48));
        const auto loaded = load_samples(folder.path, picture_network(), {}, 100);
        ASSERT_FALSE(loaded) << shape;
        EXPECT_THAT(loaded.error().describe(),
                    ::testing::HasSubstr("a.npy: its shape is [" + std::string(shape) + "]"));
        EXPECT_THAT(loaded.error().describe(), ::testing::HasSubstr("[1, 3, 4, 4]"));
    }
    // Of one channel, first and last are the same numbers.
    Graph grey;
    grey.inputs = {grey.add_value({.name = "x", .shape = {1, 1, 4, 4}})};
    for (const char* shape : {"1, 4, 4, 1", "4, 4", "3, 4, 4, 1"}) {
        const Folder folder;
        folder.write("a.npy", npy(shape, std::string_view(shape).starts_with("3") ? 48 : 16));
        EXPECT_TRUE(load_samples(folder.path, grey, {}, 100)) << shape;
    }
    const Folder folder;
    folder.write("a.npy", npy("1, 3, 4, 4", 48));
    Graph two = picture_network();
    two.inputs.push_back(two.add_value({.name = "z", .shape = {1, 3, 4, 4}}));
    EXPECT_THAT(load_samples(folder.path, two, {}, 100).error().describe(), ::testing::HasSubstr("give .bin files"));
}

TEST(Samples, WhatIsNoPictureIsPassedOverByNameAndNothingElseIsAnError) {
    const Folder folder;
    folder.write("notes.txt", "no picture");
    folder.write("cut.bmp", bitmap(4, 4).substr(0, 60));
    auto loaded = load_samples(folder.path, picture_network(), {}, 100);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().describe(), ::testing::HasSubstr("cut.bmp: "));
    folder.write("good.bmp", bitmap(4, 4));
    loaded = load_samples(folder.path, picture_network(), {}, 100);
    ASSERT_TRUE(loaded) << loaded.error().describe();
    EXPECT_EQ(loaded->samples.size(), 1u);
    EXPECT_EQ(loaded->samples[0].name, "good.bmp");
    EXPECT_EQ(loaded->skipped.size(), 2u);
}

TEST(Samples, APictureOfTheInputsSizeIsNeitherScaledNorCropped) {
    const Folder folder;
    folder.write("a.bmp", bitmap(4, 4));
    folder.write("b.bmp", bitmap(8, 8));
    image::PreprocessSpec spec;
    spec.low = 0;
    spec.high = 255;
    const auto loaded = load_samples(folder.path, picture_network(), spec, 100);
    ASSERT_TRUE(loaded) << loaded.error().describe();
    ASSERT_EQ(loaded->samples.size(), 2u);
    // The bitmap's last row is the picture's first, its first byte of a pixel is blue.
    const auto& exact = loaded->samples[0].inputs[0];
    for (std::size_t y = 0; y < 4; ++y)
        for (std::size_t x = 0; x < 4; ++x)
            EXPECT_EQ(exact[2 * 16 + y * 4 + x], static_cast<float>((3 - y) * 50 + x * 3)) << y << " " << x;
    EXPECT_EQ(loaded->samples[1].inputs[0].size(), 48u);
}

TEST(Samples, ArraysThatDoNotFitTheInputsAreErrors) {
    const Folder folder;
    folder.write("a.bin", std::string(100, '\0'));
    auto loaded = load_samples(folder.path, picture_network(), {}, 100);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().describe(),
                ::testing::HasSubstr("a.bin has 100 bytes; the model's inputs are 192 bytes"));
    std::filesystem::remove(folder.path / "a.bin");
    folder.write("a.bmp", bitmap(4, 4));
    Graph two = picture_network();
    two.inputs.push_back(two.add_value({.name = "z", .shape = {1}}));
    loaded = load_samples(folder.path, two, {}, 100);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().describe(),
                ::testing::HasSubstr("a.bmp is a picture, but the model has no single input"));
}

TEST(Quantize, SmallNetworkStaysCloseToFloat) {
    std::mt19937 random(2);
    const auto graph = small_network(random);
    const auto samples = random_samples(random, 16, 256);
    const auto quantized = quantize(graph, samples, {});
    ASSERT_TRUE(quantized) << quantized.error().describe();
    const auto& g = quantized->graph;
    for (const auto& node : g.nodes) EXPECT_TRUE(g[node.outputs[0]].quantization) << op_name(node.op);
    EXPECT_EQ(g[g.nodes[0].inputs[1]].quantization->scales.size(), 16u);
    EXPECT_EQ(g[g.nodes[0].inputs[2]].stored_type(), DType::Int32);
    EXPECT_GE(g[g.nodes[0].outputs[0]].quantization->zero_points[0], -128);
    const auto calibration = calibrate(graph, samples, 2);
    ASSERT_TRUE(calibration);
    const auto snr = output_snr(g, samples, calibration->outputs, 2);
    ASSERT_TRUE(snr);
    EXPECT_GT(*snr, 25);  // 8 bits over a handful of layers: rounding noise of some 40 dB a layer, mean and sums added
    QuantizeOptions wide;
    wide.activations = Activations::Int16;
    const auto sixteen = quantize(graph, samples, wide);
    ASSERT_TRUE(sixteen);
    EXPECT_GT(*output_snr(sixteen->graph, samples, calibration->outputs, 1), *snr + 6);
    const auto layers = layer_noise(graph, g, samples, 2);
    ASSERT_TRUE(layers);
    EXPECT_EQ(layers->size(), g.nodes.size());
    for (const auto& layer : *layers) {
        EXPECT_GT(layer.snr_db, 30);
        EXPECT_LT(layer.snr_db, 60);
    }
}

/// Two convolutions with a plain addition between, whose channels differ in range a hundredfold.
Graph uneven_network(std::mt19937& random) {
    Graph g;
    g.inputs = {g.add_value({.name = "x", .shape = {1, 6, 6, 8}})};
    auto w1 = random_numbers(random, 64, 0.3f);
    for (std::size_t i = 0; i < w1.size(); ++i) w1[i] *= std::pow(10.0f, static_cast<float>(i / 8) / 4);
    auto w3 = random_numbers(random, 64, 0.3f);
    for (std::size_t i = 0; i < w3.size(); ++i) w3[i] /= std::pow(10.0f, static_cast<float>(i % 8) / 4);
    const auto a = g.add_value(constant("w1", {8, 1, 1, 8}, w1)),
               b = g.add_value(constant("b1", {8}, random_numbers(random, 8))),
               c = g.add_value(constant("w2", {8, 1, 1, 8}, w1)), d = g.add_value(constant("w3", {8, 1, 1, 8}, w3));
    const auto y = g.add_node(Op::Conv2d, {g.inputs[0], a, b}, ConvAttr{}, {.name = "y", .shape = {1, 6, 6, 8}});
    const auto z = g.add_node(Op::Conv2d, {g.inputs[0], c, kNoValue}, ConvAttr{}, {.name = "z", .shape = {1, 6, 6, 8}});
    const auto sum = g.add_node(Op::Add, {y, z}, BinaryAttr{}, {.name = "sum", .shape = {1, 6, 6, 8}});
    g.outputs = {g.add_node(Op::Conv2d, {sum, d, kNoValue}, ConvAttr{}, {.name = "out", .shape = {1, 6, 6, 8}})};
    return g;
}

TEST(Equalize, KeepsWhatTheNetworkComputesAndEvensTheRanges) {
    std::mt19937 random(8);
    const auto graph = uneven_network(random);
    const auto samples = random_samples(random, 8, 288);
    const auto before = calibrate(graph, samples, 1);
    ASSERT_TRUE(before);
    const auto even = equalize(graph, before->channel_peaks, 0.5);
    const auto after = calibrate(even, samples, 1);
    ASSERT_TRUE(after);
    for (std::size_t s = 0; s < samples.size(); ++s)
        EXPECT_GT(snr_db(before->outputs[s], after->outputs[s]), 100);  // float rounding only
    const auto spread = [](const std::vector<double>& peaks) {
        return *std::ranges::max_element(peaks) / *std::ranges::min_element(peaks);
    };
    const auto sum = graph.nodes[2].outputs[0];
    EXPECT_GT(spread(before->channel_peaks[sum]), 30);
    EXPECT_LT(spread(after->channel_peaks[sum]), 10);
    QuantizeOptions with, without;
    without.equalisation = false;
    const auto a = quantize(graph, samples, with), b = quantize(graph, samples, without);
    ASSERT_TRUE(a && b);
    EXPECT_TRUE(a->equalised);
    EXPECT_GT(a->judged_snr_db, b->judged_snr_db + 3);
}

TEST(Equalize, LeavesClampedValuesAlone) {
    std::mt19937 random(9);
    auto graph = small_network(random);  // its first convolution has a ReLU6; its addition reads the input
    const auto before = calibrate(graph, random_samples(random, 2, 256), 1);
    ASSERT_TRUE(before);
    EXPECT_EQ(equalize(graph, before->channel_peaks, 0.5).values.size(), graph.values.size());
}

TEST(CorrectBiases, TakesOutWhatActivationsShift) {
    std::mt19937 random(10);
    const auto graph = small_network(random);
    const auto samples = random_samples(random, 24, 256);
    const auto calibration = calibrate(graph, samples, 1);
    ASSERT_TRUE(calibration);
    // Every value rounded towards the same side: a mean error that only a measurement sees.
    auto q = apply_calibration(graph, *calibration, Observer::MinMax, {});
    ASSERT_TRUE(q);
    auto& first = q->graph[q->graph.nodes[0].outputs[0]].quantization;
    first->max = first->zero_points[0] + (127 - first->zero_points[0]) / 3;
    const auto before = output_snr(q->graph, samples, calibration->outputs, 1);
    ASSERT_TRUE(correct_biases(graph, q->graph, samples, 2));
    const auto after = output_snr(q->graph, samples, calibration->outputs, 1);
    ASSERT_TRUE(before && after);
    EXPECT_GT(*after, *before + 3);
}

TEST(Quantize, MixedGivesResidualsSixteenBitsAndLessNoise) {
    std::mt19937 random(6);
    const auto graph = small_network(random);
    const auto samples = random_samples(random, 16, 256);
    QuantizeOptions options;
    options.activations = Activations::Mixed;
    const auto mixed = quantize(graph, samples, options), plain = quantize(graph, samples, {});
    ASSERT_TRUE(mixed && plain);
    const auto type = [&](std::size_t node) { return mixed->graph[mixed->graph.nodes[node].outputs[0]].stored_type(); };
    EXPECT_EQ(type(0), DType::Int8);
    EXPECT_EQ(type(1), DType::Int16);  // what the addition reads
    EXPECT_EQ(type(2), DType::Int16);  // and writes
    EXPECT_EQ(type(3), DType::Int8);
    const auto a = agreement(graph, mixed->graph, samples, 1), b = agreement(graph, plain->graph, samples, 2);
    ASSERT_TRUE(a && b);
    EXPECT_GT(a->median_snr_db, b->median_snr_db);
    EXPECT_EQ(a->same_top1 + a->different.size(), 16u);
    EXPECT_GE(a->same_top1, 14u);
    EXPECT_EQ(find_activations("mixed"), Activations::Mixed);
    EXPECT_FALSE(find_activations("int4"));
}

TEST(Quantize, DoesNotDependOnThreads) {
    std::mt19937 random(3);
    const auto graph = small_network(random);
    const auto samples = random_samples(random, 9, 256);
    QuantizeOptions two;
    two.threads = 2;
    const auto a = quantize(graph, samples, {}), b = quantize(graph, samples, two);
    ASSERT_TRUE(a && b);
    for (std::size_t i = 0; i < a->graph.values.size(); ++i) {
        EXPECT_EQ(a->graph.values[i].quantization, b->graph.values[i].quantization);
        if (a->graph.values[i].constant) {
            EXPECT_EQ(*a->graph.values[i].constant, *b->graph.values[i].constant);
        }
    }
}

TEST(Quantize, BiasCorrectionTakesOutTheMeanErrorOfRoundedWeights) {
    // One linear layer on a constant input: after correction the output is exact up to the rounding of the bias.
    std::mt19937 random(4);
    Graph g;
    g.inputs = {g.add_value({.name = "x", .shape = {1, 64}})};
    const auto w = g.add_value(constant("w", {8, 64}, random_numbers(random, 512)));
    g.outputs = {
        g.add_node(Op::FullyConnected, {g.inputs[0], w}, FullyConnectedAttr{}, {.name = "y", .shape = {1, 8}})};
    const std::vector<Sample> samples(2, Sample{std::vector<float>(64, 1.0f)});
    const auto calibration = calibrate(g, samples, 1);
    ASSERT_TRUE(calibration);
    const auto error = [&](bool correct) {
        QuantizeOptions options;
        options.bias_correction = correct;
        auto q = apply_calibration(g, *calibration, Observer::MinMax, options);
        EXPECT_TRUE(q);
        auto& graph = q->graph;
        graph[graph.outputs[0]].quantization.reset();  // the output's own rounding is not what is looked at
        const auto executor = FloatExecutor::create(graph);
        FloatExecutor::Workspace workspace;
        const auto y = executor->run(samples[0], workspace);
        double worst = 0;
        for (std::size_t i = 0; i < 8; ++i)
            worst = std::max(worst, static_cast<double>(std::fabs((*y)[0][i] - calibration->outputs[0][i])));
        return worst;
    };
    EXPECT_LT(error(true), 2e-4);
    EXPECT_GT(error(false), 2e-3);
}

TEST(Quantize, SharesAQuantizationWhereNumbersOnlyMove) {
    Graph g;
    g.inputs = {g.add_value({.name = "x", .shape = {1, 4}}), g.add_value({.name = "y", .shape = {1, 4}})};
    const auto joined = g.add_node(Op::Concat, g.inputs, AxisAttr{1}, {.name = "joined", .shape = {1, 8}});
    const auto moved = g.add_node(Op::Reshape, {joined}, NoAttr{}, {.name = "moved", .shape = {2, 4}});
    g.outputs = {g.add_node(Op::Softmax, {moved}, AxisAttr{1}, {.name = "p", .shape = {2, 4}})};
    const std::vector<Sample> samples{{{0, 1, 2, 3}, {-5, 0, 0, 9}}};
    const auto q = quantize(g, samples, {});
    ASSERT_TRUE(q);
    EXPECT_EQ(q->graph[0].quantization, q->graph[moved].quantization);
    EXPECT_EQ(q->graph[1].quantization, q->graph[joined].quantization);
    EXPECT_EQ(q->graph[q->graph.outputs[0]].quantization->scales[0], 1.0 / 256);
    EXPECT_EQ(q->graph[q->graph.outputs[0]].quantization->zero_points[0], -128);
}

TEST(Quantize, LeavesFloatOperatorsAndIndicesAlone) {
    Graph g;
    g.inputs = {g.add_value({.name = "x", .shape = {1, 4}})};
    const auto norm = g.add_node(Op::LayerNorm, g.inputs, NormAttr{1e-5, 1, {1}}, {.name = "n", .shape = {1, 4}});
    const auto best =
        g.add_node(Op::ArgMax, {norm}, ReduceAttr{{1}, false}, {.name = "i", .shape = {1}, .type = DType::Int64});
    g.outputs = {best};
    const std::vector<Sample> samples{{{0, 1, 2, 3}}};
    const auto q = quantize(g, samples, {});
    ASSERT_TRUE(q);
    for (const auto& value : q->graph.values) EXPECT_FALSE(value.quantization) << value.name;
}

// A sum that the NPU has a form of gets numbers of its own; a longer one is left to the CPU, in floats.
// Those which it has no form for stay exact: of more numbers, of 16 bits, of many images.
TEST(Quantize, CumulativeSumsAreQuantizedUpToWhatTheNpuCanDo) {
    struct Case {
        Shape shape;
        int axis;
        Activations activations;
        bool quantized;
    };
    const Case cases[] = {
        {{1, 64}, 1, Activations::Int8, true},       {{1, 65}, 1, Activations::Int8, false},
        {{1, 64}, 1, Activations::Int16, false},     {{512, 64, 2}, 1, Activations::Int8, true},
        {{513, 64, 2}, 1, Activations::Int8, false}, {{513, 2, 64}, 2, Activations::Int8, true},
        {{1, 64}, 1, Activations::Mixed, false},
    };
    for (const Case& c : cases) {
        Graph g;
        ValueId x = g.add_value({.name = "x", .shape = c.shape});
        g.inputs = {x};
        // Of 16 bits, where that pays.
        if (c.activations == Activations::Mixed)
            x = g.add_node(Op::Maximum, {x, x}, BinaryAttr{}, {.name = "same", .shape = c.shape});
        const ValueId sum = g.add_node(Op::CumSum, {x}, ReduceAttr{{c.axis}, true}, {.name = "sum", .shape = c.shape});
        g.outputs = {sum};
        if (c.activations == Activations::Mixed)
            g.outputs = {sum, g.add_node(Op::Add, {x, x}, BinaryAttr{}, {.name = "twice", .shape = c.shape})};
        const std::vector<Sample> samples{{std::vector<float>(static_cast<std::size_t>(element_count(c.shape)), 0.5f)}};
        QuantizeOptions options;
        options.activations = c.activations;
        const auto q = quantize(g, samples, options);
        ASSERT_TRUE(q);
        const auto at = std::ranges::find(q->graph.nodes, Op::CumSum, &Node::op);
        ASSERT_NE(at, q->graph.nodes.end());
        const auto& scale = q->graph[at->outputs[0]].quantization;
        ASSERT_EQ(scale.has_value(), c.quantized) << c.shape[0] << " x " << c.shape[1];
        if (scale) {
            EXPECT_NEAR(scale->scales[0], 32.0 / 255, 0.01) << "it ends at 32";
        }
    }
}

TEST(Quantize, NamesWhatCannotBeAndWhatIsAGuess) {
    Graph g;
    g.inputs = {g.add_value({.name = "x", .shape = {1, 4}})};
    g.outputs = {g.add_node(Op::Log, g.inputs, UnaryAttr{}, {.name = "logs", .shape = {1, 4}})};
    const std::vector<Sample> bad{{{0, 1, 2, 3}}}, still{{{1, 1, 1, 1}}};
    const auto refused = quantize(g, bad, {});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("'logs' had 1 numbers in calibration that are infinite"));
    const auto guessed = quantize(g, still, {});
    ASSERT_TRUE(guessed);
    EXPECT_THAT(guessed->warnings, testing::Contains(testing::HasSubstr("'x' was 1 everywhere")));
    EXPECT_FALSE(quantize(g, {}, {}));
}

}  // namespace
}  // namespace talpa::compiler
