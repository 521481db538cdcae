// Every program of the golden and reference sets that is one delegate between quantize and dequantize (or int8 at both
// ends): the NPU's part alone must give the expected output bit for bit. The outputs are the TOSA reference model's.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu_model/delegate_for_test.h"
#include "npu_model/model.h"

namespace talpa::npu_model {
namespace {

struct Quantization {
    double scale;
    int zero_point;
};

/// A program and what stands at its borders: quantization of the float inputs and outputs, nothing where the program
/// itself takes and gives int8. From the exported graphs (NAME.quantized.pt2).
struct Program {
    const char* path;
    std::vector<Quantization> inputs, outputs;
};

const Program kPrograms[] = {
    // clang-format off
    {"models/ds_cnn_random", {{0.028143370524048805, -9}}, {{0.0012202940415591002, -27}}},
    {"models/efficientnet_lite0", {{0.007839307188987732, 0}}, {{0.0626230388879776, -63}}},
    {"models/mobilenet_v2", {{0.007839307188987732, 0}}, {{0.06107117235660553, -60}}},
    {"models/mobilenet_v2_int8io", {}, {}},
    {"models/mobilenet_v2_sram384", {}, {}},
    {"models/mobilenet_v3_small_random", {{0.007351589854806662, -9}}, {{906.4852905273438, -8}}},
    {"models/resnet8_random", {{0.03199826925992966, -14}}, {{0.0013604583218693733, -16}}},
    {"ops/adaptive_avg_fc", {{0.02640378475189209, 5}}, {{0.0011628259671851993, 2}}},
    {"ops/add_broadcast", {{0.025884898379445076, -6}, {0.0109746428206563, 47}}, {{0.0288062896579504, 7}}},
    {"ops/add_same", {{0.025995971634984016, -3}, {0.08019566535949707, 8}}, {{0.08027547597885132, 11}}},
    {"ops/avgpool_pad", {{0.025381898507475853, -2}}, {{0.025381898507475853, -2}}},
    {"ops/big_channels", {{0.03242054209113121, 21}}, {{0.0065499902702867985, 6}}},
    {"ops/cat_channels", {{0.021644482389092445, 11}, {0.024220865219831467, -13}}, {{0.017354704439640045, 11}}},
    {"ops/cat_spatial", {{0.025210076943039894, 0}, {0.025210076943039894, 0}}, {{0.025210076943039894, 0}}},
    {"ops/conv1d_kws", {{0.02794010564684868, -1}}, {{0.00617812667042017, -14}}},
    {"ops/conv1x1", {{0.029915940016508102, -1}}, {{0.017246995121240616, -10}}},
    {"ops/conv3x3_same", {{0.02881596051156521, 6}}, {{0.009327180683612823, -128}}},
    {"ops/conv5x5_s2_dil", {{0.030641190707683563, -3}}, {{0.0061256056651473045, 13}}},
    {"ops/conv_group", {{0.026204247027635574, -6}}, {{0.017334921285510063, 11}}},
    {"ops/cpu_between", {{0.02173169143497944, -9}}, {{0.018458658829331398, 9}}},
    {"ops/deconv", {{0.023312324658036232, -2}}, {{0.00779296737164259, 3}}},
    {"ops/depthwise_mult", {{0.02930443361401558, 9}}, {{0.01927758939564228, 8}}},
    {"ops/depthwise_s1_s2", {{0.029340753331780434, -3}}, {{0.01052155066281557, 38}}},
    {"ops/gelu_silu", {{0.021176490932703018, 10}}, {{0.00869247317314148, -115}}},
    {"ops/global_mean", {{0.027071626856923103, -6}}, {{0.003252037102356553, 3}}},
    {"ops/hardswish_hardsigmoid", {{0.024303819984197617, 6}}, {{0.0030440723057836294, -128}}},
    {"ops/int8_io_conv", {}, {}},
    {"ops/leaky_prelu", {{0.024855837225914, -12}}, {{0.00851038470864296, -107}}},
    {"ops/linear", {{0.015450897626578808, 2}}, {{0.001493533723987639, -27}}},
    {"ops/linear_batch", {{0.023068660870194435, 1}}, {{0.010892657563090324, 1}}},
    {"ops/maxpool_avgpool", {{0.03401421383023262, -5}}, {{0.03401421383023262, -5}}},
    {"ops/min_max_abs", {{0.027175869792699814, 21}, {0.02222408913075924, -16}}, {{0.017823131754994392, -35}}},
    {"ops/pad_conv", {{0.02929702028632164, -5}}, {{0.013608993031084538, -5}}},
    {"ops/relu_clamp", {{0.027608349919319153, 21}}, {{0.04141252860426903, 21}}},
    {"ops/reshape_permute", {{0.01967320218682289, -6}}, {{0.015294400975108147, 11}}},
    {"ops/shared_sram", {{0.027670692652463913, 2}}, {{0.0039212959818542, -128}}},
    {"ops/sigmoid_tanh", {{0.022565223276615143, -6}}, {{0.011282335966825485, -45}}},
    {"ops/slice_split", {{0.0264416690915823, -10}}, {{0.019002825021743774, -11}, {0.019002825021743774, -11}, {0.019002825021743774, -11}}},
    {"ops/softmax", {{0.0157395601272583, -15}}, {{0.00017136383394245058, -128}}},
    {"ops/squeeze_excite", {{0.029295362532138824, 2}}, {{0.008779628202319145, -11}}},
    {"ops/sram_only", {{0.024998867884278297, -1}}, {{0.008329051546752453, 11}}},
    {"ops/sub_mul", {{0.02217240445315838, -5}, {0.02145693451166153, -11}}, {{0.051040902733802795, 101}}},
    {"ops/two_outputs", {{0.02447439171373844, -17}}, {{0.015886681154370308, 0}, {0.0170113667845726, -28}}},
    {"ops/upsample_nearest", {{0.023940501734614372, 9}}, {{0.013217875733971596, 8}}},
    // clang-format on
};

// The program's CPU operators (pte-format, section 6.2).
std::vector<std::uint8_t> quantize(const std::vector<std::uint8_t>& floats, const Quantization& q) {
    const float inverse = 1.0f / static_cast<float>(q.scale);
    std::vector<std::uint8_t> out(floats.size() / 4);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const float r =
            std::nearbyint(load_le<float>(floats.data() + 4 * i) * inverse) + static_cast<float>(q.zero_point);
        out[i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(std::clamp(r, -128.0f, 127.0f)));
    }
    return out;
}

std::vector<std::uint8_t> dequantize(const std::vector<std::uint8_t>& bytes, const Quantization& q) {
    std::vector<std::uint8_t> out(bytes.size() * 4);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const float v =
            static_cast<float>(static_cast<std::int8_t>(bytes[i]) - q.zero_point) * static_cast<float>(q.scale);
        store_le(out.data() + 4 * i, v);
    }
    return out;
}

