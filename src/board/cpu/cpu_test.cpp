// The simulator as its owner uses it: stopping, stepping, breakpoints, other threads, code that changes.
#include "board/cpu/cpu.h"

#include <gtest/gtest.h>

#include <thread>

#include "board/cpu/harness.h"

namespace talpa::board::cpu {
namespace {

using cpu::test::Board;
using cpu::test::kCode;
using cpu::test::kData;
using cpu::test::kStart;

constexpr u16 kAdd = 0x3001;   // adds r0, #1
constexpr u16 kLoop = 0xE7FE;  // b .
constexpr u16 kBack = 0xE7FD;  // b to the instruction before

TEST(Cpu, RunsExactlyTheInstructionsAskedFor) {
    for (const bool translate : {false, true}) {
        Board board({.translate = translate, .translate_after = 0});
        board.core().r[0] = 0;
        board.put(kStart, {kAdd, kAdd, kAdd, kAdd, 0xE7FA});  // b kStart
        board.cpu.set_pc(kStart);
        const u64 before = board.cpu.cycles();
        for (u64 n : {1U, 7U, 100U, 12345U}) EXPECT_EQ(board.cpu.run(n), Stop::Limit);
        EXPECT_EQ(board.cpu.cycles() - before, 12453U);
        EXPECT_EQ(board.cpu.pc(), kStart + 2 * (12453 % 5));
        EXPECT_EQ(board.core().r[0], 12453 / 5 * 4 + std::min<u32>(12453 % 5, 4));
    }
}

TEST(Cpu, StopRequestEndsATightTranslatedLoop) {
    Board board;
    board.put(kStart, {kAdd, kBack});
    board.cpu.set_pc(kStart);
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        board.cpu.request_stop();
    });
    EXPECT_EQ(board.cpu.run(~u64{0}), Stop::Requested);
    other.join();
}

TEST(Cpu, InterruptFromAnotherThreadIsTakenInATightLoop) {
    Board board;
    board.set_reg(0xE000E100, 1U << 21);
    // The handler asks for nothing but a stop: BKPT.
    Board halting({.stop_at_bkpt = true});
    halting.set_reg(0xE000E100, 1U << 21);
    halting.put(Board::handler(16 + 21), {0xBE00});
    halting.put(kStart, {kAdd, kBack});
    halting.cpu.set_pc(kStart);
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        halting.cpu.set_irq(21, true);
    });
    EXPECT_EQ(halting.cpu.run(~u64{0}), Stop::Bkpt);
    other.join();
    EXPECT_EQ(halting.cpu.pc(), Board::handler(16 + 21));
}

TEST(Cpu, WaitEndsByInterruptOrTimeOut) {
    Board board;
    EXPECT_FALSE(board.cpu.wait(1000));
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        board.cpu.set_irq(1, true);
    });
    EXPECT_TRUE(board.cpu.wait(10'000'000));
    other.join();
}

TEST(Cpu, BreakpointStopsBeforeTheInstructionAndLetsGoOn) {
    Board board;
    board.core().r[0] = 0;
    board.put(kStart, {kAdd, kAdd, kAdd, 0xE7FB});  // b kStart
    board.cpu.add_breakpoint(kStart + 4);
    board.cpu.set_pc(kStart);
    for (u32 round = 0; round < 3; round++) {
        EXPECT_EQ(board.cpu.run(1000), Stop::Breakpoint);
        EXPECT_EQ(board.cpu.pc(), kStart + 4);
        EXPECT_EQ(board.core().r[0], 2 + 3 * round);
    }
    EXPECT_EQ(board.cpu.step(), Stop::Limit);
    EXPECT_EQ(board.core().r[0], 9U);
    board.cpu.remove_breakpoint(kStart + 4);
    EXPECT_EQ(board.cpu.run(1000), Stop::Limit);
}

TEST(Cpu, StepsThroughAnItBlock) {
    Board board;
    board.core().r[0] = 0;
    board.core().set_nzcv(1U << 30);
    board.put(kStart, {0xBF0C, 0x2005, 0x2006, kAdd, kLoop});  // ite eq; moveq r0, #5; movne r0, #6
    board.cpu.set_pc(kStart);
    EXPECT_EQ(board.cpu.step(), Stop::Limit);
    EXPECT_NE(board.cpu.registers().xpsr & 0x0600FC00, 0U) << "inside";
    EXPECT_EQ(board.cpu.step(), Stop::Limit);
    EXPECT_EQ(board.core().r[0], 5U);
    EXPECT_EQ(board.cpu.step(), Stop::Limit);
    EXPECT_EQ(board.core().r[0], 5U) << "the else part is skipped, as an instruction of its own";
    EXPECT_EQ(board.cpu.registers().xpsr & 0x0600FC00, 0U);
    EXPECT_EQ(board.cpu.step(), Stop::Limit);
    EXPECT_EQ(board.core().r[0], 6U);
}

// The program patches an instruction of a loop that has been translated; ISB, and the next round must run the new one.
TEST(Cpu, SeesItsOwnChangesToCode) {
    for (const bool alias : {false, true}) {
        Board board;
        if (alias) {
            ASSERT_TRUE(board.bus.add_ram("secure", kCode + 0x10000000, 0x20000, board.code));
        }
        board.core().r[0] = 0;
        board.core().r[1] = kStart + (alias ? 0x10000000 : 0);
        board.core().r[2] = 0x3010;  // adds r0, #16
        board.core().r[4] = board.core().r[1] + 0x200;
        // Both pieces first: putting code later would empty the caches by itself and prove nothing.
        board.put(kStart, {kAdd, kBack});
        // str r3, [r4]: data in the same page must not make the page one to write without looking;
        // strh r2, [r1]; isb; b kStart
        board.put(kStart + 0x100, {0x6023, 0x800A, 0xF3BF, 0x8F6F, 0xE77A});
        board.cpu.set_pc(kStart);
        board.cpu.run(2000);
        EXPECT_EQ(board.core().r[0], 1000U);
        board.cpu.set_pc(kStart + 0x100);
        board.cpu.run(4 + 200);
        EXPECT_EQ(board.core().r[0], 1000U + 16 * 100);
    }
}

TEST(Cpu, DataBesideCodeCanBeWritten) {
    Board board;
    board.core().r[0] = 0;
    board.core().r[1] = kStart + 0x40;          // in the same granule as the code
    board.put(kStart, {0x6008, kAdd, 0xE7FC});  // str r0, [r1]; adds; b kStart
    board.cpu.set_pc(kStart);
    board.cpu.run(3 * 1000);
    EXPECT_EQ(board.word(kStart + 0x40), 999U);
}

TEST(Cpu, DebuggersReadSystemRegistersAndFail) {
    Board board;
    u32 value = 0;
    EXPECT_TRUE(board.cpu.read_memory(0xE000ED00, 4, value));
    EXPECT_EQ(value, 0x410FD213U);
    EXPECT_FALSE(board.cpu.read_memory(0x70000000, 4, value));
    EXPECT_FALSE(board.cpu.write_memory(0x70000000, 4, value));
}

}  // namespace
}  // namespace talpa::board::cpu
