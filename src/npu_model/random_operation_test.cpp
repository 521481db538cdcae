// The generator of random operations keeps its word: what it makes is legal, stays inside its memory, varies, and the
// kernels write the OFM's elements only. The fast kernels' own tests compare them with the reference on it.
#include "npu_model/random_operation.h"

#include <gtest/gtest.h>

#include <set>

#include "base/host/error.h"
#include "npu_model/feature_map_access.h"
#include "npu_model/legality.h"

namespace talpa::npu_model {
namespace {

using testing::Profile;
using testing::Random;
using testing::RandomOperation;

class RandomOperations : public ::testing::TestWithParam<Profile> {};

TEST_P(RandomOperations, are_legal_and_stay_inside_their_memory) {
    Random random(1);
    ThreadPool pool(1);
    Findings findings;
    std::set<npu::OpKind> kinds;
    for (int i = 0; i < 300; ++i) {
        RandomOperation r = testing::random_operation(random, GetParam());
        SCOPED_TRACE(std::to_string(i) + ": " + r.describe());
        kinds.insert(r.op.kind);
        const auto legal = check_legal(r.op, npu::kU65_256);
        ASSERT_TRUE(legal) << host::Error(legal.error()).describe();
        npu::for_each_access(r.op, [&](const npu::Access& access, npu::Extent extent) {
            if (access.internal || access.operand == npu::Operand::Weights || access.operand == npu::Operand::Scales)
                return;
            EXPECT_GE(extent.begin, 0);
            EXPECT_LE(extent.end, static_cast<std::int64_t>(r.memory[access.region].size()));
        });
        const RandomOperation before = r;
        findings.start_operation(r.op);
        ASSERT_TRUE(run_reference(r.context(pool, findings)));
        // Every byte that changed belongs to an OFM element.
        std::vector<bool> may_change(r.memory[1].size());
        bool alone = true;  // no two elements share a byte
        for (std::uint32_t y = 0; y < r.op.ofm.height; ++y)
            for (std::uint32_t x = 0; x < r.op.ofm.width; ++x)
                for (std::uint32_t c = 0; c < r.op.ofm.depth; ++c)
                    for (std::int64_t b = 0; b < r.op.ofm.type.bytes; ++b) {
                        const auto at = static_cast<std::size_t>(r.op.ofm.offset_of(y, x, c) + b);
                        alone = alone && !may_change[at];
                        may_change[at] = true;
                    }
        EXPECT_TRUE(alone);
        for (std::size_t b = 0; b < may_change.size(); ++b)
            if (!may_change[b]) {
                ASSERT_EQ(r.memory[1].data()[b], before.memory[1].data()[b]) << "byte " << b;
            }
        EXPECT_TRUE(r.memory[2] == before.memory[2]);
    }
    EXPECT_EQ(kinds.size(), static_cast<std::size_t>(npu::OpKind::Shl) + 1);
}

// A generator whose outputs are all at the clamp would prove little.
TEST_P(RandomOperations, mostly_give_outputs_of_many_values) {
    Random random(2);
    ThreadPool pool(1);
    Findings findings;
    int varied = 0, large = 0;
    for (int i = 0; i < 200; ++i) {
        RandomOperation r =
            testing::random_operation(random, GetParam(),
                                      random.pick({npu::OpKind::Conv, npu::OpKind::Depthwise, npu::OpKind::AvgPool,
                                                   npu::OpKind::Add, npu::OpKind::Mul}));
        const std::size_t elements = std::size_t{r.op.ofm.height} * r.op.ofm.width * r.op.ofm.depth;
        if (elements < 200) continue;
        findings.start_operation(r.op);
        ASSERT_TRUE(run_reference(r.context(pool, findings)));
        const auto out = load_map(r.memory[1].data(), r.op.ofm, 0).values;
        ++large;
        varied += std::set<std::int32_t>(out.begin(), out.end()).size() > 20 ? 1 : 0;
    }
    EXPECT_GT(varied, large / 2) << "of " << large;
}

INSTANTIATE_TEST_SUITE_P(Profiles, RandomOperations, ::testing::Values(Profile::Any, Profile::Common),
                         [](const auto& test) { return test.param == Profile::Any ? "any" : "common"; });

}  // namespace
}  // namespace talpa::npu_model
