// The Ethos-U delegate on an NPU that does what each test says. Names begin with the check of pte-format, section 9.
#include "runtime/ethos_u.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/program_for_test.h"

namespace talpa::runtime {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::string refused(const DelegateBlobSpec& blob, npu::Device* device = nullptr) {
    return refusal(delegate_program(blob), default_options(device));
}

DelegateBlobSpec with_stream(const std::vector<npu::Dma>& copies) {
    DelegateBlobSpec blob = copy_blob();
    blob.command_data = write_command_data(npu::kConfigU65_256, npu::kIdU65, dma_stream(copies));
    return blob;
}

std::vector<std::uint8_t> counting(std::size_t n, std::uint8_t first = 1) {
    std::vector<std::uint8_t> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::uint8_t>(first + i);
    return v;
}

Bytes output_of(Method& m, std::uint32_t i = 0) {
    const Tensor* const t = m.output_tensor(i).value();
    return {t->data, t->size_bytes()};
}

TEST(EthosU, CopiesInputsInAndOutputsOut) {
    FakeNpu npu;
    const auto l = load(delegate_program(), default_options(&npu));
    ASSERT_TRUE(l->method) << l->error;
    const auto input = counting(16);
    ASSERT_TRUE(l->method->set_input(0, input));
    ASSERT_TRUE(l->method->execute());
    EXPECT_TRUE(std::ranges::equal(output_of(*l->method), input));
    EXPECT_EQ(npu.runs, 1u);
    EXPECT_EQ(l->method->npu_cycles(), 100u);
}

TEST(EthosU, TheJobHasItsRegions) {
    FakeNpu npu;
    npu::Job seen;
    npu.behaviour = [&, copy = npu.behaviour](const npu::Job& job) {
        seen = job;
        return copy(job);
    };
    const auto l = load(delegate_program(), default_options(&npu));
    ASSERT_TRUE(l->method->set_input(0, counting(16)));
    ASSERT_TRUE(l->method->execute());
    EXPECT_EQ(seen.regions[0].size, 16u);
    EXPECT_EQ(*seen.regions[0].data, 0x77) << "the weights, where they lie in the program";
    EXPECT_TRUE(seen.regions[0].data >= l->file.data() && seen.regions[0].data < l->file.data() + l->file.size());
    EXPECT_EQ(seen.regions[1].data, l->scratch.pool().data());
    EXPECT_EQ(seen.regions[1].size, 80u);
    EXPECT_EQ(seen.regions[2].data, l->fast_scratch.pool().data());
    EXPECT_EQ(seen.regions[2].size, 32u) << "from the scan: the file does not say";
    EXPECT_EQ(seen.regions[3].data, nullptr);
    EXPECT_EQ(seen.config, npu::kConfigU65_256);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(seen.stream.data()) % 16, 0u);
}

// ethos-u65, section 2.4 and pte-format, 7.5: in these modes the fast scratch is the scratch itself.
TEST(EthosU, InSramModesRegionTwoIsRegionOne) {
    for (const char* mode : {"Shared_Sram", "Sram_Only"}) {
        FakeNpu npu;
        npu::Job seen;
        npu.behaviour = [&, copy = npu.behaviour](const npu::Job& job) {
            seen = job;
            return copy(job);
        };
        ProgramSpec p = delegate_program();
        p.methods[0].delegates[0].compile_specs[1].second = std::string("--memory-mode=") + mode + " --more";
        const auto l = load(p, default_options(&npu));
        ASSERT_TRUE(l->method) << l->error;
        EXPECT_EQ(l->method->need().fast_scratch, 0u);
        ASSERT_TRUE(l->method->set_input(0, counting(16)));
        ASSERT_TRUE(l->method->execute());
        EXPECT_EQ(seen.regions[2].data, seen.regions[1].data);
        EXPECT_EQ(seen.regions[2].size, 80u);
    }
    ProgramSpec p = delegate_program(with_stream({dma(1, 0, 2, 80, 16), dma(2, 80, 1, 64, 16)}));
    EXPECT_EQ(refusal(p), "(accepted)") << "a fast scratch of its own may be larger than the scratch";
    p.methods[0].delegates[0].compile_specs[1].second = "--memory-mode=Shared_Sram";
    EXPECT_EQ(refusal(p),
              "delegate 0: command stream offset 32: DMA reaches 96 bytes into region 2, here the scratch, which "
              "has 80");
}

