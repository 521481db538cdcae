#include "npu_model/cycles/timeline.h"

#include <gtest/gtest.h>

namespace talpa::npu_model {
namespace {

using npu::OpKind;

Job kernel(std::uint64_t cycles, std::uint64_t dram = 0) {
    return {OpKind::Conv, 0, cycles, {0, dram}};
}
Job dma(std::uint64_t cycles, std::uint64_t dram = 0) {
    return {OpKind::Dma, 0, cycles, {0, dram}};
}
Job wait(OpKind kind, std::uint32_t outstanding) {
    return {kind, outstanding, 0, {}};
}

const npu::Hardware& u65() {
    return npu::kU65_256;
}
const npu::Hardware& u55() {
    return npu::kHardware[3];
}

TEST(Timeline, KernelsRunOneAfterTheOther) {
    const std::vector<Job> jobs{kernel(100), kernel(50)};
    const auto t = simulate(jobs, u65());
    EXPECT_DOUBLE_EQ(t[1].start, 100);
    EXPECT_DOUBLE_EQ(t[1].end, 150);
    EXPECT_DOUBLE_EQ(t[1].stall, 0);
}

TEST(Timeline, DmaRunsBesideAKernelAndAWaitHoldsTheNextOne) {
    const std::vector<Job> jobs{kernel(100), dma(130), wait(OpKind::DmaWait, 0), kernel(10)};
    const auto t = simulate(jobs, u65());
    EXPECT_DOUBLE_EQ(t[1].start, 0);
    EXPECT_DOUBLE_EQ(t[3].start, 130);
    EXPECT_DOUBLE_EQ(t[3].stall, 30);
}

TEST(Timeline, KernelWaitHoldsADma) {
    const std::vector<Job> jobs{kernel(100), kernel(100), wait(OpKind::KernelWait, 1), dma(10)};
    EXPECT_DOUBLE_EQ(simulate(jobs, u65())[3].start, 100);
}

TEST(Timeline, TheParserStopsAtAFullQueue) {
    // Two kernels may be outstanding, so the third's place, and the DMA behind it, is free when the first has ended.
    const std::vector<Job> jobs{kernel(100), kernel(100), kernel(100), dma(10)};
    EXPECT_DOUBLE_EQ(simulate(jobs, u65())[3].start, 100);
    const std::vector<Job> copies{dma(100), dma(100), kernel(10)};
    EXPECT_DOUBLE_EQ(simulate(copies, u65())[2].start, 0);
    EXPECT_DOUBLE_EQ(simulate(copies, u55())[2].start, 100);  // one DMA outstanding on the U55
}

TEST(Timeline, AMemoryThatBothWantIsShared) {
    // Each would use all of the DRAM for 100 cycles: both are done after 200.
    const std::vector<Job> both{kernel(100, 100), dma(100, 100)};
    auto t = simulate(both, u65());
    EXPECT_DOUBLE_EQ(t[0].end, 200);
    EXPECT_DOUBLE_EQ(t[1].end, 200);
    // A kernel that needs a quarter leaves three: nobody slows it, the copy runs at three quarters until it is alone.
    const std::vector<Job> light{kernel(100, 25), dma(100, 100)};
    t = simulate(light, u65());
    EXPECT_DOUBLE_EQ(t[0].end, 100);
    EXPECT_DOUBLE_EQ(t[1].end, 125);
}

}  // namespace
}  // namespace talpa::npu_model
