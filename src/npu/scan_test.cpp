#include "npu/scan.h"

#include <gtest/gtest.h>

#include "base/core/checked_math.h"
#include "base/host/json.h"
#include "npu/extent.h"
#include "npu/host/streams_for_test.h"

namespace talpa::npu {
namespace {

std::uint32_t cmd0(auto code, unsigned parameter) {
    return static_cast<std::uint32_t>(code) | (parameter << 16);
}

TEST(Scan, NeedsExactlyTheScratchThatTheCompilerAnnounces) {
    unsigned with_size = 0;
    for (const auto& stream : testing::golden_streams()) {
        const auto result = scan(stream.parsed().stream);
        ASSERT_TRUE(result) << stream.name;
        EXPECT_EQ(result->size_bytes, stream.parsed().stream.size() * 4) << stream.name;
        EXPECT_FALSE(result->regions[0].written) << stream.name;
        if (stream.weight_size) {
            EXPECT_LE(result->regions[0].size(), *stream.weight_size) << stream.name;
        }
        if (!stream.scratch_size) continue;
        ++with_size;
        EXPECT_LE(result->regions[1].size(), *stream.scratch_size) << stream.name;
        // The compiler rounds sizes up to 16 and may leave room for a tensor that only the host touches.
        EXPECT_GE(result->regions[1].size() + 15, *stream.scratch_size) << stream.name;
    }
    EXPECT_GT(with_size, 40u);
}

// Vela's report (`sram_memory_used`, in KiB) beside each program of one delegate says what no .pte file does: how much
// fast scratch the stream uses.
void expect_fast_scratch_of_reports(const std::filesystem::path& folder, unsigned at_least) {
    unsigned compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (!std::filesystem::exists(entry.path() / (name + ".json"))) continue;
        const auto report = host::Json::parse(host::read_text(entry.path() / (name + ".json")).value());
        const auto streams = testing::streams_in_file(entry.path() / (name + ".pte"));
        if (!report.contains("vela_estimate") || streams.size() != 1) continue;
        const bool sram_is_scratch = name == "sram_only" || name == "shared_sram";  // these have no fast scratch
        const auto& used = report["vela_estimate"]["sram_memory_used"];
        const auto result = scan(streams[0].parsed().stream);
        ASSERT_TRUE(result) << name;
        // The compiler rounds both up to 16.
        EXPECT_EQ(static_cast<double>(round_up<std::uint64_t>(result->regions[2].size(), 16)),
                  sram_is_scratch ? 0 : used.get<double>() * 1024)
            << name;
        EXPECT_EQ(round_up<std::uint64_t>(result->regions[1].size(), 16), *streams[0].scratch_size) << name;
        ++compared;
    }
    EXPECT_GE(compared, at_least);
}

TEST(Scan, FindsTheFastScratchThatNoFileNames) {
    expect_fast_scratch_of_reports(talpa::testing::golden_folder() / "ops", 30);
    expect_fast_scratch_of_reports(talpa::testing::golden_folder() / "models", 2);
}

TEST(Scan, FindsTheFastScratchOfWholeNetworks) {
    TALPA_NEEDS_REFERENCE();
    expect_fast_scratch_of_reports(reference / "models", 6);
}

// A max pool of `width` columns from region 1 to region 2 with the given output base and row stride (40 bits each).
std::vector<std::uint32_t> pool_stream(std::uint64_t ofm_base, std::int64_t ofm_stride_y) {
    const auto wide = [](std::uint64_t v) { return static_cast<unsigned>(v >> 32) & 0xFF; };
    const auto stride = static_cast<std::uint64_t>(ofm_stride_y);
    return {cmd0(Cmd0::OFM_HEIGHT_M1, 3),
            cmd0(Cmd0::OFM_WIDTH_M1, 4),
            cmd0(Cmd0::OFM_DEPTH_M1, 15),
            cmd0(Cmd0::IFM_DEPTH_M1, 15),
            cmd0(Cmd0::OFM_HEIGHT0_M1, 3),
            cmd0(Cmd0::OFM_WIDTH0_M1, 4),
            cmd0(Cmd0::IFM_HEIGHT0_M1, 3),
            cmd0(Cmd0::IFM_WIDTH0_M1, 4),
            cmd0(Cmd0::IFM_REGION, 1),
            cmd0(Cmd0::OFM_REGION, 2),
            cmd0(Cmd1::IFM_STRIDE_X, 0) | 0x4000,
            16,
            cmd0(Cmd1::IFM_STRIDE_Y, 0) | 0x4000,
            80,
            cmd0(Cmd1::OFM_STRIDE_X, 0) | 0x4000,
            16,
            cmd0(Cmd1::OFM_STRIDE_Y, wide(stride)) | 0x4000,
            static_cast<std::uint32_t>(stride),
            cmd0(Cmd1::OFM_BASE0, wide(ofm_base)) | 0x4000,
            static_cast<std::uint32_t>(ofm_base),
            cmd0(Op::POOL, 0),
            cmd0(Op::STOP, 0xFFFF)};
}

TEST(Scan, ReversedRowsEndWhereTheFirstRowEnds) {
    const auto result = scan(pool_stream(240, -80)).value();
    EXPECT_EQ(result.regions[1].read_end, 4u * 80);
    EXPECT_FALSE(result.regions[1].written);
    EXPECT_EQ(result.regions[2].write_end, 4u * 80);
    EXPECT_FALSE(result.regions[2].read);
    for (const OpPlace place :
         {result.regions[1].furthest, result.regions[2].furthest, result.regions[2].first_write}) {
        EXPECT_EQ(place.kind, OpKind::MaxPool);
        EXPECT_EQ(place.offset_bytes, 80u);
    }
    EXPECT_EQ(result.count(OpKind::MaxPool), 1u);
    EXPECT_EQ(result.kernels(), 1u);
    EXPECT_EQ(result.operations(), 2u);
}

TEST(Scan, AddressesBelowTheRegionNameTheOperation) {
    const auto error = scan(pool_stream(239, -80)).error();
    EXPECT_EQ(error.code, ErrorCode::OutOfBounds);
    EXPECT_EQ(host::Error(error).message, "command stream offset 80: POOL_MAX: its OFM starts 1 bytes below region 2");
}

TEST(Scan, AddressesBeyondFortyBitsAreRefused) {
    EXPECT_TRUE(scan(pool_stream((1ull << 40) - 320, 80)));
    EXPECT_EQ(scan(pool_stream((1ull << 40) - 319, 80)).error().code, ErrorCode::OutOfBounds);
    EXPECT_EQ(scan(pool_stream(0, (1ll << 39) - 1)).error().code, ErrorCode::OutOfBounds);
}

}  // namespace
}  // namespace talpa::npu