TEST(EthosU, V27_ExternalBlocksAreFoundInTheProgramOrInDataFiles) {
    const std::string commands_key(64, 'c'), weights_key(64, 'w');
    DelegateBlobSpec blob = copy_blob();
    blob.command_data_key = commands_key;
    blob.weights_key = weights_key;
    ProgramSpec p = delegate_program(blob);
    EXPECT_EQ(refusal(p), "a block of the delegate lies outside the program, under the key '" + weights_key +
                              "': no data file has it");
    p.named_data = {{commands_key, copy_blob().command_data}};
    const auto data_bytes = write_data_file({{weights_key, copy_blob().weights, std::nullopt}});
    const std::array files{pte::DataFile::open(data_bytes).value()};
    LoadOptions options = default_options();
    options.data_files = files;
    EXPECT_EQ(refusal(p, options), "(accepted)");
    // V38: what is kept beyond load is the caller's own file, not a copy that may go.
    const auto l = load(p, options);
    const Bytes weights = l->method->delegates()[0].weights();
    EXPECT_TRUE(weights.data() >= data_bytes.data() && weights.data() < data_bytes.data() + data_bytes.size());
    p.named_data.push_back({commands_key, {}});
    EXPECT_EQ(refusal(p, options), "two pieces of named data have the key '" + commands_key + "'");
}

TEST(EthosU, V38_ThePayloadIsUsedWhereItLies) {
    const auto l = load(delegate_program());
    const auto* const stream = reinterpret_cast<const std::uint8_t*>(l->method->delegates()[0].stream().data());
    EXPECT_TRUE(stream >= l->file.data() && stream < l->file.data() + l->file.size());
}

TEST(EthosU, V30_ArgumentsMustMeetTheRecords) {
    const auto method = [](auto&& change) {
        ProgramSpec p = delegate_program();
        change(p.methods[0]);
        return refusal(p);
    };
    const auto tensor = [](MethodSpec& m, std::size_t v) -> TensorSpec& { return std::get<TensorSpec>(m.values[v]); };
    EXPECT_EQ(method([](MethodSpec& m) { m.chains = {{DelegateCallSpec{0, {0}}}}; }),
              "a call of delegate 0 has 1 arguments, its payload has 1 inputs and 1 outputs");
    EXPECT_EQ(method([](MethodSpec& m) { m.chains = {{DelegateCallSpec{0, {0, 1, 1}}}}; }),
              "a call of delegate 0 has 3 arguments, its payload has 1 inputs and 1 outputs");
    EXPECT_EQ(method([](MethodSpec& m) {
                  m.values.emplace_back(std::int64_t{5});
                  m.chains = {{DelegateCallSpec{0, {0, 2}}}};
              }),
              "argument 1 of delegate 0 must be a Tensor, is Int");
    EXPECT_EQ(method([&](MethodSpec& m) { tensor(m, 0).sizes = {15}; }),
              "argument 0 of delegate 0: its tensor has 15 bytes, its record 16 in rows of 16");
    EXPECT_EQ(method([&](MethodSpec& m) {
                  tensor(m, 1).sizes = {2, 4, 3};
                  m.arena_sizes = {0, 48};
              }),
              "argument 1 of delegate 0: its tensor has 24 bytes, its record 16 in rows of 16");
    EXPECT_EQ(method([&](MethodSpec& m) {
                  tensor(m, 0).scalar_type = 6;
                  tensor(m, 0).sizes = {4};
              }),
              "argument 0 of delegate 0: its tensor is float32, its record has elements of 1 bytes");
    EXPECT_EQ(method([&](MethodSpec& m) { tensor(m, 0).dynamism = pte::ShapeDynamism::DynamicBound; }),
              "argument 0 of delegate 0 has a dynamic shape");
    EXPECT_EQ(method([&](MethodSpec& m) { tensor(m, 0).scalar_type = 0; }), "(accepted)") << "uint8, since 1.3";
    EXPECT_EQ(method([&](MethodSpec& m) {
                  tensor(m, 0).sizes = {1, 2, 2, 4};
                  tensor(m, 0).dim_order = {{0, 2, 3, 1}};
              }),
              "(accepted)")
        << "the record describes bytes, not dimensions";
}

