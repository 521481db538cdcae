#include "npu/cop.h"

#include <gtest/gtest.h>

#include <vector>

#include "npu/device.h"
#include "npu/hardware.h"
#include "npu/host/streams_for_test.h"

namespace talpa::npu {
namespace {

Bytes bytes_of(const std::vector<std::uint32_t>& words) {
    return {reinterpret_cast<const std::uint8_t*>(words.data()), words.size() * 4};
}
std::string message(const auto& result) {
    return host::Error(result.error()).message;
}

// The typical header of ethos-u65, section 3.6, with a stream of two words.
const std::vector<std::uint32_t> kTypical{0x31504F43, 0x00100001, 0x10003008, 0x10066001, 5,
                                          5,          5,          0x00020002, 0x00000011, 0xFFFF0000};

TEST(Cop, TheTypicalHeaderIsRead) {
    const auto payload = parse_payload(bytes_of(kTypical)).value();
    EXPECT_EQ(payload.format, Payload::Format::Cop1);
    EXPECT_EQ(payload.config, kConfigU65_256);
    EXPECT_EQ(payload.id, kIdU65);
    EXPECT_EQ(payload.stream_offset_bytes, 32u);
    ASSERT_EQ(payload.stream.size(), 2u);
    EXPECT_EQ(payload.stream[1], 0xFFFF0000u);
}

TEST(Cop, EveryProgramOfTheGoldenSetHasOne) {
    const auto streams = testing::streams_under(talpa::testing::golden_folder());
    EXPECT_GT(streams.size(), 60u);
    for (const auto& s : streams) {
        const auto payload = parse_payload(s.bytes());
        ASSERT_TRUE(payload) << s.name;
        EXPECT_EQ(payload->stream_offset_bytes % 16, 0u) << s.name;
        const bool is_u55 = s.name.starts_with("two_u55"), is_u85 = s.name.starts_with("two_u85");
        EXPECT_EQ(match_config(payload->config, payload->id, kConfigU65_256, kIdU65).has_value(), !is_u55 && !is_u85)
            << s.name;
        if (!is_u55) continue;
        EXPECT_EQ(message(match_config(payload->config, payload->id, kConfigU65_256, kIdU65)),
                  "NPU config match: the program is compiled for ethos-u55-128, this NPU is an ethos-u65-256");
    }
}

TEST(Cop, LongStreamsUseTheExtraByteOfTheLength) {
    std::vector<std::uint32_t> words = kTypical;
    words[7] = 0x00010102;  // 0x10001 words
    words.resize(8 + 0x10001, 0x11);
    EXPECT_EQ(parse_payload(bytes_of(words)).value().stream.size(), 0x10001u);
    words.pop_back();
    EXPECT_EQ(message(parse_payload(bytes_of(words))),
              "NPU payload offset 28: a command stream of 262148 bytes does not fit the payload of 262176");
}

TEST(Cop, EveryTruncationIsRefused) {
    for (std::size_t size = 0; size < kTypical.size() * 4; ++size)
        EXPECT_FALSE(parse_payload(bytes_of(kTypical).first(size))) << size;
}

TEST(Cop, ObsoleteAndUnknownActionsAreNamed) {
    std::vector<std::uint32_t> words = kTypical;
    words[4] = 0x00030003;
    EXPECT_EQ(parse_payload(bytes_of(words)).error().code, ErrorCode::NotSupported);
    words[4] = 0x00000077;
    EXPECT_EQ(message(parse_payload(bytes_of(words))), "NPU payload offset 16: 0x77 is no driver action");
    words = kTypical;
    words[1] = 5;  // its two configuration words are now read as actions
    EXPECT_FALSE(parse_payload(bytes_of(words)));
    words = kTypical;
    words.push_back(0x00000011);
    EXPECT_EQ(message(parse_payload(bytes_of(words))),
              "NPU payload offset 40: 0x11 follows the command stream, which must end the payload");
}

// Laid out as pte-format, section 7.4, describes it.
std::vector<std::uint32_t> cop2() {
    return {0x32504F43, 1,  60,   0,  // header; 60 bytes follow
            1,          52, 0x24,     // command stream record
            0x4D554556, 1,  0x14, 0x10003008, 0x10066001, 2, 0, 0, 0xFFFFFFFF, 0x00000011, 0xFFFF0000, 0};
}

TEST(Cop, Cop2KeepsItsStreamBehindTheConfigurationBlock) {
    const auto words = cop2();
    const auto payload = parse_payload(bytes_of(words)).value();
    EXPECT_EQ(payload.format, Payload::Format::Cop2);
    EXPECT_EQ(payload.config, kConfigU65_256);
    EXPECT_EQ(payload.stream_offset_bytes, 64u);
    EXPECT_TRUE(payload.separate_io);
    ASSERT_EQ(payload.stream.size(), 3u);
    EXPECT_EQ(payload.stream[0], 0x11u);
    for (const std::size_t i : {1u, 2u, 4u, 5u, 6u, 7u}) {
        auto broken = words;
        broken[i] = 0x7FFFFFF0;
        EXPECT_FALSE(parse_payload(bytes_of(broken))) << i;
    }
    for (std::size_t size = 0; size < words.size() * 4 - 4; ++size)
        EXPECT_FALSE(parse_payload(bytes_of(words).first(size))) << size;
}

TEST(Cop, ConfigurationsMatchByProductMacsVersionAndArchitecture) {
    constexpr std::uint32_t kConfig = kConfigU65_256;
    EXPECT_TRUE(match_config(kConfig, kIdU65, kConfig, kIdU65));
    EXPECT_TRUE(match_config(0x10006008, kIdU65, kConfig, kIdU65)) << "shared RAM alone is no reason";
    EXPECT_TRUE(match_config(kConfig, 0x10060000, kConfig, kIdU65))
        << "the legacy compiler writes only the architecture";
    EXPECT_TRUE(match_config(kConfig, 0x10066001, kConfig, 0x10166001)) << "a newer minor runs older programs";
    EXPECT_EQ(message(match_config(0x10006009, kIdU65, kConfig, kIdU65)),
              "NPU config match: the program is compiled for ethos-u65-512, this NPU is an ethos-u65-256");
    EXPECT_EQ(message(match_config(kConfig | 0x10, kIdU65, kConfig, kIdU65)),
              "NPU config match: the program has command stream version 1, this NPU (ethos-u65-256) reads version 0");
    EXPECT_EQ(message(match_config(kConfig | 1u << 27, kIdU65, kConfig, kIdU65)),
              "NPU config match: the program needs a custom DMA, this NPU (ethos-u65-256) has none");
    EXPECT_EQ(message(match_config(kConfig, 0x10166001, kConfig, kIdU65)),
              "NPU arch match: the program needs architecture 1.1, this NPU has 1.0");
    EXPECT_EQ(message(match_config(kConfig, 0x20066001, kConfig, kIdU65)),
              "NPU arch match: the program needs architecture 2.0, this NPU has 1.0");
}

TEST(Hardware, TheTableAgreesWithItsConfigWords) {
    for (const Hardware& h : kHardware) {
        const ConfigWord config{h.config};
        EXPECT_EQ(config.macs(), h.macs) << h.name;
        EXPECT_EQ(config.product(), static_cast<std::uint32_t>(h.product)) << h.name;
        EXPECT_EQ(config.shram_kib(), std::uint32_t{h.shram_banks} * h.cores) << h.name;
        EXPECT_EQ(unsigned{h.ublock_height} * h.ublock_width * h.ublock_depth * 8 * h.cores, h.macs) << h.name;
        EXPECT_EQ(find_hardware(h.config), &h);
        EXPECT_STREQ(h.name, (std::string(product_name(config.product())) + "-" + std::to_string(h.macs)).c_str());
    }
    EXPECT_EQ(kU65_256.config, kConfigU65_256);
    EXPECT_EQ(kU65_256.lut_base(), 0xB800);
    EXPECT_EQ(find_hardware(0x20000118), nullptr);
}

}  // namespace
}  // namespace talpa::npu
