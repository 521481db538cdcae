#include <gtest/gtest.h>

#include <cstring>

#include "link/control_block.h"
#include "link/crc32.h"
#include "link/memory_map.h"
#include "link/resource_table.h"

namespace talpa::link {
namespace {

Bytes bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(Crc32, IsTheCommonOne) {
    EXPECT_EQ(crc32(bytes_of("123456789")), 0xCBF43926u) << "check value of CRC-32/ISO-HDLC";
    EXPECT_EQ(crc32(bytes_of("56789"), crc32(bytes_of("1234"))), 0xCBF43926u);
    EXPECT_EQ(crc32({}), 0u);
}

TEST(ResourceTable, OursIsByteForByteTheSpecifiedOne) {
    static constexpr auto kTable = firmware_resource_table();
    const Bytes bytes(reinterpret_cast<const std::uint8_t*>(&kTable), sizeof kTable);
    EXPECT_EQ(check_resource_table(bytes).value(), 2u);
    // imx93-remoteproc, section 2.2
    EXPECT_EQ(load_le<std::uint32_t>(&bytes[0x1C]), 0x2001E200u);
    EXPECT_EQ(load_le<std::uint32_t>(&bytes[0x20]), 0xC00u);
    EXPECT_EQ(std::memcmp(&bytes[0x28], "cm33_log", 9), 0);
    EXPECT_EQ(load_le<std::uint32_t>(&bytes[0x60]), 0x00000200u);
    EXPECT_EQ(load_le<std::uint32_t>(&bytes[0x64]), 0xA4000000u);
    EXPECT_EQ(load_le<std::uint32_t>(&bytes[0x78]), 0xA4008000u);
    EXPECT_EQ(load_le<std::uint32_t>(&bytes[0x84]), 1u);
}

TEST(ResourceTable, KernelsPhrasesForWhatIsWrong) {
    static constexpr auto kTable = firmware_resource_table();
    std::array<std::uint8_t, sizeof kTable> bytes;
    const auto reset = [&] { std::memcpy(bytes.data(), &kTable, sizeof kTable); };
    const auto sentence = [&](std::size_t size) {
        const auto checked = check_resource_table(Bytes(bytes).first(size));
        return std::string(checked ? "" : checked.error().sentence);
    };
    reset();
    EXPECT_NE(sentence(15).find("header-less"), std::string::npos);
    EXPECT_NE(sentence(20).find("incomplete"), std::string::npos);
    for (std::size_t size = 24; size < sizeof kTable; ++size) EXPECT_NE(sentence(size), "") << size;
    bytes[0] = 2;
    EXPECT_NE(sentence(bytes.size()).find("unsupported fw ver"), std::string::npos);
    reset();
    bytes[12] = 1;
    EXPECT_NE(sentence(bytes.size()).find("non zero reserved"), std::string::npos);
    reset();
    bytes[0x48 + 25] = 200;  // vrings that are not there
    EXPECT_NE(sentence(bytes.size()).find("truncated"), std::string::npos);
}

TEST(MemoryMap, RangesKnowWhatTheyHold) {
    EXPECT_TRUE(kProgram.contains(0xC0000000, kProgram.size));
    EXPECT_FALSE(kProgram.contains(0xC0000000, kProgram.size + 1));
    EXPECT_FALSE(kProgram.contains(0xBFFFFFFF, 1));
    EXPECT_FALSE(kProgram.contains(0xC0000000, UINT64_MAX));
}

}  // namespace
}  // namespace talpa::link
