// Messaging Unit 1 from both sides: its registers, and between two threads what the M33's interrupt line shows in the
// end.
#include "board/devices/messaging_unit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace talpa::board {
namespace {

using namespace std::chrono_literals;

// Registers of the M33's side, and the bit of channel 1 in those that have one a channel (i.MX 93 reference manual,
// MU).
constexpr cpu::u32 kPar = 0x004, kFcr = 0x100, kGcr = 0x114, kGsr = 0x118, kTcr = 0x120, kTsr = 0x124, kRcr = 0x128,
                   kRsr = 0x12C, kTr1 = 0x204, kRr1 = 0x284, kChannel1 = 2;

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

class MessagingUnitRegisters : public ::testing::Test {
  protected:
    cpu::u32 read(cpu::u32 offset) {
        cpu::u32 value = 0;
        EXPECT_TRUE(mu.read(offset, 4, value));
        return value;
    }
    void write(cpu::u32 offset, cpu::u32 value) { EXPECT_TRUE(mu.write(offset, 4, value)); }
    bool eventually(auto&& holds) {
        for (int i = 0; i < 2000 && !holds(); ++i) std::this_thread::sleep_for(1ms);
        return holds();
    }

    std::atomic<bool> line{false};
    std::atomic<int> received{0};
    MessagingUnit mu{[this](bool level) { line = level; }, [this] { ++received; }};
};

TEST_F(MessagingUnitRegisters, HasItsResetValues) {
    EXPECT_EQ(read(kPar), 0x03040404u) << "four registers each way, four doorbells, three flags";
    EXPECT_EQ(read(kTsr), 0xFu);
    for (const cpu::u32 zero : {kRsr, kTcr, kRcr, kGsr, kFcr, kGcr}) EXPECT_EQ(read(zero), 0u) << std::hex << zero;
}

TEST_F(MessagingUnitRegisters, KickOfLinuxInterruptsUntilItsWordIsRead) {
    write(kRcr, 2);
    EXPECT_FALSE(line);
    std::thread linux([this] { static_cast<void>(mu.send(0x00010000)); });  // may give up on a busy machine
    EXPECT_TRUE(eventually([&] { return line.load(); }));
    EXPECT_EQ(read(kRsr), 2u);
    EXPECT_EQ(read(kRsr), 2u) << "reading the status takes nothing";
    EXPECT_EQ(read(kRr1), 0x00010000u);
    linux.join();
    EXPECT_FALSE(line);
    EXPECT_EQ(read(kRsr), 0u);
}

TEST_F(MessagingUnitRegisters, InterruptIsMaskedByItsEnable) {
    std::thread linux([this] { static_cast<void>(mu.send(0)); });
    EXPECT_TRUE(eventually([&] { return read(kRsr) == 2u; }));
    EXPECT_FALSE(line);
    write(kRcr, 2);
    EXPECT_TRUE(line) << "a level: what is already there counts";
    write(kRcr, 0);
    EXPECT_FALSE(line);
    static_cast<void>(read(kRr1));
    linux.join();
}

TEST_F(MessagingUnitRegisters, WordToLinuxStaysUntilSomebodyListens) {
    write(kTr1, 0x10000);
    EXPECT_EQ(read(kTsr), 0xDu);
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(received, 0);
    mu.listen(true);
    EXPECT_TRUE(eventually([&] { return received == 1; }));
    EXPECT_EQ(read(kTsr), 0xFu);
    mu.listen(false);
    write(kTr1, 0x10000);
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(received, 1);
}

TEST_F(MessagingUnitRegisters, TransmitInterruptSaysThatTheRegisterIsFree) {
    write(kTcr, 2);
    EXPECT_TRUE(line);
    write(kTr1, 1);
    EXPECT_FALSE(line);
    mu.listen(true);
    EXPECT_TRUE(eventually([&] { return line.load(); }));
}

TEST_F(MessagingUnitRegisters, StatusRegistersCannotBeWritten) {
    write(kTr1, 1);
    write(kTsr, 0xF);
    write(kRsr, 0xF);
    EXPECT_EQ(read(kTsr), 0xDu) << "a model that clears it by writing ones is wrong";
    EXPECT_EQ(read(kRsr), 0u);
    EXPECT_FALSE(mu.send(0x00010000)) << "nobody reads it within the limit";
    write(kRsr, 0xF);
    EXPECT_EQ(read(kRsr), 2u) << "only reading the word empties its register";
    EXPECT_EQ(read(kRr1), 0x00010000u);
}

TEST_F(MessagingUnitRegisters, OnlyWordsAreRegisters) {
    cpu::u32 value = 0;
    EXPECT_FALSE(mu.read(kRsr, 1, value));
    EXPECT_FALSE(mu.write(kRcr, 2, 0));
}

TEST_F(MessagingUnitRegisters, ModuleResetEmptiesBothSides) {
    write(kTr1, 7);
    write(kRcr, 2);
    write(0x008, 1);
    EXPECT_EQ(read(kTsr), 0xFu);
    EXPECT_EQ(read(kRcr), 0u);
    EXPECT_FALSE(line);
}

TEST_F(MessagingUnitRegisters, LevelIsRightWhateverTheOrderOfTwoThreads) {
    write(kRcr, 2);
    std::atomic<bool> done{false};
    std::thread linux([&] {
        for (int i = 0; i < 500; ++i) static_cast<void>(mu.send(0x10000));
        done = true;
    });
    while (!done)
        if ((read(kRsr) & 2) != 0) static_cast<void>(read(kRr1));  // by polling, not waiting for the interrupt
    linux.join();
    static_cast<void>(read(kRr1));  // Linux may have given up on its last word
    EXPECT_EQ(read(kRsr), 0u);
    EXPECT_FALSE(line) << "nothing is pending";
}

}  // namespace
}  // namespace talpa::board
