// What a picture becomes, by the input's shape, the program's constant methods and the flags. Programs are written on
// the spot.
#include "classifier/picture_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pte/host/writer.h"

namespace talpa::classifier {
namespace {

using ::testing::HasSubstr;
namespace rt = runtime::host;

/// A program that has these constant methods and one method that does nothing.
struct WithConstants {
    explicit WithConstants(std::vector<std::pair<std::string, pte::host::ValueSpec>> constants = {}) {
        pte::host::ProgramSpec spec;
        spec.methods.emplace_back();  // "forward"
        for (auto& [name, value] : constants) spec.methods.push_back(pte::host::constant_method_spec(name, value));
        bytes = pte::host::write_program(spec);
        program = pte::Program::open(bytes).value();
    }
    std::vector<std::uint8_t> bytes;
    std::optional<pte::Program> program;

    host::Result<PictureInput> input(const rt::PortInfo& port, const NormalisationFlags& flags = {}) const {
        return picture_input(*program, "forward", 0, port, flags);
    }
};

rt::PortInfo port(std::vector<std::int32_t> sizes, std::vector<std::uint8_t> order = {0, 1, 2, 3},
                  runtime::ScalarType type = runtime::ScalarType::Float32) {
    rt::PortInfo p;
    p.type = type;
    p.sizes = std::move(sizes);
    p.dim_order = std::move(order);
    return p;
}

TEST(PictureInput, ShapeAndOrderGiveTheLayout) {
    const WithConstants none;
    const auto nchw = none.input(port({1, 3, 224, 192}))->spec;
    EXPECT_EQ(nchw.layout, image::Layout::Nchw);
    EXPECT_EQ(nchw.height, 224u);
    EXPECT_EQ(nchw.width, 192u);
    EXPECT_EQ(nchw.shorter_side, 256u);
    const auto channels_last = none.input(port({1, 3, 224, 192}, {0, 2, 3, 1}))->spec;
    EXPECT_EQ(channels_last.layout, image::Layout::Nhwc);
    EXPECT_EQ(channels_last.height, 224u);
    const auto nhwc = none.input(port({1, 96, 80, 3}))->spec;
    EXPECT_EQ(nhwc.layout, image::Layout::Nhwc);
    EXPECT_EQ(nhwc.height, 96u);
    EXPECT_EQ(nhwc.width, 80u);
    EXPECT_EQ(none.input(port({1, 1, 28, 28}))->spec.channels, 1u);
}

TEST(PictureInput, WhatIsNoPictureIsRefused) {
    const WithConstants none;
    for (const auto& p :
         {port({1, 1000}, {0, 1}), port({2, 3, 8, 8}), port({1, 4, 8, 8}), port({1, 3, 8, 8}, {0, 3, 2, 1}),
          port({1, 3, 8, 8}, {0, 1, 2, 3}, runtime::ScalarType::Int64), port({1, 3, 0, 8})})
        EXPECT_THAT(none.input(p).error().describe(), HasSubstr("is no picture"));
}

TEST(PictureInput, TheProgramSaysHowItWantsItsPictures) {
    const WithConstants program({{"input0_mean", pte::host::DoubleListSpec{{0.5, 0.25, 0.125}}},
                                 {"input0_std", 0.5},
                                 {"forward_input0_std", 0.75},
                                 {"input0_resize", std::int64_t{232}}});
    auto spec = program.input(port({1, 3, 224, 224}))->spec;
    EXPECT_EQ(spec.mean, (std::array{0.5f, 0.25f, 0.125f}));
    EXPECT_EQ(spec.std, (std::array{0.75f, 0.75f, 0.75f})) << "the method's own goes first";
    EXPECT_EQ(spec.shorter_side, 232u);
    EXPECT_EQ(spec.low, 0.0f) << "with mean or std";
    EXPECT_EQ(spec.high, 1.0f);
    spec = program.input(port({1, 3, 224, 224}), {.mean = {0}, .std = {}, .range = {0, 255}})->spec;
    EXPECT_EQ(spec.mean, (std::array{0.0f, 0.0f, 0.0f})) << "flags go before the program";
    EXPECT_EQ(spec.high, 255.0f);
    EXPECT_EQ(WithConstants({{"input0_range", pte::host::DoubleListSpec{{0, 6}}}}).input(port({1, 3, 8, 8}))->spec.high,
              6.0f);
    EXPECT_EQ(WithConstants().input(port({1, 3, 8, 8}))->spec.low, -1.0f) << "without anything";
}

// ExecuTorch's exporter makes an output of each item of a list, and its loader knows no output that is a list.
TEST(PictureInput, AListMayComeAsOneOutputForEachItem) {
    pte::host::ProgramSpec spec;
    spec.methods.emplace_back();
    pte::host::MethodSpec mean;
    mean.name = "input0_mean";
    for (const double m : {0.5, 0.25, 0.125}) {
        mean.outputs.push_back(static_cast<std::int32_t>(mean.values.size()));
        mean.values.emplace_back(m);
    }
    spec.methods.push_back(mean);
    const auto bytes = pte::host::write_program(spec);
    const auto program = pte::Program::open(bytes).value();
    const auto input = picture_input(program, "forward", 0, port({1, 3, 8, 8}), {});
    ASSERT_TRUE(input.has_value());
    EXPECT_EQ(input->spec.mean, (std::array{0.5f, 0.25f, 0.125f}));
}

TEST(PictureInput, ConstantsOfTheWrongKindAreNotTaken) {
    const WithConstants program({{"input0_mean", pte::host::DoubleListSpec{{0.5, 0.25}}},
                                 {"input0_range", 3.0},
                                 {"input0_resize", std::int64_t{100}}});  // smaller than the crop
    const auto spec = program.input(port({1, 3, 224, 224}))->spec;
    EXPECT_EQ(spec.mean[0], 0.0f);
    EXPECT_EQ(spec.low, -1.0f);
    EXPECT_EQ(spec.shorter_side, 256u);
}

TEST(PictureInput, IntegerInputsUseTheirScaleOrSpanTheRange) {
    const WithConstants none;
    auto p = port({1, 3, 8, 8}, {0, 1, 2, 3}, runtime::ScalarType::Int8);
    auto input = none.input(p).value();
    // As ExecuTorch's observer finds for -1..1: scale 2/255, zero point 0.
    EXPECT_FLOAT_EQ(input.spec.scale, 2.0f / 255);
    EXPECT_EQ(input.spec.zero_point, 0);
    EXPECT_THAT(input.note, HasSubstr("does not say what its int8 input means"));
    p.quantization = pte::IoQuantization{.scale = 0.5, .zero_point = -7};
    input = none.input(p).value();
    EXPECT_EQ(input.spec.scale, 0.5f);
    EXPECT_EQ(input.spec.zero_point, -7);
    EXPECT_EQ(input.note, "");
    EXPECT_TRUE(
        none.input(port({1, 3, 8, 8}, {0, 1, 2, 3}, runtime::ScalarType::Int8), {.mean = {}, .std = {0}, .range = {}}))
        << "left to the preprocessing to refuse";
    p = port({1, 3, 8, 8}, {0, 1, 2, 3}, runtime::ScalarType::UInt8);
    input = none.input(p, {.mean = {}, .std = {}, .range = {0, 255}}).value();
    EXPECT_EQ(input.spec.scale, 1.0f) << "bytes as they are";
    EXPECT_EQ(input.spec.zero_point, 0);
}

TEST(PictureInput, NumbersAreReadWithCommasBetween) {
    constexpr std::size_t kOneOrThree[] = {1, 3};
    EXPECT_THAT(parse_numbers("--mean", "0.5,-1,+2e-3", kOneOrThree).value(),
                ::testing::ElementsAre(0.5f, -1.0f, 0.002f));
    for (const char* bad : {"", "1,2", "1,2,3,4", "a", "1,,2", "1,2,", "nan", "inf", "1 2 3", "1e99"})
        EXPECT_THAT(parse_numbers("--mean", bad, kOneOrThree).error().describe(),
                    HasSubstr("--mean takes 1 or 3 numbers"))
            << bad;
}

}  // namespace
}  // namespace talpa::classifier