/// A program whose output tensor differs from its record; the NPU fills the record's 32 bytes with 1, 2, 3 …
std::vector<std::uint8_t> output_through(std::array<std::int32_t, 6> record, TensorSpec tensor) {
    DelegateBlobSpec blob = with_stream({dma(1, 0, 1, 64, 16), dma(1, 0, 1, 80, 16)});
    blob.outputs[0].shape = record;
    blob.scratch_size = 96;
    ProgramSpec p = delegate_program(blob);
    tensor.placement = PlacementSpec{1, 16};
    p.methods[0].values[1] = tensor;
    p.methods[0].arena_sizes = {0, 96};
    FakeNpu npu;
    npu.behaviour = [](const npu::Job& job) -> Result<npu::JobStats> {
        std::ranges::copy(counting(32), job.regions[1].data + 64);
        return npu::JobStats{};
    };
    const auto l = load(p, default_options(&npu));
    EXPECT_TRUE(l->method) << l->error;
    if (!l->method) return {};
    EXPECT_TRUE(l->method->set_input(0, counting(16)));
    EXPECT_TRUE(l->method->execute());
    const Bytes out = output_of(*l->method);
    return {out.begin(), out.end()};
}

TEST(EthosU, RowsThatTheNpuPaddedAreCut) {
    TensorSpec t;
    t.scalar_type = 1;
    t.sizes = {1, 4, 5};
    EXPECT_THAT(output_through({1, 1, 1, 1, 4, 8}, t),
                ::testing::ElementsAre(1, 2, 3, 4, 5, 9, 10, 11, 12, 13, 17, 18, 19, 20, 21, 25, 26, 27, 28, 29));
}

TEST(EthosU, NibblesAreUnpackedLowFirstWithTheirSign) {
    TensorSpec t;
    t.scalar_type = 1;
    t.sizes = {64};
    const auto out = output_through({1, 1, 1, 1, 1, 32}, t);
    ASSERT_EQ(out.size(), 64u);
    // Bytes 1, 2 … 0x0F, 0x10 …: nibbles 1 0, 2 0, …; 8 to 15 are negative.
    EXPECT_EQ(out[0], 1);
    EXPECT_EQ(out[1], 0);
    EXPECT_EQ(static_cast<std::int8_t>(out[14]), -8);
    EXPECT_EQ(static_cast<std::int8_t>(out[28]), -1);
    EXPECT_EQ(static_cast<std::int8_t>(out[31]), 1) << "high nibble of 0x10";
}

TEST(EthosU, V31_CommandData) {
    const auto data = [](auto&& change) {
        DelegateBlobSpec blob = copy_blob();
        change(blob.command_data);
        return refused(blob);
    };
    using Data = std::vector<std::uint8_t>&;
    EXPECT_THAT(data([](Data d) { d.push_back(0); }), HasSubstr("which is no multiple of 4"));
    EXPECT_THAT(data([](Data d) { d.clear(); }), HasSubstr("begins with neither COP1 nor COP2"));
    EXPECT_THAT(data([](Data d) { d[0] = 'X'; }), HasSubstr("begins with neither COP1 nor COP2"));
    EXPECT_THAT(data([](Data d) { d[3] = '2'; }), HasSubstr("COP2"));
    EXPECT_THAT(data([](Data d) { d.resize(d.size() - 4); }), HasSubstr("does not fit the payload"));
    EXPECT_THAT(data([](Data d) { d.erase(d.begin() + 16, d.begin() + 20); }),
                HasSubstr("does not lie at a multiple of 16"));
    EXPECT_THAT(data([](Data d) { d[16] = 3; }), HasSubstr("obsolete"));
    EXPECT_THAT(data([](Data d) { d[16] = 99; }), HasSubstr("is no driver action"));
    EXPECT_THAT(data([](Data d) {
                    d.erase(d.begin() + 4, d.begin() + 16);
                    d.insert(d.begin() + 4, 12, 5);
                }),
                HasSubstr("the command stream comes before the configuration"));
}

TEST(EthosU, V31_StreamWithoutStop) {
    DelegateBlobSpec blob = copy_blob();
    auto stream = dma_stream({dma(1, 0, 1, 64, 16)});
    stream.pop_back();
    blob.command_data = write_command_data(npu::kConfigU65_256, npu::kIdU65, stream);
    EXPECT_THAT(refused(blob), HasSubstr("STOP"));
}

