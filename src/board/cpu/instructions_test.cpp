// What the differential test cannot ask its oracle, or would not ask: cases from the architecture's text by hand.
#include <gmock/gmock.h>

#include "board/cpu/float32.h"
#include "board/cpu/harness.h"

namespace talpa::board::cpu {
namespace {

using cpu::test::Board;
using cpu::test::kData;
using cpu::test::kStart;

// Manual, SMLAD: Q is set when the sum of both products and the accumulator does not fit, not for a sum in between.
TEST(Instructions, SmladSetsQForTheWholeSumOnly) {
    Board board;
    board.core().r[1] = 0x80008000;
    board.core().r[2] = 0x80008000;
    board.core().r[3] = 0xFFFFFFFF;
    board.run({0xFB21, 0x3002}, 1);  // smlad r0, r1, r2, r3: 2^30 + 2^30 - 1
    EXPECT_EQ(board.core().r[0], 0x7FFFFFFFU);
    EXPECT_EQ(board.core().q, 0);
    board.core().r[3] = 0;
    board.run({0xFB21, 0x3002}, 1);
    EXPECT_EQ(board.core().r[0], 0x80000000U);
    EXPECT_EQ(board.core().q, 1);
}

// Manual, FixedToFP called with round_to_nearest for VCVT (between floating-point and fixed-point).
TEST(Instructions, VcvtFromFixedPointRoundsToNearestWhateverTheMode) {
    for (u32 mode = 0; mode < 4; mode++) {
        Board board;
        board.set_reg(0xE000ED88, 0x00F00000);
        board.put(kStart, {0xEEBA, 0x0AC4});  // vcvt.f32.s32 s0, s0, #24
        board.cpu.set_pc(kStart);
        board.run({0xEEBA, 0x0AC4}, 1);  // once, to have an FP context
        board.core().f[0] = 0x01000001;  // needs 25 bits: a tie, to even
        board.core().fpscr = mode << 22;
        board.run({0xEEBA, 0x0AC4}, 1);
        EXPECT_EQ(board.core().f[0], 0x3F800000U) << "mode " << mode;
        EXPECT_EQ(board.core().fpscr & 0x9F, float32::kIxc);
    }
}

TEST(Instructions, DivisionByZeroGivesZeroOrTraps) {
    Board board;
    board.core().r[1] = 77;
    board.core().r[2] = 0;
    board.run({0xFB91, 0xF0F2}, 1);  // sdiv r0, r1, r2
    EXPECT_EQ(board.core().r[0], 0U);
    board.set_reg(0xE000ED14, 1U << 4);
    board.run({0xFB91, 0xF0F2}, 2);
    EXPECT_EQ(board.scs().cfsr, Scs::kDivbyzero);
    EXPECT_EQ(board.cpu.pc(), Board::handler(kHardFault));
}

}  // namespace
}  // namespace talpa::board::cpu
