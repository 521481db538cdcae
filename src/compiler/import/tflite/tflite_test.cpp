// The .tflite models of the reference set.
#include "compiler/import/tflite/tflite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "compiler/graph/check.h"
#include "compiler/graph/dump.h"
#include "compiler/import/import.h"

namespace talpa::compiler::import {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

std::size_t count(const Graph& g, Op op) {
    return static_cast<std::size_t>(std::ranges::count(g.nodes, op, &Node::op));
}

TEST(TfLite, ModelsComeIn) {
    TALPA_NEEDS_REFERENCE();
    struct Wanted {
        const char* name;
        std::size_t convolutions, additions;
    };
    // MobileNetV1 and V2 by their papers' tables: 1 + 2 x 13 and 52 convolutions (their classifiers are a convolution
    // in all three).
    for (const Wanted& w : {Wanted{"mobilenet_v1_0.25_128_quant", 28, 0},
                            {"mobilenet_v2_1.0_224_quant", 53, 10},
                            {"tf2_mobilenet_v2_1.0_224_ptq", 53, 10},
                            {"split_concat", 0, 0}}) {
        const auto graph = import_model(reference / "tflite" / (std::string(w.name) + ".tflite"));
        ASSERT_TRUE(graph.has_value()) << w.name << ": " << graph.error().describe();
        EXPECT_EQ(graph->arithmetic, Arithmetic::TfLite);
        EXPECT_EQ(count(*graph, Op::Conv2d), w.convolutions) << w.name;
        EXPECT_EQ(count(*graph, Op::Add), w.additions) << w.name;
        EXPECT_EQ(count(*graph, Op::Permute), 0u) << w.name;
        if (std::getenv("TALPA_SHOW") != nullptr) std::fputs(dump(*graph).c_str(), stdout);
    }
}

TEST(TfLite, EveryCutIsAnError) {
    TALPA_NEEDS_REFERENCE();
    for (const char* name : {"split_concat", "mobilenet_v1_0.25_128_quant"}) {
        const auto file = host::read_file(reference / "tflite" / (std::string(name) + ".tflite"));
        ASSERT_TRUE(file.has_value()) << name;
        // A ZIP archive of labels may follow the model: what is cut off of that is not missed.
        constexpr std::uint8_t kZip[] = {'P', 'K', 3, 4};
        const auto end = static_cast<std::size_t>(std::ranges::search(*file, kZip).begin() - file->begin());
        const std::size_t step = std::max<std::size_t>(1, end / 400);
        for (std::size_t size = 8; size < end; size += step) {
            const auto graph = import_bytes(talpa::Bytes(*file).first(size), {});
            ASSERT_FALSE(graph.has_value()) << name << " cut to " << size;
            // Noticed where it is read, not by what a missing part leads to.
            EXPECT_THAT(graph.error().describe(), AnyOf(HasSubstr("outside the file"), HasSubstr("has a vtable of")))
                << name << " cut to " << size;
        }
    }
}

TEST(TfLite, RecurrentLayersAreRefusedByName) {
    TALPA_NEEDS_REFERENCE();
    std::vector<Problem> problems;
    const auto graph = import_model(reference / "tflite/keras_lstm_mnist_ptq.tflite", {.problems = &problems});
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().code, ErrorCode::NotSupported);
    EXPECT_THAT(graph.error().describe(), HasSubstr("UNIDIRECTIONAL_SEQUENCE_LSTM"));
    EXPECT_THAT(graph.error().describe(), HasSubstr("recurrent layers are not supported"));
    ASSERT_FALSE(problems.empty());
    EXPECT_EQ(problems[0].source.target, "UNIDIRECTIONAL_SEQUENCE_LSTM");
}

}  // namespace
}  // namespace talpa::compiler::import
