// The unit between two threads: what the M33's interrupt line shows in the end.
#include "board/devices/messaging_unit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace talpa::board {
namespace {

using namespace std::chrono_literals;

constexpr cpu::u32 kRcr = 0x128, kRsr = 0x12C, kRr1 = 0x284, kChannel1 = 2;

// Found by stopping and starting under load: the M33 took its interrupt for ever and never announced its channels.
TEST(MessagingUnitTest, ALineThatFallsWhileItsRiseIsToldEndsLow) {
    std::atomic<bool> level = false;
    std::atomic<bool> rising = false;
    MessagingUnit unit(
        [&](bool line) {
            if (line) {
                rising = true;
                std::this_thread::sleep_for(50ms);  // Linux's thread loses the processor here
            }
            level = line;
        },
        [] {});
    ASSERT_TRUE(unit.write(kRcr, 4, kChannel1));
    std::thread linux([&] { EXPECT_TRUE(unit.send(0x10000)); });
    while (!rising) std::this_thread::yield();
    cpu::u32 word = 0;
    ASSERT_TRUE(unit.read(kRr1, 4, word));  // the M33 looks without having been interrupted, as it does at its start
    EXPECT_EQ(word, 0x10000u);
    linux.join();
    EXPECT_FALSE(level);
    ASSERT_TRUE(unit.read(kRsr, 4, word));
    EXPECT_EQ(word, 0u);
}

TEST(MessagingUnitTest, LinuxWaitsUntilItsWordIsReadAndGivesUpAfterTheLimit) {
    MessagingUnit unit([](bool) {}, [] {});
    const auto before = std::chrono::steady_clock::now();
    EXPECT_FALSE(unit.send(1));
    EXPECT_GE(std::chrono::steady_clock::now() - before, 100ms);
    EXPECT_FALSE(unit.send(2)) << "the first word is still there";
    cpu::u32 word = 0;
    ASSERT_TRUE(unit.read(kRr1, 4, word));
    EXPECT_EQ(word, 1u);
}

}  // namespace
}  // namespace talpa::board
