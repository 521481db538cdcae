#include "board/cpu/bus.h"

#include <gmock/gmock.h>

namespace talpa::board::cpu {
namespace {

using testing::HasSubstr;

TEST(Ram, StartsPoisonedSoThatNothingLeansOnZeros) {
    const Ram ram(8);
    u32 words[2];
    std::copy(ram.bytes().begin(), ram.bytes().end(), reinterpret_cast<u8*>(words));
    EXPECT_EQ(words[0], Ram::kPoison);
    EXPECT_EQ(words[1], Ram::kPoison);
}

TEST(Bus, RefusesOverlapsAndShortRam) {
    Bus bus;
    Ram ram(0x1000);
    ASSERT_TRUE(bus.add_ram("low", 0x1000, 0x1000, ram));
    ASSERT_TRUE(bus.add_ram("alias", 0x11000, 0x1000, ram));
    const auto overlap = bus.add_ram("over", 0x1FFC, 0x10, ram);
    ASSERT_FALSE(overlap);
    EXPECT_THAT(overlap.error().message, HasSubstr("over at 0x1ffc overlaps low at 0x1000"));
    EXPECT_FALSE(bus.add_ram("short", 0x20000, 0x1001, ram));
    EXPECT_FALSE(bus.add_ram("wrap", 0xFFFFF800, 0x1000, ram));
    EXPECT_FALSE(bus.add_ram("empty", 0x30000, 0, ram));
}

TEST(Bus, AliasesShowTheSameBytes) {
    Bus bus;
    Ram ram(0x2000);
    ASSERT_TRUE(bus.add_ram("nonsecure", 0x0FFE0000, 0x1000, ram, 0x1000));
    ASSERT_TRUE(bus.add_ram("secure", 0x1FFE0000, 0x1000, ram, 0x1000));
    const u8 data[] = {1, 2, 3};
    ASSERT_TRUE(bus.write(0x0FFE0FFD, data));
    u8 back[3] = {};
    ASSERT_TRUE(bus.read(0x1FFE0FFD, back));
    EXPECT_THAT(back, testing::ElementsAre(1, 2, 3));
    EXPECT_EQ(ram.bytes()[0x1FFD], 1);
    EXPECT_FALSE(bus.write(0x0FFE0FFE, data)) << "runs past the region";
    EXPECT_EQ(bus.find(0x0FFE1000), nullptr);
}

}  // namespace
}  // namespace talpa::board::cpu
