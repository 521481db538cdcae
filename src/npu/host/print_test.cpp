#include "npu/host/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "npu/host/command_reference.h"
#include "npu/host/streams_for_test.h"

namespace talpa::npu {
namespace {

using ::testing::HasSubstr;

TEST(Print, EveryCommandHasOneRowInTheReference) {
    std::map<std::pair<std::uint16_t, bool>, int> rows;
    for (const auto& r : register_reference()) {
        EXPECT_EQ(++rows[std::pair(r.code, r.has_payload)], 1);
        EXPECT_TRUE(command_name({0, r.code, r.has_payload, 0, 0}));
        EXPECT_EQ(r.format >= RegisterFormat::Address, r.has_payload) << r.meaning;
    }
#define X(name, code) EXPECT_TRUE(rows.contains({code, false})) << #name;
    TALPA_NPU_CMD0(X)
#undef X
#define X(name, code) EXPECT_TRUE(rows.contains({code, true})) << #name;
    TALPA_NPU_CMD1(X)
#undef X
    std::map<Op, int> ops;
    for (const auto& o : operation_reference()) EXPECT_EQ(++ops[o.code], 1);
#define X(name, code) EXPECT_TRUE(ops.contains(Op::name)) << #name;
    TALPA_NPU_OPS(X)
#undef X
}

TEST(Print, CommandsReadInTheTermsOfTheField) {
    const auto cmd0 = [](Cmd0 code, std::uint16_t parameter) {
        return command_text({24, static_cast<std::uint16_t>(code), false, parameter, 0});
    };
    const auto cmd1 = [](Cmd1 code, std::uint16_t parameter, std::uint32_t payload) {
        return command_text({24, static_cast<std::uint16_t>(code), true, parameter, payload});
    };
    EXPECT_EQ(cmd0(Cmd0::OFM_WIDTH_M1, 55), "    24  OFM_WIDTH_M1      55 + 1");
    EXPECT_EQ(cmd0(Cmd0::IFM_ZERO_POINT, 0xFF80), "    24  IFM_ZERO_POINT    -128");
    EXPECT_EQ(cmd0(Cmd0::OFM_PRECISION, 0x8041), "    24  OFM_PRECISION     int8 NHCWB16, scale per channel, natural");
    EXPECT_EQ(cmd0(Cmd0::IFM_PRECISION, 0x0105), "    24  IFM_PRECISION     int16 NHWC, scale A, TFL");
    EXPECT_EQ(cmd0(Cmd0::KERNEL_STRIDE, 0x001F), "    24  KERNEL_STRIDE     stride 2x2 dilation 2x2 part-kernel-first");
    EXPECT_EQ(cmd0(Cmd0::KERNEL_STRIDE, 0x0040), "    24  KERNEL_STRIDE     stride 1x3 depth-first");
    EXPECT_EQ(cmd0(Cmd0::ACTIVATION, 0x3012), "    24  ACTIVATION        LUT slot 2 clip int8");
    EXPECT_EQ(cmd0(Cmd0::IFM2_BROADCAST, 0x43), "    24  IFM2_BROADCAST    broadcast HW reversed");
    EXPECT_EQ(cmd0(Cmd0::DMA0_DST_REGION, 0x103), "    24  DMA0_DST_REGION   shared RAM");
    EXPECT_EQ(cmd0(Cmd0::DMA0_DST_REGION, 0x202), "    24  DMA0_DST_REGION   2 2D");
    EXPECT_EQ(cmd1(Cmd1::IFM_BASE0, 1, 0x10), "    24  IFM_BASE0         0x100000010");
    EXPECT_EQ(cmd1(Cmd1::OFM_STRIDE_Y, 0xFF, 0xFFFFFFF0), "    24  OFM_STRIDE_Y      -16");
    EXPECT_EQ(cmd1(Cmd1::OFM_SCALE, 31, 0x80000001), "    24  OFM_SCALE         2147483649 >> 31");
    EXPECT_EQ(command_text({24, static_cast<std::uint16_t>(Op::KERNEL_WAIT), false, 1, 0}),
              "    24  KERNEL_WAIT       1");
}

// ds_cnn_random begins with a 10x4 convolution, stride 2, of a 49x10 spectrogram into 64 channels, of which Vela
// computes 16 first (see its .json).
TEST(Print, AConvolutionIsABlockOfText) {
    const auto streams =
        testing::streams_in_file(talpa::testing::golden_folder() / "models/ds_cnn_random/ds_cnn_random.pte");
    const std::string text = stream_text(streams.at(0).parsed().stream);
    EXPECT_THAT(text, HasSubstr("   332  CONV 10x4 s2  1:0x0 49x10x1 int8 NHWC -> 2:0x0 25x5x16 int8 NHCWB16\n"
                                "    IFM     1:0x0 49x10x1 int8 NHWC, zero point -9, strides Y 10 X 1\n"
                                "    OFM     2:0x0 25x5x16 int8 NHCWB16, zero point -128, strides Y 320 C 80\n"
                                "    padding top 5 left 1 bottom 4 right 1\n"));
    EXPECT_THAT(text, HasSubstr("part-kernel-first\n    scale   per channel, natural\n    output  clamp "));
    EXPECT_TRUE(text.ends_with("STOP 65535\n"));
    const std::string commands = stream_text(streams.at(0).parsed().stream, Listing::Commands);
    EXPECT_TRUE(commands.starts_with("     0  PARALLEL_MODE     0 + 1\n"));
    EXPECT_GT(stream_text(streams.at(0).parsed().stream, Listing::Both).size(), commands.size());
}

TEST(Print, EveryGoldenStreamIsListedToItsStop) {
    for (const auto& s : testing::golden_streams()) {
        const std::string text = stream_text(s.parsed().stream, Listing::Both);
        EXPECT_TRUE(text.ends_with("STOP 65535\n")) << s.name;
        EXPECT_EQ(text.find('?'), std::string::npos) << s.name;
    }
}

TEST(Print, AFaultEndsTheListing) {
    const std::vector<std::uint32_t> words{0x00010111, 0x00000007};
    EXPECT_EQ(stream_text(words, Listing::Commands),
              "     0  OFM_WIDTH_M1      1 + 1\nerror: command stream offset 4: no command has code 0x7\n");
    EXPECT_EQ(stream_text(Words{words}.first(1)), "error: the command stream of 4 bytes ends without STOP\n");
}

TEST(Print, ThePageOnTheFormatIsUpToDate) {
    const auto path = std::filesystem::path(TALPA_SOURCE_DIR) / "docs/formats/command-stream.md";
    const std::string page = command_stream_page();
    if (std::getenv("TALPA_UPDATE_DOCS") != nullptr) {
        ASSERT_TRUE(host::write_text(path, page));
    }
    EXPECT_EQ(host::read_text(path).value_or(""), page) << "TALPA_UPDATE_DOCS=1 talpa_npu_test writes it anew";
}

}  // namespace
}  // namespace talpa::npu
