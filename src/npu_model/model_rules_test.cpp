// What the model refuses and reports: accesses outside regions, malformed and illegal programs, too much work, data
// that overflows or that nobody wrote. Each error names the stream offset and the operation.
#include <gtest/gtest.h>

#include "base/host/error.h"
#include "npu_model/model.h"
#include "npu_model/small_program_for_test.h"

namespace talpa::npu_model {
namespace {

using npu::Operation;
using npu::OpKind;
using testing::AlignedMemory;
using testing::identity_convolution;
using testing::simple_operation;
using testing::SmallProgram;

struct Outcome {
    ErrorCode code{};
    std::string text = "no error";
};

Outcome run(SmallProgram& p, const ModelOptions& options = {}, std::vector<InitialisedRange> initialised = {}) {
    Model model(options);
    model.set_initialised(std::move(initialised));
    const auto result = model.run(p.job());
    if (result) return {};
    // The offset of the command that fails, which is the last but one word of these streams, is taken off.
    std::string text = host::Error(result.error()).message;
    const std::string place = "command stream offset " + std::to_string(p.words.size() * 4 - 8) + ": ";
    if (text.starts_with(place)) text.erase(0, place.size());
    return {result.error().code, text};
}

SmallProgram program(const Operation& op) {
    SmallProgram p;
    p.operations = {op};
    p.memory[1] = AlignedMemory(4096);
    return p;
}

TEST(ModelRules, an_identity_convolution_adds_its_biases) {
    SmallProgram p = identity_convolution();
    for (std::size_t i = 0; i < 128; ++i) p.memory[1].data()[i] = static_cast<std::uint8_t>(i - 100);
    EXPECT_EQ(run(p).text, "no error");
    for (std::size_t i = 0; i < 128; ++i)
        EXPECT_EQ(p.memory[1].data()[2048 + i],
                  static_cast<std::uint8_t>(std::min<int>(127, static_cast<int>(i) - 100 + static_cast<int>(i % 8))))
            << i;
}

TEST(ModelRules, every_operand_is_held_inside_its_region) {
    struct Case {
        const char* text;
        void (*damage)(Operation&);
    };
    for (const Case& c : {Case{"the IFM of ADD touches byte 4096 of region 1, which has 4096 bytes",
                               [](Operation& op) { op.ifm.base[0] = 4096 - 127; }},
                          Case{"the IFM2 of ADD touches byte 4096 of region 1, which has 4096 bytes",
                               [](Operation& op) { op.ifm2.base[0] = 4096 - 127; }},
                          Case{"the OFM of ADD touches byte 4096 of region 1, which has 4096 bytes",
                               [](Operation& op) { op.ofm.base[0] = 4096 - 127; }},
                          Case{"the OFM of ADD touches byte -32 of region 1, which has 4096 bytes",
                               [](Operation& op) {
                                   op.ofm.base[0] = 64;
                                   op.ofm.stride_y = -32;
                               }},
                          Case{"the IFM of ADD touches byte 127 of region 5, which has 0 bytes",
                               [](Operation& op) { op.ifm.region = 5; }},
                          Case{"the IFM of ADD touches byte 1099511627902 of region 1, which has 4096 bytes",
                               [](Operation& op) { op.ifm.base[0] = (std::uint64_t{1} << 40) - 1; }}}) {
        Operation op = simple_operation(OpKind::Add);
        c.damage(op);
        SmallProgram p = program(op);
        const AlignedMemory before = p.memory[1];
        const Outcome o = run(p);
        EXPECT_EQ(o.text, c.text);
        EXPECT_EQ(o.code, ErrorCode::OutOfBounds);
        EXPECT_TRUE(p.memory[1] == before) << "nothing is touched";
    }
}

TEST(ModelRules, an_ofm_that_just_fits_is_allowed) {
    Operation op = simple_operation(OpKind::Add);
    op.ofm.base[0] = 4096 - 128;
    SmallProgram p = program(op);
    EXPECT_EQ(run(p).text, "no error");
}

TEST(ModelRules, constants_are_not_written) {
    Operation op = simple_operation(OpKind::Add);
    op.ofm.region = 0;
    SmallProgram p = program(op);
    p.memory[0] = AlignedMemory(4096);
    EXPECT_EQ(run(p).text, "ADD writes to region 0, which holds the constants");
}

TEST(ModelRules, weights_and_records_are_held_inside_their_region) {
    SmallProgram p = identity_convolution();
    p.operations[0].weights[0].size += 16;
    EXPECT_NE(run(p).text.find("the weights of CONV touches byte"), std::string::npos);
    p = identity_convolution();
    p.operations[0].scales[0].offset = p.memory[0].size() - 64;
    EXPECT_NE(run(p).text.find("the scale records of CONV touches byte"), std::string::npos);
}

TEST(ModelRules, weight_stream_errors_name_the_operation) {
    SmallProgram p = identity_convolution();
    p.memory[0].data()[256] = 4;  // ZDIV 4
    const Outcome o = run(p);
    EXPECT_EQ(o.text, "CONV, bit 3 of its weight stream: ZDIV has a reserved value");
    EXPECT_EQ(o.code, ErrorCode::WeightStream);
    p = identity_convolution();
    p.operations[0].block_depth = 16;  // the same symbols, but the program's block is 8 channels: still fits
    EXPECT_EQ(run(p).text, "no error");
    p.operations[0].ifm.depth = 40;
    p.operations[0].ifm.base[0] = 0;
    p.operations[0].ifm.stride_x = 40;
    p.operations[0].ifm.stride_y = 160;
    EXPECT_EQ(run(p).text, "CONV, bit 2432 of its weight stream: it holds only 256 weights, 512 are needed");
    p = identity_convolution();
    p.operations[0].weights[0].size = 0;
    EXPECT_EQ(run(p).text, "CONV, bit 0 of its weight stream: its 0 bytes cannot hold 256 weights");
}

TEST(ModelRules, too_few_scale_records_are_an_error) {
    SmallProgram p = identity_convolution();
    p.operations[0].scales[0].size = 64;
    EXPECT_EQ(run(p).text, "CONV with SCALE_LENGTH 64, its 8 channels need 80");
}

TEST(ModelRules, illegal_programs_are_refused) {
    struct Case {
        const char* text;
        OpKind kind;
        void (*damage)(Operation&);
    };
    for (const Case& c :
         {Case{"CLZ does not read 8-bit elements", OpKind::Clz, [](Operation&) {}},
          Case{"LRELU does not read 32-bit elements", OpKind::Lrelu,
               [](Operation& op) { op.ifm = op.ofm = testing::dense_map(4, 4, 8, testing::kInt32); }},
          Case{"ADD has operands of 8 and 16 bits", OpKind::Add, [](Operation& op) { op.ifm2.type = testing::kInt16; }},
          Case{"POOL_MAX has a kernel of 300 x 1, at most height 256 is possible", OpKind::MaxPool,
               [](Operation& op) { op.kernel.height = 300; }},
          Case{"ADD: OFM base 0x808 is no multiple of 16", OpKind::Add,
               [](Operation& op) {
                   op.ofm.layout = npu::Layout::Nhcwb16;
                   op.ofm.stride_y = op.ofm.stride_c = 64;
                   op.ofm.base[0] = 2056;
               }},
          Case{"ADD: IFM base 0x3 is no multiple of 2", OpKind::Add,
               [](Operation& op) {
                   op.ifm.type = op.ifm2.type = testing::kInt16;
                   op.ifm.base[0] = 3;
               }},
          Case{"POOL_AVERAGE with a table of 1024 bytes at LUT slot 5, beyond the end of the 2048 bytes",
               OpKind::AvgPool,
               [](Operation& op) {
                   op.ofm.type = testing::kInt32;
                   op.activation.function = npu::Activation::Function::Lut;
                   op.activation.lut_slot = 5;
               }},
          Case{"ADD asks for 2 cores, ethos-u65-256 has 1", OpKind::Add, [](Operation& op) { op.cores = 2; }}}) {
        Operation op = simple_operation(c.kind);
        c.damage(op);
        SmallProgram p = program(op);
        EXPECT_EQ(run(p).text, c.text);
    }
}

TEST(ModelRules, a_stream_without_stop_is_an_error) {
    SmallProgram p = program(simple_operation(OpKind::Add));
    npu::Job job = p.job();
    job.stream = job.stream.first(job.stream.size() - 1);
    const auto result = Model().run(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::CommandStream);
}

TEST(ModelRules, a_program_for_another_part_is_refused) {
    SmallProgram p = program(simple_operation(OpKind::Add));
    npu::Job job = p.job();
    job.config = 0x10006009;
    const auto result = Model().run(job);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::DelegateIncompatible);
    EXPECT_TRUE(Model({.config = 0x10006009}).run(job));
}

TEST(ModelRules, work_is_limited) {
    Operation op = simple_operation(OpKind::Add, 60000, 60000, 60000);
    for (auto* fm : {&op.ifm, &op.ifm2, &op.ofm}) fm->stride_x = fm->stride_y = 0;
    op.ifm.depth = op.ifm2.depth = op.ofm.depth = 1000;
    op.ofm.base[0] = 2048;
    SmallProgram p = program(op);
    const Outcome o = run(p);
    EXPECT_EQ(o.code, ErrorCode::OutOfResources);
    EXPECT_EQ(o.text, "ADD needs 10800000000064 steps of work, 1000000000000 of 1000000000000 are left");
}

Operation dma(std::uint64_t src, std::uint64_t dst, std::uint64_t length) {
    Operation op;
    op.kind = OpKind::Dma;
    op.dma.src_region = op.dma.dst_region = 1;
    op.dma.src = src;
    op.dma.dst = dst;
    op.dma.length = length;
    return op;
}

TEST(ModelRules, dma_copies_rows_and_planes) {
    SmallProgram p;
    p.memory[1] = AlignedMemory(256);
    for (std::size_t i = 0; i < 256; ++i) p.memory[1].data()[i] = static_cast<std::uint8_t>(i);
    Operation op = dma(0, 128, 3);
    op.dma.src_stride_mode = 2;  // rows of 3 bytes, 2 bytes between them, 2 rows a plane, 3 planes
    op.dma.size0 = 2;
    op.dma.size1 = 3;
    op.dma.skip0 = 2;
    op.dma.skip1 = 10;
    p.operations = {op};
    EXPECT_EQ(run(p).text, "no error");
    // Plane at 3 * 2 + 10 = 16 bytes, rows at 5.
    const std::vector<std::uint8_t> expected{0, 1, 2, 5, 6, 7, 16, 17, 18, 21, 22, 23, 32, 33, 34, 37, 38, 39, 146};
    EXPECT_EQ(std::vector<std::uint8_t>(p.memory[1].data() + 128, p.memory[1].data() + 128 + expected.size()),
              expected);
}

TEST(ModelRules, dma_is_held_inside_region_and_shared_ram) {
    SmallProgram p;
    p.memory[1] = AlignedMemory(256);
    p.operations = {dma(250, 0, 7)};
    EXPECT_EQ(run(p).text, "the source of DMA touches byte 256 of region 1, which has 256 bytes");
    Operation op = dma(0, 0xC000 - 16, 32);
    op.dma.dst_internal = true;
    p.operations = {op};
    EXPECT_EQ(run(p).text, "DMA touches byte 49167 of the shared RAM, which has 49152 bytes");
}

TEST(ModelRules, dma_fills_the_table_that_an_activation_reads) {
    Operation fill = dma(0, 0xB800 + 256 * 2, 256);
    fill.dma.dst_internal = true;
    Operation op = simple_operation(OpKind::AvgPool, 1, 1, 8);
    op.ifm.base[0] = 256;
    op.activation.function = npu::Activation::Function::Lut;
    op.activation.lut_slot = 2;
    SmallProgram p;
    p.operations = {fill, op};
    p.memory[1] = AlignedMemory(4096);
    for (std::size_t i = 0; i < 256; ++i) p.memory[1].data()[i] = static_cast<std::uint8_t>(200 - i);
    p.memory[1].data()[256] = 5;
    EXPECT_EQ(run(p).text, "no error");
    EXPECT_EQ(p.memory[1].data()[2048], 200 - 133);
    EXPECT_EQ(p.memory[1].data()[2049], 200 - 128);
}

TEST(ModelRules, strict_runs_report_overflow) {
    Operation op = simple_operation(OpKind::Add, 1, 1, 8, testing::kInt32);
    op.ofm.type = testing::kInt32;
    op.ib_end = 40;
    op.ifm2_ib_start = 20;
    op.ab_start = 44;
    SmallProgram p = program(op);
    store_le(p.memory[1].data(), std::uint32_t{0x7FFFFFFF});
    store_le(p.memory[1].data() + 1024, std::uint32_t{1});
    EXPECT_EQ(run(p).text, "no error");
    const Outcome o = run(p, {.checks = DataChecks::Strict}, {{1, {0, 4096}}});
    EXPECT_EQ(o.text, "ADD has 1 results beyond 32 bits");
    EXPECT_EQ(o.code, ErrorCode::NpuFault);
}

TEST(ModelRules, strict_runs_report_reads_of_memory_that_nobody_wrote) {
    Operation op = simple_operation(OpKind::Add);
    op.ib_end = 40;
    op.ifm2_ib_start = 20;
    op.ab_start = 44;
    SmallProgram p = program(op);
    const ModelOptions strict{.checks = DataChecks::Strict};
    EXPECT_EQ(run(p, strict, {{1, {0, 128}}, {1, {1024, 128}}}).text, "no error");
    EXPECT_EQ(run(p, strict, {{1, {0, 128}}, {1, {1024, 100}}}).text,
              "ADD reads 28 bytes that nobody wrote, the first at 1124 of region 1");
    // What an earlier operation or DMA wrote is there; a DMA may copy bytes that are not.
    p.operations = {dma(0, 1024, 200), op};
    EXPECT_EQ(run(p, strict, {{1, {0, 128}}}).text, "no error");
    p.operations = {dma(0, 1024, 127), op};
    EXPECT_EQ(run(p, strict, {{1, {0, 128}}}).text,
              "ADD reads 1 bytes that nobody wrote, the first at 1151 of region 1");
}

TEST(ModelRules, the_device_is_ready_again_after_an_error) {
    SmallProgram bad = identity_convolution(), good = identity_convolution();
    bad.operations[0].ofm.base[0] = 4090;
    Model model;
    EXPECT_FALSE(model.run(bad.job()));
    EXPECT_TRUE(model.run(good.job()));
}

TEST(ModelRules, filters_are_decoded_once_and_again_when_their_bytes_change) {
    SmallProgram p = identity_convolution();
    Model model;
    ASSERT_TRUE(model.run(p.job()));
    ASSERT_TRUE(model.run(p.job()));
    EXPECT_EQ(model.filter_cache().decoded(), 1u);
    p.memory[0].data()[0] = 77;  // a bias
    ASSERT_TRUE(model.run(p.job()));
    EXPECT_EQ(model.filter_cache().decoded(), 2u);
    EXPECT_EQ(p.memory[1].data()[2048], 77);
}

}  // namespace
}  // namespace talpa::npu_model
