// Running methods: inputs, control flow, mutable buffers, dynamic shapes, memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/program_for_test.h"

namespace talpa::runtime {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<float> kInput{0.2F, -1.0F, 0.75F, 1000.0F};

std::vector<float> run_round_trip(Method& method) {
    EXPECT_TRUE(method.set_input(0, bytes_of(kInput)));
    const auto ran = method.execute();
    EXPECT_TRUE(ran) << (ran ? "" : text(ran.error()));
    const Tensor* const out = method.output_tensor(0).value();
    return floats_of({out->data, out->size_bytes()});
}

TEST(MethodRun, QuantizesAndDequantizes) {
    const auto l = load(round_trip_program());
    ASSERT_TRUE(l->method) << l->error;
    EXPECT_THAT(run_round_trip(*l->method), ElementsAre(0.0F, -1.0F, 1.0F, 63.5F))
        << "half to even: 0.75/0.5 = 1.5 -> 2";
}

TEST(MethodRun, V22_InputsMustBeSetAfreshBeforeEveryRun) {
    const auto l = load(round_trip_program());
    EXPECT_EQ(text(l->method->execute().error()),
              "input 0 of method 'forward' was not set since the last run, which may have overwritten it");
    run_round_trip(*l->method);
    EXPECT_EQ(l->method->execute().error().code, ErrorCode::InvalidState);
    EXPECT_FALSE(l->method->output_tensor(0).error().code == ErrorCode::Internal);
    EXPECT_THAT(run_round_trip(*l->method), ElementsAre(0.0F, -1.0F, 1.0F, 63.5F));
}

TEST(MethodRun, OutputsExistOnlyAfterARun) {
    const auto l = load(round_trip_program());
    EXPECT_EQ(text(l->method->output_tensor(0).error()),
              "method 'forward' has no results: it has not run since an input was set");
    run_round_trip(*l->method);
    EXPECT_EQ(text(l->method->output_tensor(1).error()), "output 1 of method 'forward', which has 1");
    ASSERT_TRUE(l->method->set_input(0, bytes_of(kInput)));
    EXPECT_EQ(l->method->output_tensor(0).error().code, ErrorCode::InvalidState)
        << "the input may lie on top of the output";
}

TEST(MethodRun, V23_InputsMustBeTheProgramsOwn) {
    const auto l = load(round_trip_program());
    Method& m = *l->method;
    const std::array sizes{4}, five{5}, negative{-4};
    const std::array two{2, 2};
    const std::array<std::uint8_t, 1> order{0}, other_order{1};
    const Bytes bytes = bytes_of(kInput);
    EXPECT_EQ(text(m.set_input(1, bytes).error()), "input 1 of method 'forward', which has 1");
    EXPECT_EQ(text(m.set_input(0, {ScalarType::Int32, sizes, {}, bytes}).error()), "input 0 must be float32, is int32");
    EXPECT_EQ(text(m.set_input(0, {ScalarType::Float32, two, {}, bytes}).error()),
              "input 0 must have 1 dimensions, has 2");
    EXPECT_EQ(text(m.set_input(0, {ScalarType::Float32, five, {}, bytes}).error()),
              "dimension 0 of input 0 must be 4, is 5");
    EXPECT_EQ(text(m.set_input(0, {ScalarType::Float32, negative, {}, bytes}).error()),
              "dimension 0 of input 0 must be 4, is -4");
    EXPECT_EQ(text(m.set_input(0, bytes.first(15)).error()), "input 0 must have 16 bytes, has 15");
    EXPECT_THAT(text(m.set_input(0, {ScalarType::Float32, sizes, other_order, bytes}).error()),
                HasSubstr("the order of input 0 must be 0, is 1"));
    EXPECT_EQ(m.execute().error().code, ErrorCode::InvalidState) << "none of these counts as set";
    EXPECT_TRUE(m.set_input(0, {ScalarType::Float32, sizes, order, bytes}));
    EXPECT_TRUE(m.execute());
}

TEST(MethodRun, ChannelsLastIsNotMistakenForContiguous) {
    ProgramSpec p = round_trip_program();
    for (const std::size_t v : {0, 1, 8}) {
        auto& t = std::get<TensorSpec>(p.methods[0].values[v]);
        t.sizes = {1, 2, 1, 2};
        t.dim_order = {{0, 2, 3, 1}};
    }
    const auto l = load(p);
    const std::array sizes{1, 2, 1, 2};
    const std::array<std::uint8_t, 4> contiguous{0, 1, 2, 3}, last{0, 2, 3, 1};
    EXPECT_THAT(text(l->method->set_input(0, {ScalarType::Float32, sizes, contiguous, bytes_of(kInput)}).error()),
                HasSubstr("channels last or not?"));
    EXPECT_TRUE(l->method->set_input(0, {ScalarType::Float32, sizes, last, bytes_of(kInput)}));
}

TEST(MethodRun, DynamicInputsMayBeSmallerThanTheirBound) {
    ProgramSpec p = round_trip_program();
    for (const std::size_t v : {0, 1, 8})
        std::get<TensorSpec>(p.methods[0].values[v]).dynamism = pte::ShapeDynamism::DynamicBound;
    const auto l = load(p);
    const std::vector<float> two{1.0F, 2.0F};
    const std::array small{2}, large{5};
    ASSERT_TRUE(l->method->set_input(0, {ScalarType::Float32, small, {}, bytes_of(two)}));
    ASSERT_TRUE(l->method->execute());
    EXPECT_EQ(l->method->output_tensor(0).value()->sizes[0], 2);
    EXPECT_THAT(run_round_trip(*l->method), ElementsAre(0.0F, -1.0F, 1.0F, 63.5F)) << "and back to the bound";
    const std::vector<float> five(5);
    EXPECT_EQ(text(l->method->set_input(0, {ScalarType::Float32, large, {}, bytes_of(five)}).error()),
              "input 0 has 20 bytes, its upper bound is 16");
}

// if (condition) r = a else r = b, as section 5.2 says it is compiled; values 0 condition (bool tensor), 1 a, 2 b, 3 r,
// 4 false.
ProgramSpec branch_program() {
    MethodSpec m;
    m.values = {planned(11, {2}, 0), planned(6, {1}, 16), planned(6, {1}, 32), planned(6, {1}, 48), false};
    m.inputs = {0, 1, 2};
    m.outputs = {3};
    m.chains = {{JumpFalseCallSpec{0, 3}, MoveCallSpec{1, 3}, JumpFalseCallSpec{4, 4}, MoveCallSpec{2, 3}}};
    m.arena_sizes = {0, 64};
    ProgramSpec p;
    p.methods = {m};
    return p;
}

float run_branch(Method& m, std::vector<std::uint8_t> condition) {
    const std::vector<float> a{1.0F}, b{2.0F};
    EXPECT_TRUE(m.set_input(0, condition));
    EXPECT_TRUE(m.set_input(1, bytes_of(a)));
    EXPECT_TRUE(m.set_input(2, bytes_of(b)));
    EXPECT_TRUE(m.execute());
    return *m.output_tensor(0).value()->as<float>();
}

TEST(MethodRun, JumpsAndMovesFollowABranch) {
    const auto l = load(branch_program());
    ASSERT_TRUE(l->method) << l->error;
    EXPECT_EQ(run_branch(*l->method, {1, 1}), 1.0F);
    EXPECT_EQ(run_branch(*l->method, {1, 0}), 2.0F) << "one false element makes it false";
    EXPECT_EQ(run_branch(*l->method, {1, 1}), 1.0F) << "nothing of the last run remains";
}

TEST(MethodRun, AnEmptyConditionIsTrue) {
    ProgramSpec p = branch_program();
    std::get<TensorSpec>(p.methods[0].values[0]).sizes = {0};
    const auto l = load(p);
    EXPECT_EQ(run_branch(*l->method, {}), 1.0F);
}

TEST(MethodRun, V21_EndlessLoopsEndAtTheBudget) {
    MethodSpec m;
    m.values = {false};
    m.chains = {{JumpFalseCallSpec{0, 0}}};
    ProgramSpec p;
    p.methods = {m};
    LoadOptions options = default_options();
    options.instruction_budget = 1000;
    const auto l = load(p, options);
    ASSERT_TRUE(l->method) << l->error;
    EXPECT_EQ(text(l->method->execute().error()),
              "method 'forward' ran 1000 instructions without an end; the last was 0");
}

TEST(MethodRun, ChainsRunOneAfterAnother) {
    ProgramSpec p = round_trip_program();
    auto& chains = p.methods[0].chains;
    chains = {{chains[0][0]}, {}, {chains[0][1]}};
    const auto l = load(p);
    EXPECT_THAT(run_round_trip(*l->method), ElementsAre(0.0F, -1.0F, 1.0F, 63.5F));
}

TEST(MethodRun, SeveralMethodsAndConstants) {
    ProgramSpec p = round_trip_program();
    p.methods.push_back(constant_method_spec("answer", std::int64_t{42}));
    const auto l = load(p, default_options(), "answer");
    ASSERT_TRUE(l->method) << l->error;
    ASSERT_TRUE(l->method->execute());
    EXPECT_EQ(l->method->output(0).i, 42);
    EXPECT_EQ(l->method->output_tensor(0).error().code, ErrorCode::InvalidType);
}

TEST(MethodRun, NumbersAsInputsAreFixedAtExport) {
    MethodSpec m;
    m.values = {std::int64_t{3}, 0.5, true};
    m.inputs = {0, 1, 2};
    ProgramSpec p;
    p.methods = {m};
    const auto l = load(p);
    ASSERT_TRUE(l->method) << l->error;
    EXPECT_TRUE(l->method->check_scalar_input(0, 3));
    EXPECT_EQ(text(l->method->check_scalar_input(0, 4).error()), "input 0 was fixed to 3 at export");
    EXPECT_TRUE(l->method->check_scalar_input(1, 0.50005));
    EXPECT_FALSE(l->method->check_scalar_input(1, 0.501));
    EXPECT_TRUE(l->method->check_scalar_input(2, 1));
    EXPECT_EQ(l->method->set_input(0, Bytes()).error().code, ErrorCode::InvalidType);
    EXPECT_TRUE(l->method->execute());
}

TEST(MethodRun, ArenasStartAsZerosAndInitialValuesAreCopied) {
    ProgramSpec p = round_trip_program();
    p.methods[0].outputs = {1, 8};
    p.methods[0].inputs = {};
    p.methods[0].chains = {{}};
    p.initial_values = {{5, 6, 7, 8}};
    std::get<TensorSpec>(p.methods[0].values[1]).data_index = 1;
    const auto l = load(p);
    ASSERT_TRUE(l->method) << l->error;
    std::ranges::fill(l->arena_pools[0], 0xEE);
    ASSERT_TRUE(l->method->bind(l->pools()));
    ASSERT_TRUE(l->method->execute());
    const Tensor* const state = l->method->output_tensor(0).value();
    EXPECT_THAT(std::vector<std::uint8_t>(state->data, state->data + 4), ElementsAre(5, 6, 7, 8));
    const Tensor* const zeros = l->method->output_tensor(1).value();
    EXPECT_THAT(floats_of({zeros->data, 16}), ElementsAre(0, 0, 0, 0));
}

TEST(MethodRun, V22_UnplannedPortsUseTheCallersMemory) {
    ProgramSpec p = round_trip_program();
    std::get<TensorSpec>(p.methods[0].values[0]).placement.reset();
    std::get<TensorSpec>(p.methods[0].values[8]).placement.reset();
    const auto l = load(p);
    ASSERT_TRUE(l->method) << l->error;
    Method& m = *l->method;
    EXPECT_TRUE(m.input_is_unplanned(0));
    EXPECT_TRUE(m.output_is_unplanned(0));
    ASSERT_TRUE(m.set_input(0, bytes_of(kInput)));
    EXPECT_EQ(text(m.execute().error()),
              "quantized_decomposed::dequantize_per_tensor.out: argument 7 is a tensor without memory");
    const host::AlignedMemory memory(16);
    EXPECT_EQ(text(m.set_output_memory(0, memory.pool().first(12)).error()), "output 0 needs 16 bytes, it is given 12");
    EXPECT_THAT(text(m.set_output_memory(0, memory.pool().subspan(1)).error()), HasSubstr("it is given 15"));
    ASSERT_TRUE(m.set_output_memory(0, memory.pool()));
    const std::vector<std::uint8_t> before(bytes_of(kInput).begin(), bytes_of(kInput).end());
    EXPECT_THAT(run_round_trip(m), ElementsAre(0.0F, -1.0F, 1.0F, 63.5F));
    EXPECT_EQ(m.output_tensor(0).value()->data, memory.pool().data());
    EXPECT_TRUE(std::ranges::equal(before, bytes_of(kInput))) << "the caller's input is not written";
    std::vector<std::uint8_t> odd(17);
    EXPECT_THAT(text(m.set_input(0, Bytes(odd).subspan(1)).error()), HasSubstr("must be aligned to its elements"));
}

TEST(MethodRun, PlannedOutputsTakeNoMemory) {
    const auto l = load(round_trip_program());
    const host::AlignedMemory memory(16);
    EXPECT_EQ(text(l->method->set_output_memory(0, memory.pool()).error()), "output 0 has its place in an arena");
}

TEST(MethodRun, FreeCallKeepsPlannedTensors) {
    ProgramSpec p = round_trip_program();
    p.methods[0].chains[0].push_back(FreeCallSpec{1});
    p.methods[0].chains[0].push_back(FreeCallSpec{0});
    const auto l = load(p);
    ASSERT_TRUE(l->method) << l->error;
    for (int i = 0; i < 3; ++i) EXPECT_THAT(run_round_trip(*l->method), ElementsAre(0.0F, -1.0F, 1.0F, 63.5F));
}

TEST(Memory, V34_PoolsMustNotOverlapNorLieInTheProgram) {
    FakeNpu npu;
    const auto l = load(delegate_program(), default_options(&npu));
    ASSERT_TRUE(l->method) << l->error;
    Pools pools = l->pools();
    pools.fast_scratch = pools.scratch;
    EXPECT_THAT(text(l->method->bind(pools).error()), HasSubstr("the memory of 'fast scratch'"));
    pools = l->pools();
    pools.scratch = {l->file.data() + 16, l->file.size() - 16};
    EXPECT_THAT(text(l->method->bind(pools).error()), HasSubstr("overlaps that of 'program'"));
    EXPECT_EQ(text(l->method->set_input(0, Bytes()).error()), "method 'forward' has no memory yet")
        << "a failed bind leaves nothing bound";
    pools = l->pools();
    pools.scratch = pools.scratch.subspan(8);
    EXPECT_THAT(text(l->method->bind(pools).error()), HasSubstr("pool 'scratch' needs 80 bytes, it has 72"));
}

TEST(Memory, EveryPoolIsNamedWhenItIsSixteenBytesShort) {
    FakeNpu npu;
    const auto l = load(delegate_program(), default_options(&npu));
    ASSERT_TRUE(l->method) << l->error;
    const auto shorten = [](Pool pool) { return pool.first(pool.size() - 16); };
    Pools pools = l->pools();
    const std::array<Pool, 1> planned{shorten(l->arena_pools[0])};
    pools.planned = planned;
    EXPECT_EQ(text(l->method->bind(pools).error()), "pool 'planned 1' needs 32 bytes, it has 16");
    pools = l->pools();
    pools.scratch = shorten(pools.scratch);
    EXPECT_EQ(text(l->method->bind(pools).error()), "pool 'scratch' needs 80 bytes, it has 64");
    pools = l->pools();
    pools.fast_scratch = shorten(pools.fast_scratch);
    EXPECT_EQ(text(l->method->bind(pools).error()), "pool 'fast scratch' needs 32 bytes, it has 16");
    pools = l->pools();
    pools.planned = {};
    EXPECT_EQ(text(l->method->bind(pools).error()), "pool 'planned 1' needs 32 bytes, it has 0");
    EXPECT_TRUE(l->method->bind(l->pools()));
}

Result<void> use_room(Arguments& args) {
    TRY_ASSIGN(const auto room, args.temporary(40));
    for (std::uint8_t& b : room) b = 1;
    return {};
}

TEST(Memory, TemporaryIsTheLargestCallNotTheSum) {
    const Operator table[] = {
        {"t::room.out", 2, "t", use_room, [](const Arguments&) -> Result<std::size_t> { return 40; }}};
    MethodSpec m;
    m.values = {planned(6, {4}, 0)};
    m.inputs = {0};
    m.operators = {{"t::room", "out"}};
    m.chains = {{KernelCallSpec{0, {0, 0}}, KernelCallSpec{0, {0, 0}}}};
    m.arena_sizes = {0, 16};
    ProgramSpec p;
    p.methods = {m};
    LoadOptions options = default_options();
    options.operators = table;
    const auto l = load(p, options);
    ASSERT_TRUE(l->method) << l->error;
    EXPECT_EQ(l->method->need().temporary, 48u);
    ASSERT_TRUE(l->method->set_input(0, bytes_of(kInput)));
    EXPECT_TRUE(l->method->execute());
    Pools pools = l->pools();
    pools.temporary = pools.temporary.first(32);
    EXPECT_EQ(text(l->method->bind(pools).error()), "pool 'temporary' needs 48 bytes, it has 32");
}

struct Recorder final : Observer {
    std::vector<std::string> log;
    void before(const Step& step) override { log.push_back("before " + std::to_string(step.instruction)); }
    void after(const Step& step) override { log.push_back("after " + std::to_string(step.instruction)); }
};

TEST(MethodRun, ObserversSeeEveryStep) {
    Recorder recorder;
    LoadOptions options = default_options();
    options.observer = &recorder;
    const auto l = load(round_trip_program(), options);
    run_round_trip(*l->method);
    EXPECT_THAT(recorder.log, ElementsAre("before 0", "after 0", "before 1", "after 1"));
}

TEST(MethodRun, TheStepThatFailedIsKnown) {
    ProgramSpec p = round_trip_program();
    p.methods[0].values[2] = -0.5;  // a scale that the second operator refuses as well, but the first runs first
    const auto l = load(p);
    ASSERT_TRUE(l->method->set_input(0, bytes_of(kInput)));
    EXPECT_EQ(text(l->method->execute().error()),
              "quantized_decomposed::quantize_per_tensor.out: the scale is no positive number");
    EXPECT_EQ(l->method->last_step().instruction, 0u);
    EXPECT_EQ(l->method->output_tensor(0).error().code, ErrorCode::InvalidState);
}

}  // namespace
}  // namespace talpa::runtime