class GoldenProgram : public ::testing::TestWithParam<Program> {};

TEST_P(GoldenProgram, gives_the_expected_output_bit_for_bit) {
    const Program& program = GetParam();
    const std::filesystem::path path(program.path);
    std::filesystem::path folder = talpa::testing::golden_folder() / path;
    if (!std::filesystem::exists(folder)) {
        TALPA_NEEDS_REFERENCE();
        folder = reference / path;
    }
    const auto file = [&](const std::string& name) { return host::read_file(folder / name).value(); };
    auto delegates = testing::delegates_in(file(path.filename().string() + ".pte"));
    ASSERT_EQ(delegates.size(), 1u);
    testing::Delegate& delegate = delegates[0];
    for (const DataChecks checks : {DataChecks::Off, DataChecks::Strict}) {
        std::vector<InitialisedRange> inputs;
        for (std::size_t i = 0; i < delegate.inputs().size(); ++i) {
            auto bytes = file("in" + std::to_string(i) + ".bin");
            if (!program.inputs.empty()) bytes = quantize(bytes, program.inputs.at(i));
            ASSERT_EQ(bytes.size(), delegate.inputs()[i].size_bytes);
            delegate.set_input(i, bytes);
            inputs.push_back(
                {static_cast<std::uint8_t>(delegate.inputs()[i].region), {delegate.inputs()[i].offset, bytes.size()}});
        }
        Model model({.config = delegate.payload().config, .checks = checks});
        model.set_initialised(inputs);
        const auto result = model.run(delegate.job());
        ASSERT_TRUE(result) << host::Error(result.error()).describe();
        EXPECT_TRUE(model.findings().empty());
        for (std::size_t i = 0; i < delegate.outputs().size(); ++i) {
            auto bytes = delegate.output(i);
            if (!program.outputs.empty()) bytes = dequantize(bytes, program.outputs.at(i));
            EXPECT_EQ(bytes, file("out" + std::to_string(i) + ".bin")) << "output " << i;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenProgram, ::testing::ValuesIn(kPrograms),
                         [](const auto& test) { return std::filesystem::path(test.param.path).filename().string(); });

}  // namespace
}  // namespace talpa::npu_model
