// The parts of the family: the same network compiled for several of them and for other memory modes gives the same
// bits, and convolutions run through streams of every configuration (two cores, blocks of four channels) as they do
// from a bank.
#include <gtest/gtest.h>

#include <set>

#include "base/host/error.h"
#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu_model/delegate_for_test.h"
#include "npu_model/model.h"
#include "npu_model/random_operation.h"
#include "npu_model/small_program_for_test.h"

namespace talpa::npu_model {
namespace {

using testing::Delegate;
using testing::Random;
using testing::RandomOperation;

std::vector<std::uint8_t> output_of(Delegate& delegate, Bytes input) {
    delegate.set_input(0, input);
    Model model({.config = delegate.payload().config, .kernels = Kernels::Reference});
    const auto result = model.run(delegate.job());
    EXPECT_TRUE(result) << host::Error(result.error()).describe();
    return delegate.output(0);
}

// One network of two convolutions; Vela made another schedule for each memory mode, and another command stream for the
// U55.
TEST(Configurations, one_network_compiled_for_other_parts_and_memory_modes_gives_the_same_bits) {
    const auto folder = talpa::testing::golden_folder() / "pte_variants";
    const auto load = [&](const char* name) {
        auto delegates = testing::delegates_in(host::read_file(folder / (std::string(name) + ".pte")).value());
        EXPECT_EQ(delegates.size(), 1u) << name;
        return std::move(delegates.at(0));
    };
    Delegate first = load("two_Dedicated_Sram");
    Random random(4);
    std::vector<std::uint8_t> input(first.inputs().at(0).size_bytes);
    for (auto& byte : input) byte = static_cast<std::uint8_t>(random.bits());
    const auto expected = output_of(first, input);
    std::set<std::uint32_t> configs{first.payload().config};
    for (const char* name : {"two_Shared_Sram", "two_Sram_Only", "two_inline", "two_seg", "two_u55"}) {
        Delegate other = load(name);
        configs.insert(other.payload().config);
        EXPECT_EQ(output_of(other, input), expected) << name;
    }
    EXPECT_EQ(configs.size(), 2u);
    input[7] ^= 0x40;
    EXPECT_NE(output_of(first, input), expected) << "the input matters";
}

// A random convolution as a program: encoded weights and records in region 0.
testing::SmallProgram program_of(const RandomOperation& r, const npu::Hardware& hardware, bool two_cores) {
    testing::SmallProgram p;
    p.memory = r.memory;
    npu::Operation op = r.op;
    op.cores = two_cores ? 2 : 1;
    WeightOrder order = r.filter->shape;
    order.cores = op.cores;
    order.ublock_depth = hardware.ublock_depth;
    std::vector<std::uint8_t> constants;
    const auto append = [&](const std::vector<std::uint8_t>& bytes) {
        const npu::Range range{constants.size(), round_up<std::uint64_t>(bytes.size(), 16)};
        constants.insert(constants.end(), bytes.begin(), bytes.end());
        constants.resize(range.offset + range.size);
        return range;
    };
    for (unsigned core = 0; core < op.cores; ++core) {
        if (core >= op.ofm.depth) continue;  // that core idles
        op.weights[core] = append(testing::encode_bank(order, core, r.filter->weights));
        std::vector<std::uint8_t> records;
        for (std::size_t o = core; o < r.filter->records.size(); o += op.cores) {
            const ScaleRecord& record = r.filter->records[o];
            std::uint8_t bytes[10];
            store_le(bytes, static_cast<std::uint64_t>(record.bias));
            store_le(bytes + 5, record.multiplier);
            bytes[9] = record.shift;
            records.insert(records.end(), bytes, bytes + 10);
        }
        op.scales[core] = append(records);
    }
    p.memory[0] = testing::AlignedMemory(Bytes(constants));
    p.operations = {op};
    return p;
}

TEST(Configurations, convolutions_by_stream_equal_convolutions_by_bank) {
    Random random(21);
    ThreadPool pool(1);
    Findings findings;
    int runs = 0;
    for (const npu::Hardware& hardware : npu::kHardware)
        for (int i = 0; i < 40; ++i) {
            RandomOperation r = testing::random_operation(random, testing::Profile::Any,
                                                          random.pick({npu::OpKind::Conv, npu::OpKind::Depthwise}));
            if (r.op.activation.function == npu::Activation::Function::Lut) continue;  // the table would need a DMA
            testing::SmallProgram p = program_of(r, hardware, hardware.cores == 2 && !random.once_in(4));
            findings.start_operation(r.op);
            ASSERT_TRUE(run_reference(r.context(pool, findings)));
            Model model({.config = hardware.config, .kernels = Kernels::Reference});
            const auto result = model.run(p.job());
            ASSERT_TRUE(result) << hardware.name << ": " << r.describe() << ": "
                                << host::Error(result.error()).describe();
            ASSERT_TRUE(p.memory[1] == r.memory[1]) << hardware.name << ": " << r.describe();
            ++runs;
        }
    EXPECT_GT(runs, 150);
}

}  // namespace
}  // namespace talpa::npu_model
