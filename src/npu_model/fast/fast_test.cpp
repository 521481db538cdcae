// The fast kernels against the reference kernels on random operations: every byte of memory equal, with each
// instruction set that this processor has.
#include <gtest/gtest.h>

#include <cstdlib>

#include "npu_model/fast/isa.h"
#include "npu_model/fast/plan_cache.h"
#include "npu_model/one_operation_for_test.h"
#include "npu_model/random_operation.h"

namespace talpa::npu_model::fast {
namespace {

using npu::OpKind;
using testing::Profile;
using testing::Random;
using testing::RandomOperation;

/// Operations per kind and profile; `./run soak` asks for many more.
int operations() {
    const char* wanted = std::getenv("TALPA_SOAK_OPERATIONS");
    return wanted != nullptr ? std::atoi(wanted) : 60;
}

struct Outcome {
    int tried = 0, taken = 0;
};

class FastKernels : public ::testing::TestWithParam<std::tuple<Isa, unsigned>> {
  protected:
    void SetUp() override {
        before_ = current_isa();
        force_isa(std::get<0>(GetParam()));
    }
    void TearDown() override { force_isa(before_); }

    // Runs `kinds` in turn; returns how many the fast kernels took. Stops at the first difference.
    Outcome compare(std::uint64_t seed, Profile profile, std::initializer_list<OpKind> kinds) {
        Random random(seed);
        ThreadPool pool(std::get<1>(GetParam()));
        PlanCache plans;
        Outcome outcome;
        for (int i = 0; i < operations() * static_cast<int>(kinds.size()); ++i) {
            RandomOperation expected = testing::random_operation(random, profile, random.pick(kinds));
            // One cache for all: a plan must not be used for another operation at the same place.
            expected.op.offset_bytes = static_cast<std::uint32_t>(random.in(0, 3)) * 4;
            RandomOperation actual = expected;
            const RandomOperation untouched = expected;
            Findings findings;
            findings.start_operation(expected.op);
            if (!run_reference(expected.context(pool, findings))) continue;
            ++outcome.tried;
            for (int run = 0; run < 2; ++run) {  // planned, then from the cache
                actual.memory = untouched.memory;
                Context context = actual.context(pool, findings);
                context.plans = &plans;
                const bool taken = try_run(context);
                outcome.taken += taken && run == 0 ? 1 : 0;
                const RandomOperation& wanted = taken ? expected : untouched;
                for (std::size_t r = 1; r <= 2; ++r) {
                    if (actual.memory[r] == wanted.memory[r]) continue;
                    std::size_t at = 0;
                    while (actual.memory[r].data()[at] == wanted.memory[r].data()[at]) ++at;
                    ADD_FAILURE() << "seed " << seed << " operation " << i << " run " << run << ": region " << r
                                  << " differs at byte " << at << " (taken: " << taken << ")\n"
                                  << actual.describe();
                    return outcome;
                }
            }
        }
        return outcome;
    }

    Isa before_ = Isa::Generic;
};

TEST_P(FastKernels, convolutions_equal_the_reference) {
    const Outcome common = compare(11, Profile::Common, {OpKind::Conv});
    EXPECT_GE(common.taken * 10, common.tried * 8) << common.taken << " of " << common.tried;
    compare(12, Profile::Any, {OpKind::Conv});
}

TEST_P(FastKernels, depthwise_convolutions_equal_the_reference) {
    const Outcome common = compare(21, Profile::Common, {OpKind::Depthwise});
    EXPECT_GE(common.taken * 10, common.tried * 8) << common.taken << " of " << common.tried;
    compare(22, Profile::Any, {OpKind::Depthwise});
}

TEST_P(FastKernels, pools_equal_the_reference) {
    const Outcome common = compare(31, Profile::Common, {OpKind::MaxPool, OpKind::AvgPool});
    EXPECT_GE(common.taken * 10, common.tried * 6) << common.taken << " of " << common.tried;
    compare(32, Profile::Any, {OpKind::MaxPool, OpKind::AvgPool, OpKind::ReduceSum});
}

TEST_P(FastKernels, elementwise_operations_equal_the_reference) {
    const Outcome common =
        compare(41, Profile::Common,
                {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Min, OpKind::Max, OpKind::Lrelu, OpKind::Abs});
    EXPECT_GE(common.taken * 10, common.tried * 5) << common.taken << " of " << common.tried;
    compare(42, Profile::Any,
            {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Min, OpKind::Max, OpKind::Lrelu, OpKind::Abs, OpKind::Clz,
             OpKind::Shr, OpKind::Shl});
}

// Large enough to be shared out among threads, with ends that no part divides evenly.
TEST_P(FastKernels, large_elementwise_operations_equal_the_reference) {
    constexpr std::uint32_t kHeight = 39, kWidth = 41, kDepth = 36, kBlocks = 3;
    Random random(51);
    ThreadPool pool(std::get<1>(GetParam()));
    int taken = 0;
    for (int i = 0; i < 24; ++i) {
        RandomOperation expected =
            testing::random_operation(random, Profile::Common, i % 2 == 0 ? OpKind::Add : OpKind::Mul);
        npu::Operation& op = expected.op;
        op.ifm2_broadcast_h = op.ifm2_broadcast_w = op.ifm2_broadcast_c = op.ifm2_is_scalar = false;
        std::uint64_t base = 0;
        for (npu::FeatureMap* fm : {&op.ifm, &op.ifm2, &op.ofm}) {
            const npu::ElementType type = fm->type;
            const bool bricks = i % 4 < 2;
            *fm = testing::dense_map(kHeight, kWidth, kDepth, type, fm->zero_point);
            if (bricks) {
                fm->layout = npu::Layout::Nhcwb16;
                fm->stride_c = std::int64_t{kWidth} * 16 * type.bytes;
                fm->stride_y = fm->stride_c * kBlocks;
            }
            fm->base[0] = base;
            base += std::uint64_t{kHeight} * kWidth * kBlocks * 16 * type.bytes;
        }
        expected.memory[1] = testing::AlignedMemory(base);
        for (std::size_t k = 0; k < base; ++k)
            expected.memory[1].data()[k] = static_cast<std::uint8_t>(random.in(0, 255));
        RandomOperation actual = expected;
        Findings findings;
        findings.start_operation(op);
        ASSERT_TRUE(run_reference(expected.context(pool, findings)));
        if (!try_run(actual.context(pool, findings))) continue;
        ++taken;
        ASSERT_TRUE(actual.memory[1] == expected.memory[1]) << "operation " << i << "\n" << actual.describe();
    }
    EXPECT_GT(taken, 5);
}

std::vector<Isa> isas() {
    return {supported_isas().begin(), supported_isas().end()};
}

INSTANTIATE_TEST_SUITE_P(Isas, FastKernels, ::testing::Combine(::testing::ValuesIn(isas()), ::testing::Values(1u, 3u)),
                         [](const auto& test) {
                             return std::string(isa_name(std::get<0>(test.param))) + "_" +
                                    std::to_string(std::get<1>(test.param)) + "_threads";
                         });

}  // namespace
}  // namespace talpa::npu_model::fast