TEST(EthosU, V32_AnotherNpuIsRefusedAtLoadByName) {
    FakeNpu npu;
    npu.config_word = 0x10006009;  // ethos-u65-512
    EXPECT_THAT(refused(copy_blob(), &npu), ::testing::AllOf(HasSubstr("ethos-u65-256"), HasSubstr("ethos-u65-512")));
    npu.config_word = npu::kConfigU65_256;
    npu.id_word = 0x00066001;
    EXPECT_THAT(refused(copy_blob(), &npu), HasSubstr("architecture"));
    DelegateBlobSpec u85 = copy_blob();
    u85.command_data = write_command_data(0x20000118, 0x20007000, dma_stream({}));
    EXPECT_THAT(refused(u85), HasSubstr("only Ethos-U55 and U65 streams are known")) << "without an NPU as well";
}

TEST(EthosU, V33_AccessesOutsideTheRegions) {
    EXPECT_EQ(refused(with_stream({dma(1, 0, 1, 65, 16)})),
              "delegate 0: command stream offset 32: DMA reaches 81 bytes into region 1, the scratch, which has 80");
    EXPECT_EQ(refused(with_stream({dma(0, 1, 1, 64, 16)})),
              "delegate 0: command stream offset 32: DMA reaches 17 bytes into region 0, weight_data, which has 16");
    EXPECT_EQ(refused(with_stream({dma(1, 0, 0, 0, 16)})),
              "delegate 0: command stream offset 32: DMA writes to region 0, the constants");
    EXPECT_EQ(refused(with_stream({dma(1, 0, 1, 64, 16), dma(1, 0, 5, 0, 16)})),
              "delegate 0: command stream offset 48: DMA uses region 5, which has no memory");
    EXPECT_EQ(refused(with_stream({dma(1, 0, 2, 0, 16)})),
              "delegate 0: the command stream never writes to the scratch, where its outputs are");
    EXPECT_THAT(refused(with_stream({dma(1, 0, 1, 64, 16), dma(1, 0, 2, 1ULL << 33, 16)})),
                HasSubstr("bytes into region 2"));
}

TEST(EthosU, V35_AnOutputThatNobodyWroteIsAnError) {
    FakeNpu npu;
    npu.behaviour = [](const npu::Job&) -> Result<npu::JobStats> {
        return npu::JobStats{};
    };  // success, and nothing done
    const auto l = load(delegate_program(), default_options(&npu));
    ASSERT_TRUE(l->method->set_input(0, counting(16)));
    const auto ran = l->method->execute();
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code, ErrorCode::NpuFault);
    EXPECT_EQ(text(ran.error()),
              "delegate 0: the NPU reported success, but did not write output 0 (at 64 of the scratch)");
    EXPECT_FALSE(l->method->output_tensor(0));
}

TEST(EthosU, V35_AlsoWhenTheOutputLiesOnTheInput) {
    DelegateBlobSpec blob = with_stream({dma(1, 0, 2, 0, 16), dma(2, 0, 1, 0, 16)});
    blob.outputs[0].offset = 0;  // as in MobileNetV2
    FakeNpu npu;
    npu.behaviour = [](const npu::Job&) -> Result<npu::JobStats> { return npu::JobStats{}; };
    const auto l = load(delegate_program(blob), default_options(&npu));
    ASSERT_TRUE(l->method) << l->error;
    ASSERT_TRUE(l->method->set_input(0, counting(16)));
    EXPECT_EQ(l->method->execute().error().code, ErrorCode::NpuFault);
}

// A result may by chance be what was there before: then it is no error, and it stands.
TEST(EthosU, V35_AResultThatEqualsWhatWasThereIsNoError) {
    DelegateBlobSpec blob = with_stream({dma(1, 0, 2, 0, 16), dma(2, 0, 1, 0, 16)});
    blob.outputs[0].offset = 0;
    FakeNpu npu;
    npu.behaviour = [](const npu::Job& job) -> Result<npu::JobStats> {
        std::fill_n(job.regions[1].data, 16, std::uint8_t{9});
        return npu::JobStats{};
    };
    const auto l = load(delegate_program(blob), default_options(&npu));
    const std::vector<std::uint8_t> nines(16, 9);
    ASSERT_TRUE(l->method->set_input(0, nines));
    ASSERT_TRUE(l->method->execute());
    EXPECT_TRUE(std::ranges::equal(output_of(*l->method), nines));
    EXPECT_EQ(npu.runs, 3u) << "again with other bytes before it, and once more for the result";
}

