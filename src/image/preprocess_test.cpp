// Geometry against torchvision's formulas, values against NumPy's; the resize itself is held against Pillow by
// tests/image_pillow_test.py, and here against the tensors of the reference set.
#include "image/preprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "image/decode.h"

namespace talpa::image {
namespace {

using ::testing::HasSubstr;

Picture plain(std::uint32_t width, std::uint32_t height, std::uint8_t r, std::uint8_t g, std::uint8_t b) {
    Picture p{.width = width, .height = height, .rgb = {}};
    for (std::uint32_t i = 0; i < width * height; ++i) p.rgb.insert(p.rgb.end(), {r, g, b});
    return p;
}

float float_at(const std::vector<std::uint8_t>& tensor, std::size_t i) {
    return load_le<float>(tensor.data() + 4 * i);
}

// python3: w, h = 1023, 767; (int(256 * w / h), 256) == (341, 256); int(round((341 - 224) / 2.0)) == 58 (58.5 to even)
TEST(Preprocess, GeometryIsThatOfTorchvision) {
    const ScaledSize size = scaled_size(1023, 767, 256);
    EXPECT_EQ(size.width, 341u);
    EXPECT_EQ(size.height, 256u);
    EXPECT_EQ(centre_crop(size, 224, 224).x, 58u);
    EXPECT_EQ(centre_crop(size, 224, 224).y, 16u);
    EXPECT_EQ(centre_crop({343, 256}, 224, 224).x, 60u) << "59.5 goes to 60, the even one";
    EXPECT_EQ(scaled_size(100, 100, 256).height, 256u);
    EXPECT_EQ(scaled_size(1, 100'000'000, 256).height, 25'600'000'000u);
    EXPECT_EQ(usual_shorter_side(224), 256u);
}

TEST(Preprocess, ALineOfManyMegapixelsCostsNoMoreThanItsWindow) {
    const Picture line = plain(10'000'000, 1, 10, 20, 30);
    const auto tensor = to_tensor(line, {});
    ASSERT_TRUE(tensor) << tensor.error().describe();
    EXPECT_EQ(float_at(*tensor, 0), 10.0f / 127.5f - 1.0f);
}

TEST(Preprocess, LayoutsPutChannelsWhereTheyBelong) {
    const Picture p = plain(4, 4, 0, 51, 255);
    PreprocessSpec spec{.width = 2, .height = 2, .shorter_side = 2, .low = 0, .high = 1};
    auto tensor = to_tensor(p, spec).value();
    for (std::size_t i = 0; i < 12; ++i) EXPECT_FLOAT_EQ(float_at(tensor, i), i < 4 ? 0.0f : i < 8 ? 0.2f : 1.0f);
    spec.layout = Layout::Nhwc;
    tensor = to_tensor(p, spec).value();
    for (std::size_t i = 0; i < 12; ++i)
        EXPECT_FLOAT_EQ(float_at(tensor, i), i % 3 == 0 ? 0.0f : i % 3 == 1 ? 0.2f : 1.0f);
}

TEST(Preprocess, MeanAndStdAreThoseOfTheChannel) {
    const PreprocessSpec spec{.width = 1,
                              .height = 1,
                              .shorter_side = 1,
                              .low = 0,
                              .high = 1,
                              .mean = {0.485f, 0.456f, 0.406f},
                              .std = {0.229f, 0.224f, 0.225f}};
    const auto tensor = to_tensor(plain(1, 1, 255, 128, 0), spec).value();
    EXPECT_NEAR(float_at(tensor, 0), 2.2489083, 1e-6);   // python3: (1 - .485) / .229
    EXPECT_NEAR(float_at(tensor, 1), 0.20518207, 1e-6);  // (128 / 255 - .456) / .224
    EXPECT_NEAR(float_at(tensor, 2), -1.8044444, 1e-6);  // (0 - .406) / .225
}

TEST(Preprocess, IntegersAreRoundedToEvenShiftedAndClamped) {
    PreprocessSpec spec{.width = 1,
                        .height = 1,
                        .shorter_side = 1,
                        .low = 0,
                        .high = 255,
                        .element = Element::Int8,
                        .scale = 2.0f,
                        .zero_point = -100};
    auto tensor = to_tensor(plain(1, 1, 3, 5, 255), spec).value();
    EXPECT_THAT(tensor, ::testing::ElementsAre(std::uint8_t(-98), std::uint8_t(-98),
                                               std::uint8_t(28)));  // 1.5 and 2.5 both go to 2
    spec.zero_point = 10;
    EXPECT_EQ(to_tensor(plain(1, 1, 255, 255, 255), spec).value()[0], 127);
    spec.element = Element::UInt8, spec.scale = 1.0f, spec.zero_point = 0;
    EXPECT_EQ(to_tensor(plain(1, 1, 200, 0, 0), spec).value()[0], 200);
    spec.element = Element::Int16, spec.scale = 0.25f;
    EXPECT_EQ(load_le<std::int16_t>(to_tensor(plain(1, 1, 200, 0, 0), spec).value().data()), 800);
}

// python3: PIL.Image.new("RGB", (1, 1), (10, 200, 90)).convert("L").getpixel((0, 0)) == 131
TEST(Preprocess, OneChannelIsLuma) {
    const PreprocessSpec spec{.width = 1, .height = 1, .shorter_side = 1, .channels = 1, .low = 0, .high = 255};
    EXPECT_EQ(float_at(to_tensor(plain(1, 1, 10, 200, 90), spec).value(), 0), 131.0f);
}

TEST(Preprocess, SpecsThatCannotBeAreRefused) {
    const Picture p = plain(4, 4, 0, 0, 0);
    EXPECT_THAT(to_tensor(p, {.width = 300}).error().describe(), HasSubstr("cannot be cropped to 300 x 224"));
    EXPECT_THAT(to_tensor(p, {.channels = 2}).error().describe(), HasSubstr("2 channels"));
    EXPECT_THAT(to_tensor(p, {.std = {1, 0, 1}}).error().describe(), HasSubstr("standard deviation of 0"));
    EXPECT_THAT(to_tensor(p, {.element = Element::Int8, .scale = 0}).error().describe(), HasSubstr("scale of 0"));
}

TEST(Preprocess, ThePhotoOfTheReferenceGivesItsInputTensors) {
    TALPA_NEEDS_REFERENCE();
    const auto photo = host::read_file(reference / "photos" / "cat.bmp").value();
    const Picture picture = decode(photo).value();
    EXPECT_EQ(to_tensor(picture, {}).value(), host::read_file(reference / "models/mobilenet_v2/in0.bin").value());
    const PreprocessSpec int8{.element = Element::Int8, .scale = 0.007839307188987732f};
    EXPECT_EQ(to_tensor(picture, int8).value(),
              host::read_file(reference / "models/mobilenet_v2_int8io/in0.bin").value());
}

}  // namespace
}  // namespace talpa::image
