// Post-training quantization of the reference classifiers, judged on crops that calibration has not seen, by float
// arithmetic that rounds as the quantized network does. The bounds are what ExecuTorch's quantizer reaches on the same
// crops with the same calibration pictures (the reference's README).
#include <gtest/gtest.h>

#include <thread>

#include "base/host/testing.h"
#include "compiler/import/import.h"
#include "compiler/quantize/compare_runs.h"
#include "compiler/quantize/quantize.h"
#include "compiler/quantize/samples.h"

namespace talpa::compiler {
namespace {

struct Expected {
    const char* name;
    const char* file;  ///< below models/
    std::size_t same_top1;
    double snr_db;
    Activations activations = Activations::Int8;
};

class QuantizeAccuracy : public ::testing::TestWithParam<Expected> {};

std::vector<Sample> inputs_of(const LoadedSamples& loaded) {
    std::vector<Sample> samples;
    for (const auto& sample : loaded.samples) samples.push_back(sample.inputs);
    return samples;
}

TEST_P(QuantizeAccuracy, IsNotBelowExecuTorchs) {
    TALPA_NEEDS_REFERENCE();
    const auto& root = reference;
    const auto model = root / "models" / GetParam().file;
    auto graph = import::import_model(model);
    ASSERT_TRUE(graph) << graph.error().describe();
    const image::PreprocessSpec
        preprocess;  // as the command line has it: pictures of the input's size stay as they are
    const auto calibration = load_samples(root / "calibration", *graph, preprocess, 24);
    const auto crops = load_samples(root / "crops", *graph, preprocess, 1000);
    ASSERT_TRUE(calibration && crops);
    ASSERT_EQ(calibration->samples.size(), 24u);
    ASSERT_EQ(crops->samples.size(), 120u);
    const unsigned threads = std::thread::hardware_concurrency();
    QuantizeOptions options;
    options.threads = threads;
    options.activations = GetParam().activations;
    const auto samples = inputs_of(*calibration), judged = inputs_of(*crops);
    const auto q = quantize(*graph, samples, options);
    ASSERT_TRUE(q) << q.error().describe();
    const auto result = agreement(*graph, q->graph, judged, threads);
    ASSERT_TRUE(result);
    std::printf("%s: observer %s, same top-1 %zu of %zu, median logit SNR %.2f dB\n", GetParam().name,
                std::string(observer_name(q->observer)).c_str(), result->same_top1, result->samples,
                result->median_snr_db);
    EXPECT_GE(result->same_top1, GetParam().same_top1);
    EXPECT_GE(result->median_snr_db, GetParam().snr_db);
}

INSTANTIATE_TEST_SUITE_P(Reference, QuantizeAccuracy,
                         ::testing::Values(Expected{"mobilenet_v2", "mobilenet_v2/mobilenet_v2.float.pt2", 119, 23.5},
                                           Expected{"mobilenet_v2_pth", "mobilenet_v2.pth", 119, 23.5},
                                           Expected{"mobilenet_v2_mixed", "mobilenet_v2/mobilenet_v2.float.pt2", 119,
                                                    25.5, Activations::Mixed},
                                           Expected{"efficientnet_lite0",
                                                    "efficientnet_lite0/efficientnet_lite0.float.pt2", 120, 21.1}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace talpa::compiler