// The average of equal numbers, and their maximum, are that number: written where the input was, it looks as if nobody
// had written it.
TEST(EthosU, V35_WhatEqualBytesGiveOnTheirPlaceIsNoError) {
    DelegateBlobSpec blob = with_stream({dma(1, 0, 2, 0, 16), dma(2, 0, 1, 0, 4)});
    blob.outputs[0].offset = 0;
    blob.outputs[0].shape[5] = 4;
    ProgramSpec p = delegate_program(blob);
    std::get<TensorSpec>(p.methods[0].values[1]).sizes = {4};
    for (const bool average : {true, false}) {
        FakeNpu npu;
        npu.behaviour = [&](const npu::Job& job) -> Result<npu::JobStats> {
            std::uint8_t* const x = job.regions[1].data;
            for (int i = 0; i < 4; ++i) {
                const int a = static_cast<std::int8_t>(x[4 * i]), b = static_cast<std::int8_t>(x[4 * i + 1]);
                x[i] = static_cast<std::uint8_t>(average ? (a + b) / 2 : std::max(a, b));
            }
            return npu::JobStats{};
        };
        const auto l = load(p, default_options(&npu));
        ASSERT_TRUE(l->method) << l->error;
        const std::vector<std::uint8_t> most(16, 127);
        ASSERT_TRUE(l->method->set_input(0, most));
        const auto ran = l->method->execute();
        ASSERT_TRUE(ran) << text(ran.error());
        EXPECT_TRUE(std::ranges::equal(output_of(*l->method), std::vector<std::uint8_t>(4, 127)));

        npu.behaviour = [](const npu::Job&) -> Result<npu::JobStats> { return npu::JobStats{}; };
        ASSERT_TRUE(l->method->set_input(0, most));
        EXPECT_EQ(l->method->execute().error().code, ErrorCode::NpuFault) << "equal bytes that nobody touched";
    }
}

TEST(EthosU, ErrorsOfTheNpuComeThrough) {
    FakeNpu npu;
    npu.behaviour = [](const npu::Job&) -> Result<npu::JobStats> { return fail(ErrorCode::Timeout, "no interrupt"); };
    const auto l = load(delegate_program(), default_options(&npu));
    ASSERT_TRUE(l->method->set_input(0, counting(16)));
    EXPECT_EQ(l->method->execute().error().code, ErrorCode::Timeout);
    EXPECT_EQ(l->method->last_step().instruction, 0u);
    EXPECT_EQ(l->method->execute().error().code, ErrorCode::InvalidState) << "inputs are to be set again";
}

TEST(EthosU, WithoutAnNpuAMethodCanBeMeasuredOnly) {
    const auto l = load(delegate_program());
    ASSERT_TRUE(l->method) << l->error;
    EXPECT_EQ(l->method->need().scratch, 80u);
    EXPECT_EQ(l->method->need().fast_scratch, 32u);
    ASSERT_TRUE(l->method->set_input(0, counting(16)));
    EXPECT_EQ(text(l->method->execute().error()), "method 'forward' needs an NPU, none is given");
}

TEST(EthosU, V36_OtherBackendsAreRefusedByName) {
    const auto id = [](const char* name) {
        ProgramSpec p = delegate_program();
        p.methods[0].delegates[0].id = name;
        return refusal(p);
    };
    EXPECT_EQ(id("XnnpackBackend"), "delegate 0 is for the backend 'XnnpackBackend', only EthosUBackend is known");
    EXPECT_THAT(id("ArmBackend"), HasSubstr("as ExecuTorch 0.5 and before wrote it"));
}

TEST(EthosU, MisalignedPayloadsAreRefused) {
    ProgramSpec p = delegate_program();
    p.methods[0].delegates[0].location = pte::DataLocation::Segment;
    p.segment_alignment = 8;
    p.constants = {{1, 2, 3, 4, 5, 6, 7, 8}};
    const std::string message = refusal(p);
    EXPECT_TRUE(message == "(accepted)" || message.find("must lie at a multiple of 16") != std::string::npos)
        << message;
    unsigned misaligned = 0;
    for (std::size_t n = 1; n < 5; ++n) {  // one of two lengths puts it 8 beside
        p.constants = {std::vector<std::uint8_t>(n * 8)};
        misaligned += refusal(p).find("the delegate payload must lie at a multiple of 16") != std::string::npos;
    }
    EXPECT_EQ(misaligned, 2u);
}

}  // namespace
}  // namespace talpa::runtime
