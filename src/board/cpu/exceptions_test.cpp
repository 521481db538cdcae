// Exceptions where the reference emulator has no model or another opinion than the architecture; the rest is in
// tests/m33/guest/exceptions.c. Expected values: Armv8-M Architecture Reference Manual, chapter B3.
#include <gtest/gtest.h>

#include "board/cpu/harness.h"

namespace talpa::board::cpu {
namespace {

using cpu::test::Board;
using cpu::test::kCode;
using cpu::test::kData;
using cpu::test::kSize;
using cpu::test::kStart;

constexpr u32 kStack = kData + kSize;
constexpr u32 kEnableFaults = 7U << 16;
constexpr u32 kShcsr = 0xE000ED24;
constexpr u32 kCcr = 0xE000ED14;

constexpr u16 kLdr = 0x6808;   // ldr r0, [r1]
constexpr u16 kStr = 0x6008;   // str r0, [r1]
constexpr u16 kLoop = 0xE7FE;  // b .
constexpr u16 kBxLr = 0x4770;
constexpr u16 kAdd = 0x3001;  // adds r0, #1
constexpr u16 kUdf = 0xDE01;
constexpr u16 kWfi = 0xBF30;
constexpr u16 kWfe = 0xBF20;

TEST(Faults, UnmappedDataIsAPreciseBusFaultWithItsAddress) {
    for (const u16 access : {kStr, kLdr}) {
        Board board;
        board.set_reg(kShcsr, kEnableFaults);
        board.core().r[1] = 0x20100004;
        board.run({kAdd, access, kLoop}, 3);
        EXPECT_EQ(board.cpu.pc(), Board::handler(kBusFault)) << access;
        EXPECT_EQ(board.scs().cfsr, Scs::kPreciserr | Scs::kBfarvalid);
        EXPECT_EQ(board.scs().bfar, 0x20100004U);
        EXPECT_EQ(board.word(kStack - 0x20 + 24), kStart + 2) << "the return address is the access itself";
        EXPECT_EQ(board.core().r[kLr], 0xFFFFFFF9U);
    }
}

// The spec's pitfall 5 and section 1.7: the default map makes A0000000 Device memory, where unaligned accesses fault.
TEST(Faults, UnalignedAccessToDeviceMemoryFaults) {
    for (const bool mpu : {false, true}) {
        Board board;
        Ram ddr(0x1000);
        ASSERT_TRUE(board.bus.add_ram("ddr", 0xA8000000, 0x1000, ddr));
        board.set_reg(kShcsr, kEnableFaults);
        if (mpu) {  // the firmware's set-up: A0000000-DFFFFFFF Normal non-cacheable
            board.set_reg(0xE000EDC0, 0x44);
            board.set_reg(0xE000ED98, 0);
            board.set_reg(0xE000ED9C, 0xA0000000 | 2U << 3 | 1U << 1 | 1);
            board.set_reg(0xE000EDA0, 0xDFFFFFE0 | 1);
            board.set_reg(0xE000ED94, 7);
        }
        board.core().r[1] = 0xA8000000;
        board.run({kLdr, 0xF8D1, 0x0001, kLoop}, 2);  // ldr r0, [r1]; ldr.w r0, [r1, #1]
        if (mpu) {
            EXPECT_EQ(board.scs().cfsr, 0U);
            EXPECT_EQ(board.core().r[0], 0xE7DEADBEU) << "poison, from its second byte";
        } else {
            EXPECT_EQ(board.scs().cfsr, Scs::kUnaligned);
            board.cpu.run(1);
            EXPECT_EQ(board.cpu.pc(), Board::handler(kUsageFault));
        }
    }
}

TEST(Faults, UnalignedTrapCatchesNormalMemoryToo) {
    Board board;
    board.set_reg(kShcsr, kEnableFaults);
    board.core().r[1] = kData;
    board.run({0xF8D1, 0x0001, 0xF8A1, 0x0001, kLoop}, 2);  // ldr.w r0, [r1, #1]; strh.w
    EXPECT_EQ(board.scs().cfsr, 0U);
    board.set_reg(kCcr, Scs::kUnalignedTrap);
    board.run({0xF8A1, 0x0001, kLoop}, 1);
    EXPECT_EQ(board.scs().cfsr, Scs::kUnaligned);
}

// Remoteproc spec 1.4: TCM has ECC; a word must be written whole before it is read or written in part.
TEST(Faults, UninitialisedTcmIsABusErrorWhenItIsAskedFor) {
    Board board;
    board.set_reg(kShcsr, kEnableFaults);
    board.data.require_initialisation();
    board.data.note_written(kSize - 0x1000, 0x1000);  // the stack
    board.core().r[1] = kData + 8;
    board.run({0x700A, kLoop}, 1);  // strb r2, [r1]
    EXPECT_EQ(board.scs().cfsr, Scs::kPreciserr | Scs::kBfarvalid);
    EXPECT_EQ(board.scs().bfar, kData + 8);
    board.scs().cfsr = 0;
    board.run({kStr, 0x700A, kLdr, kLoop}, 3);
    EXPECT_EQ(board.scs().cfsr, 0U);
    board.core().r[1] = kData + 12;
    board.run({kLdr, kLoop}, 1);
    EXPECT_EQ(board.scs().bfar, kData + 12);
    EXPECT_EQ(board.scs().cfsr, Scs::kPreciserr | Scs::kBfarvalid);
}

TEST(Faults, FailedMultipleLoadLeavesAllRegisters) {
    Board board;
    board.set_reg(kShcsr, kEnableFaults);
    board.core().r[0] = 0x1234;
    board.core().r[1] = kData + kSize - 4;  // the second word lies outside
    board.core().r[2] = 0x5678;
    board.run({0xE891, 0x0005, kLoop}, 2);  // ldm r1, {r0, r2}
    EXPECT_EQ(board.cpu.pc(), Board::handler(kBusFault));
    EXPECT_EQ(board.core().r[0], 0x1234U);
    EXPECT_EQ(board.core().r[2], 0x5678U);
    EXPECT_EQ(board.scs().bfar, kData + kSize);
}

TEST(Faults, InsideHardFaultTheCoreLocksUp) {
    Board board;
    board.put(Board::handler(kHardFault), {kUdf});
    EXPECT_EQ(board.run({kUdf}, 100), Stop::Lockup);
    EXPECT_TRUE(board.cpu.locked_up());
    EXPECT_EQ(board.cpu.pc(), 0xEFFFFFFEU);
    EXPECT_EQ(board.scs().hfsr, Scs::kForced);
    EXPECT_EQ(board.cpu.run(100), Stop::Lockup) << "and stays there";
    board.cpu.reset(kCode);
    EXPECT_FALSE(board.cpu.locked_up());
}

TEST(Faults, ResetWithoutAVectorTableLocksUp) {
    Board board;
    board.cpu.reset(0x50000000);
    EXPECT_EQ(board.cpu.run(1), Stop::Lockup);
}

TEST(Faults, StackedFrameOutsideMemoryIsAStackingError) {
    Board board;
    board.set_reg(kShcsr, kEnableFaults);
    board.core().r[kSp] = kData + 8;  // no room for a frame below the RAM
    board.run({0xDF00, kLoop}, 2);    // svc 0
    EXPECT_EQ(board.scs().cfsr, Scs::kStkerr);
    // The derived BusFault has the same priority as SVCall and the lower number: it is taken, SVCall stays pending.
    EXPECT_EQ(board.cpu.pc(), Board::handler(kBusFault));
    EXPECT_EQ(board.reg(kShcsr) & (1U << 15), 1U << 15);
}

TEST(Faults, UnreadableVectorIsAHardFault) {
    Board board;
    board.set_reg(0xE000ED08, 0x60000000);  // VTOR where nothing is
    EXPECT_EQ(board.run({0xDF00}, 10), Stop::Lockup) << "the HardFault vector cannot be read either";
    EXPECT_EQ(board.scs().hfsr & Scs::kVecttbl, Scs::kVecttbl);
}

TEST(Faults, ImpossibleExceptionReturnIsInvpc) {
    Board board;
    board.set_reg(kShcsr, kEnableFaults);
    board.put(Board::handler(kSvCall), {0xF04F, 0x30FF, 0x4700});  // mov r0, #-1; bx r0: FFFFFFFF is no valid value
    board.run({0xDF00, kLoop}, 4);
    EXPECT_EQ(board.scs().cfsr, Scs::kInvpc);
    EXPECT_EQ(board.cpu.pc(), Board::handler(kUsageFault));
}

TEST(Faults, ExceptionReturnInThreadModeIsAnOrdinaryBranch) {
    Board board;
    board.set_reg(kShcsr, kEnableFaults);
    board.core().r[kLr] = 0xFFFFFFF9;
    board.run({kBxLr}, 2);
    EXPECT_EQ(board.scs().cfsr, Scs::kIaccviol) << "the system space is execute-never";
    EXPECT_EQ(board.cpu.pc(), Board::handler(kMemManage));
}

TEST(Interrupts, LevelStaysPendingUntilTheDeviceLetsGo) {
    Board board;
    board.set_reg(0xE000E100, 1U << 21);
    board.put(Board::handler(16 + 21), {kAdd, kBxLr});
    board.core().r[0] = 0;
    board.cpu.set_irq(21, true);
    board.run({kLoop}, 30);
    EXPECT_GT(board.cpu.exceptions_taken(), 3U) << "taken again and again";
    board.cpu.set_irq(21, false);
    board.cpu.run(20);
    const u64 taken = board.cpu.exceptions_taken();
    board.cpu.run(100);
    EXPECT_EQ(board.cpu.exceptions_taken(), taken);
    EXPECT_EQ(board.cpu.pc(), kStart);
}

TEST(Interrupts, PulseIsRememberedWhileDisabled) {
    Board board;
    board.cpu.set_irq(178, true);
    board.cpu.set_irq(178, false);
    board.run({kLoop}, 5);
    EXPECT_EQ(board.reg(0xE000E200 + 4 * (178 / 32)), 1U << (178 % 32));
    board.set_reg(0xE000E100 + 4 * (178 / 32), 1U << (178 % 32));
    board.cpu.run(2);
    EXPECT_EQ(board.cpu.pc(), Board::handler(16 + 178));
}

TEST(Interrupts, SleepEndsByInterruptEvenWithPrimask) {
    Board board;
    board.set_reg(0xE000E100, 1);
    EXPECT_EQ(board.run({0xB672, kWfi, kAdd, kLoop}, 100), Stop::Sleeping);  // cpsid i
    EXPECT_EQ(board.cpu.run(100), Stop::Sleeping);
    board.core().r[0] = 7;
    board.cpu.set_irq(0, true);
    EXPECT_EQ(board.cpu.run(3), Stop::Limit);
    EXPECT_EQ(board.core().r[0], 8U);
    EXPECT_EQ(board.cpu.exceptions_taken(), 0U);
}

TEST(Interrupts, EventRegisterOfWfe) {
    Board board;
    board.run({kWfe, kLoop}, 2);
    EXPECT_TRUE(board.cpu.sleeping());
    board.cpu.set_event();
    EXPECT_EQ(board.cpu.run(2), Stop::Limit);
    board.cpu.set_event();
    EXPECT_EQ(board.run({kWfe, kAdd, kLoop}, 3), Stop::Limit) << "an event from before lets it pass";
    // SEVONPEND: a disabled interrupt becoming pending wakes.
    board.set_reg(0xE000ED10, Scs::kEventOnPend);
    EXPECT_EQ(board.run({kWfe, kAdd, kLoop}, 3), Stop::Sleeping);
    board.cpu.set_irq(3, true);
    EXPECT_EQ(board.cpu.run(3), Stop::Limit);
}

TEST(Interrupts, SleepOnExitReturnsToSleep) {
    Board board;
    board.set_reg(0xE000E100, 1);
    board.set_reg(0xE000ED10, Scs::kSleepOnExit);
    board.put(Board::handler(16), {kAdd, kBxLr});
    board.cpu.set_irq(0, true);
    board.cpu.set_irq(0, false);
    EXPECT_EQ(board.run({kLoop}, 100), Stop::Sleeping);
    EXPECT_EQ(board.cpu.exceptions_taken(), 1U);
}

TEST(SysTick, FiresEveryReloadPlusOneCycles) {
    Board board;
    board.set_reg(0xE000E014, 99);
    board.set_reg(0xE000E018, 0);
    board.set_reg(0xE000E010, 7);
    board.put(Board::handler(kSysTick), {kLoop});
    const u64 start = board.cpu.cycles();
    board.put(kStart, {kLoop});
    board.cpu.set_pc(kStart);
    while (board.cpu.exceptions_taken() == 0) board.cpu.run(1);
    EXPECT_EQ(board.cpu.cycles() - start - 1, 100U)
        << "one cycle to load the counter, 99 to zero; then the handler's first";
    EXPECT_EQ(board.reg(0xE000E010), 0x10007U);
    EXPECT_EQ(board.reg(0xE000E010), 7U) << "COUNTFLAG is cleared by reading";
    EXPECT_EQ(board.reg(0xE000E018), 99U);
}

TEST(SysTick, TimeOfASleepingCoreIsTheOwnersToPass) {
    Board board;
    board.set_reg(0xE000E014, 999);
    board.set_reg(0xE000E018, 0);
    board.set_reg(0xE000E010, 7);
    EXPECT_EQ(board.run({kWfi, kLoop}, 1000000), Stop::Sleeping);
    const u64 left = board.cpu.cycles_until_timer();
    EXPECT_EQ(left, 999U);
    board.cpu.skip(left - 1);
    EXPECT_EQ(board.cpu.run(10), Stop::Sleeping);
    board.cpu.skip(1);
    EXPECT_EQ(board.cpu.run(10), Stop::Limit);
    EXPECT_EQ(board.cpu.exceptions_taken(), 1U);
    EXPECT_EQ(board.cpu.instructions(), 11U);
}

TEST(Dwt, CycleCounterCountsInstructions) {
    Board board;
    board.set_reg(0xE000EDFC, 1U << 24);
    board.set_reg(0xE0001004, 0);
    board.set_reg(0xE0001000, 1);
    const u32 before = board.reg(0xE0001004);
    board.core().r[1] = 0xE0001004;
    board.run({kAdd, kAdd, kLdr, kLoop}, 3);
    EXPECT_EQ(board.core().r[0], before + 2) << "exact inside a block";
    EXPECT_EQ(board.reg(0xE0001004), before + 3);
}

TEST(LazyFpState, IsPendingInTheHandlerAndOverWithItsReturn) {
    Board board;
    board.set_reg(0xE000ED88, 0xFU << 20);               // CPACR: the FPU for everybody
    board.put(Board::handler(kPendSv), {kAdd, 0x4770});  // bx lr: no FP in the handler
    board.run({0xEEB7, 0x0A00, kAdd, kLoop}, 1);         // vmov.f32 s0, #1.0: the thread has FP state now
    board.set_reg(0xE000ED04, 1U << 28);                 // pend PendSV
    board.cpu.run(1);
    EXPECT_EQ(board.reg(0xE000EF34) & 1, 1U) << "FPCCR.LSPACT: room on the stack, nothing in it yet";
    const u32 frame = board.reg(0xE000EF38);
    const u32 before = board.word(frame);
    board.cpu.run(2);
    EXPECT_EQ(board.reg(0xE000EF34) & 1, 0U) << "the registers were never stacked, and need not be any more";
    board.run({0xEEB7, 0x0A00, kLoop}, 1);
    EXPECT_EQ(board.word(frame), before) << "the thread's next FP instruction stacks nothing";
}

TEST(Reset, RequestedByTheProgramStartsAgainFromTheTable) {
    Board board;
    board.core().r[0] = 0x05FA0004;
    board.core().r[1] = 0xE000ED0C;
    board.put_word(kData, 0xCAFE);
    EXPECT_EQ(board.run({kStr, kLoop}, 100), Stop::Reset);
    EXPECT_EQ(board.cpu.pc(), kStart);
    EXPECT_EQ(board.core().r[kSp], kStack);
    EXPECT_EQ(board.word(kData), 0xCAFEU) << "memory stays";
}

TEST(StackLimit, SubtractionBelowItFaultsAndChangesNothing) {
    Board board;
    board.set_reg(kShcsr, kEnableFaults);
    Registers r = board.cpu.registers();
    board.cpu.machine().exceptions.write_special(10, 0, kStack - 128);  // MSPLIM
    r.r[kSp] = kStack - 32;
    board.cpu.set_registers(r);
    board.run({0xB0C0, kLoop}, 1);  // sub sp, #256
    EXPECT_EQ(board.scs().cfsr, Scs::kStkof);
    EXPECT_EQ(board.core().r[kSp], kStack - 64) << "a frame, from the old value";
}

TEST(Mpu, HardFaultMayRunWithoutIt) {
    for (const bool enabled_in_faults : {false, true}) {
        Board board;
        board.put(Board::handler(kHardFault), {kStr, kLoop});
        board.set_reg(0xE000EDC0, 0x44);
        board.set_reg(0xE000ED98, 0);
        board.set_reg(0xE000ED9C, kData | 2U << 1 | 1);  // privileged read-only, execute-never
        board.set_reg(0xE000EDA0, (kData + 31) | 1);
        board.set_reg(0xE000ED94,
                      Mpu::kEnable | Mpu::kPrivilegedDefault | (enabled_in_faults ? Mpu::kHardFaultEnable : 0));
        board.core().r[0] = 0x77;
        board.core().r[1] = kData;
        const Stop stop = board.run({kUdf}, 10);
        EXPECT_EQ(stop, enabled_in_faults ? Stop::Lockup : Stop::Limit);
        EXPECT_EQ(board.word(kData), enabled_in_faults ? Ram::kPoison : 0x77U);
    }
}

}  // namespace
}  // namespace talpa::board::cpu
