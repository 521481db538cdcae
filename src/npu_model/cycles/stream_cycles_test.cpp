#include "npu_model/cycles/stream_cycles.h"

#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu_model/cycles/network_cost.h"
#include "npu_model/delegate_for_test.h"
#include "npu_model/model.h"

namespace talpa::npu_model {
namespace {

testing::Delegate program(const char* name) {
    const auto path = talpa::testing::golden_folder() / "ops" / name / (std::string(name) + ".pte");
    auto found = testing::delegates_in(host::read_file(path).value());
    return std::move(found.at(0));
}

TEST(StreamCycles, AreTheTotalOfTheStream) {
    const auto add = program("add_same"), linear = program("linear");
    StreamCycles cycles;
    for (const auto* p : {&add, &linear, &add})
        EXPECT_EQ(cycles.of(p->payload().stream), network_cost(decode_all(p->payload().stream).value()).cycles_total);
    EXPECT_EQ(cycles.of(add.payload().stream), 7372u);  // as the compiler says: vela_estimate of ops/add_same
}

TEST(StreamCycles, OfAMalformedStreamAreUnknown) {
    const std::vector<std::uint32_t> words{0xFFFFFFFF};
    EXPECT_EQ(StreamCycles().of(words), 0u);
}

TEST(StreamCycles, AreReportedByTheModel) {
    auto add = program("add_same");
    Model model;
    EXPECT_EQ(model.run(add.job()).value().cycles, 7372u);
}

// Registers are a stranger's: the largest values there are must neither take long nor overflow into nonsense.
TEST(StreamCycles, OfTheLargestOperationAreBounded) {
    npu::Operation op;
    op.kind = npu::OpKind::AvgPool;
    op.ofm.height = op.ofm.width = op.ofm.depth = 65536;
    op.ifm = op.ofm;
    op.kernel.height = op.kernel.width = 65536;
    op.kernel.stride_x = op.kernel.stride_y = 3;
    const OperationCost cost = estimate(op);
    EXPECT_EQ(cost.npu_cycles >> 53, 1u);
    const std::vector<npu::Operation> many(1000, op);
    EXPECT_EQ(network_cost(many).cycles_total, std::uint64_t{1} << 53);
}

}  // namespace
}  // namespace talpa::npu_model
