#include "runtime/host/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/host/testing.h"
#include "runtime/program_for_test.h"

namespace talpa::runtime::host {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

SessionOptions options(OperatorTable table = operators::kQuantizeOperators, npu::Device* device = nullptr) {
    SessionOptions o;
    o.operators = table;
    o.device = device;
    return o;
}

TEST(Session, RunsAProgramFromMemory) {
    const auto file = write_program(round_trip_program());
    auto session = Session::open(file, "round trip", options()).value();
    EXPECT_EQ(session.input(0).describe(), "float32 [4]");
    EXPECT_EQ(session.input(0).size_bytes, 16u);
    const std::vector<float> input{0.5F, 1.0F, -0.5F, 2.0F};
    ASSERT_TRUE(session.set_input(0, bytes_of(input)));
    ASSERT_TRUE(session.run());
    EXPECT_EQ(floats_of(session.output_bytes(0).value()), input);
    EXPECT_GT(session.times().run.count(), 0);
}

TEST(Session, AllMissingOperatorsAreListedWithTheirInstructions) {
    ProgramSpec p = round_trip_program();
    p.methods[0].operators = {{"aten::nothing", "out"}, {"aten::more", ""}};
    p.methods[0].chains[0].push_back(p.methods[0].chains[0][0]);
    const auto file = write_program(p);
    const auto session = Session::open(file, "p.pte", options());
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code, ErrorCode::OperatorMissing);
    EXPECT_EQ(session.error().message,
              "operators are not built in: aten::more (instruction 1), aten::nothing.out (instructions 0, 2)");
    EXPECT_EQ(session.error().context, "p.pte: method 'forward'");
    EXPECT_THAT(session.error().hint, HasSubstr("cortex_m::quantize_per_tensor.out"));
}

TEST(Session, AnUnknownMethodListsTheMethods) {
    ProgramSpec p = round_trip_program();
    p.methods.push_back(constant_method_spec("answer", std::int64_t{42}));
    const auto file = write_program(p);
    SessionOptions o = options();
    o.method = "backward";
    const auto session = Session::open(file, "p.pte", o);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code, ErrorCode::NotFound);
    EXPECT_EQ(session.error().hint, "The program has: forward, answer");
}

TEST(Session, AMissingDataFileIsHintedAt) {
    const auto session = Session::open(talpa::testing::golden_folder() / "pte_variants" / "two_ext.pte", options());
    ASSERT_FALSE(session);
    EXPECT_THAT(session.error().hint, HasSubstr("--data FILE.ptd"));
}

TEST(Session, AFailedRunNamesTheInstruction) {
    FakeNpu npu;
    npu.behaviour = [](const npu::Job&) -> Result<npu::JobStats> { return fail(ErrorCode::Timeout, "no interrupt"); };
    const auto file = write_program(delegate_program());
    auto session = Session::open(file, "p.pte", options(operators::kQuantizeOperators, &npu)).value();
    const std::vector<std::uint8_t> input(16);
    ASSERT_TRUE(session.set_input(0, input));
    const auto ran = session.run();
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().describe(), "p.pte: method 'forward', instruction 0: no interrupt (Timeout)");
}

TEST(Session, ErrorsNameTheMethodOnce) {
    const auto error_of = [](auto&& change, const char* name = "p.pte") {
        ProgramSpec p = round_trip_program();
        change(p.methods[0]);
        const auto file = write_program(p);
        const auto session = Session::open(file, name, options());
        return session ? "(accepted)" : session.error().describe();
    };
    EXPECT_EQ(error_of([](MethodSpec& m) { m.chains.clear(); }),
              "p.pte: method 'forward' has no chain of instructions (InvalidProgram)");
    EXPECT_EQ(error_of([](MethodSpec& m) { m.arena_sizes = {0, 10LL << 30}; }),
              "p.pte: arena 1 of method 'forward' needs 10737418240 bytes, 0 to 2147483647 are possible "
              "(InvalidProgram)");
    EXPECT_EQ(error_of([](MethodSpec& m) { m.chains[0][0] = KernelCallSpec{2, {}}; }),
              "p.pte: method 'forward': instruction 0 calls operator 2, of 2 (InvalidProgram)")
        << "where the message does not";

    const auto file = write_program(round_trip_program());
    auto session = Session::open(file, "p.pte", options()).value();
    EXPECT_EQ(session.run().error().describe(),
              "p.pte: input 0 of method 'forward' was not set since the last run, which may have overwritten it "
              "(InvalidState)");
}

#if defined(__has_feature)
#define TALPA_TEST_HAS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define TALPA_TEST_HAS_ADDRESS_SANITIZER 1
#else
#define TALPA_TEST_HAS_ADDRESS_SANITIZER 0
#endif
#if !TALPA_TEST_HAS_ADDRESS_SANITIZER  // it ends the program where memory cannot be had
TEST(Session, APoolThatCannotBeHadIsNamed) {
    ProgramSpec p = round_trip_program();
    p.methods[0].arena_sizes = {0, 48, 0x7FFF0000};
    const auto file = write_program(p);
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
    const rlimit narrow{1U << 30, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_AS, &narrow), 0);
    void* const beyond = ::mmap(nullptr, std::size_t{2} << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (beyond != MAP_FAILED) {
        ::munmap(beyond, std::size_t{2} << 30);
        ::setrlimit(RLIMIT_AS, &before);
        GTEST_SKIP() << "no limit of memory is in force here: qemu's user emulation takes none";
    }
    const auto session = Session::open(file, "p.pte", options());
    ::setrlimit(RLIMIT_AS, &before);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().describe(),
              "p.pte: method 'forward': pool 'planned 2' needs 2147418112 bytes, this machine does not have them "
              "(MemoryAllocation)");
}
#endif

TEST(Session, ResetBringsTheInitialStateBack) {
    ProgramSpec p = round_trip_program();
    p.methods[0].outputs = {1};
    p.initial_values = {{5, 6, 7, 8}};
    std::get<TensorSpec>(p.methods[0].values[1]).data_index = 1;
    const auto file = write_program(p);
    auto session = Session::open(file, "p.pte", options()).value();
    const std::vector<float> input(4);
    ASSERT_TRUE(session.set_input(0, bytes_of(input)));
    ASSERT_TRUE(session.run());
    EXPECT_EQ(session.output_bytes(0).value()[0], 0);
    ASSERT_TRUE(session.reset());
    EXPECT_EQ(*session.method().output(0).tensor->data, 5);
    EXPECT_FALSE(session.output_bytes(0)) << "no results before a run";
}

TEST(Session, MemoryNeedIsKnownWithoutAnNpu) {
    const auto file = write_program(delegate_program());
    const auto program = pte::Program::open(file).value();
    const MemoryNeed need = memory_need(program, options()).value();
    EXPECT_EQ(need.scratch, 80u);
    EXPECT_EQ(need.fast_scratch, 32u);
    EXPECT_EQ(need.planned_total(), 32u);
}

}  // namespace
}  // namespace talpa::runtime::host
