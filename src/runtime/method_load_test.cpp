// What a program must be to load: each test breaks a good program in one place. Names begin with the check of
// pte-format, section 9, that they hold (docs/formats/pte.md has the table).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/program_for_test.h"

namespace talpa::runtime {
namespace {

using namespace testing;
using ::testing::HasSubstr;

/// The round trip program with one change.
template <typename Fn>
std::string refused(Fn&& change) {
    ProgramSpec p = round_trip_program();
    change(p.methods[0]);
    return refusal(p);
}
TensorSpec& tensor(MethodSpec& m, std::size_t value) {
    return std::get<TensorSpec>(m.values[value]);
}

TEST(MethodLoad, TheGoodProgramIsAccepted) {
    EXPECT_EQ(refused([](MethodSpec&) {}), "(accepted)");
}

TEST(MethodLoad, V07_InstructionWithoutArguments) {
    EXPECT_THAT(refused([](MethodSpec& m) { m.chains[0].push_back(std::monostate()); }),
                HasSubstr("instruction 2 of method 'forward' has no type"));
}

TEST(MethodLoad, V08_IndicesOutOfRange) {
    EXPECT_EQ(refused([](MethodSpec& m) { m.inputs = {9}; }), "input 0 of method 'forward' is value 9, of 9");
    EXPECT_EQ(refused([](MethodSpec& m) { m.inputs = {-1}; }), "input 0 of method 'forward' is value -1, of 9");
    EXPECT_EQ(refused([](MethodSpec& m) { m.outputs = {8, 2000000000}; }),
              "output 1 of method 'forward' is value 2000000000, of 9");
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0][0] = KernelCallSpec{2, {}}; }),
              "instruction 0 calls operator 2, of 2");
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0][0] = KernelCallSpec{-1, {}}; }),
              "instruction 0 calls operator -1, of 2");
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0][0] = KernelCallSpec{0, {0, 2, 3, 4, 5, 6, 1, 9}}; }),
              "instruction 0: argument 7 is value 9, of 9");
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0][0] = DelegateCallSpec{0, {0, 1}}; }),
              "instruction 0 calls delegate 0, of 0");
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0].push_back(MoveCallSpec{0, 9}); }),
              "instruction 2 refers to value 9, of 9");
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0].push_back(MoveCallSpec{-5, 0}); }),
              "instruction 2 refers to value -5, of 9");
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0].push_back(FreeCallSpec{77}); }),
              "instruction 2 refers to value 77, of 9");
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0].push_back(JumpFalseCallSpec{9, 0}); }),
              "instruction 2 refers to value 9, of 9");
    EXPECT_EQ(refused([](MethodSpec& m) { m.values.push_back(IntListSpec{{3, 99}}); }),
              "item 1 of the IntList in value 9 is value 99, of 10");
    EXPECT_EQ(refused([](MethodSpec& m) { m.values.push_back(IntListSpec{{INT64_MIN}}); }),
              "item 0 of the IntList in value 9 is value -9223372036854775808, of 10");
}

TEST(MethodLoad, V09_ListItemsHaveTheRightKind) {
    EXPECT_EQ(refused([](MethodSpec& m) { m.values.push_back(IntListSpec{{2}}); }),
              "item 0 of the IntList in value 9 is value 2, which is Double");
    EXPECT_EQ(refused([](MethodSpec& m) { m.values.push_back(TensorListSpec{{0, 3}}); }),
              "item 1 of the TensorList in value 9 is value 3, which is Int");
    EXPECT_EQ(refused([](MethodSpec& m) { m.values.push_back(TensorListSpec{{9}}); }),
              "item 0 of the TensorList in value 9 is value 9, of 10")
        << "backwards only";
    EXPECT_EQ(refused([](MethodSpec& m) { m.values.push_back(TensorListSpec{{-1}}); }),
              "item 0 of the TensorList in value 9 is value -1, of 10");
    EXPECT_EQ(refused([](MethodSpec& m) { m.values.push_back(OptionalTensorListSpec{{-1, 0, 7}}); }), "(accepted)")
        << "-1 and Null are none";
    EXPECT_EQ(refused([](MethodSpec& m) { m.values.push_back(OptionalTensorListSpec{{-2}}); }),
              "item 0 of the OptionalTensorList in value 9 is value -2, of 10");
}

TEST(MethodLoad, V10_SizesNegativeOrTooLarge) {
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).sizes = {-4}; }),
              "value 1: a tensor whose dimension 0 has size -4");
    EXPECT_THAT(refused([](MethodSpec& m) { tensor(m, 0).sizes = {0x10000, 0x10000, 0x10000, 0x10000, 0x10000}; }),
                HasSubstr("more than 2^31 bytes"));
    EXPECT_THAT(refused([](MethodSpec& m) { tensor(m, 0).sizes = {0x20000000}; }), HasSubstr("more than 2^31 bytes"));
    EXPECT_THAT(refused([](MethodSpec& m) { tensor(m, 0).sizes = {0, 0x7FFFFFFF, 0x7FFFFFFF}; }),
                HasSubstr("more than 2^31 bytes"))
        << "a zero must not hide it";
}

TEST(MethodLoad, V11_RankAndOrder) {
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).sizes.assign(17, 1); }),
              "value 1: a tensor of 17 dimensions, the limit is 16");
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).dim_order = {{0, 1}}; }),
              "value 1: a tensor of 1 dimensions with a dim_order of 2");
    EXPECT_EQ(refused([](MethodSpec& m) {
                  tensor(m, 1).sizes = {2, 2};
                  tensor(m, 1).dim_order = {{1, 1}};
              }),
              "value 1: entry 1 of the dim_order is 1: no permutation");
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).dim_order = {{200}}; }),
              "value 1: entry 0 of the dim_order is 200: no permutation");
}

TEST(MethodLoad, V12_ScalarTypes) {
    for (const int type : {8, 9, 10, 18, 21, 30, 99, -1, -128})
        EXPECT_EQ(refused([&](MethodSpec& m) { tensor(m, 1).scalar_type = static_cast<std::int8_t>(type); }),
                  "value 1: a tensor of scalar type " + std::to_string(type) + ", which is none or not supported");
}

TEST(MethodLoad, V13_StorageOffsetAndDynamism) {
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).storage_offset = 4; }),
              "value 1: a tensor with storage offset 4");
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).dynamism = pte::ShapeDynamism::DynamicUnbound; }),
              "value 1: a tensor without an upper bound of its shape");
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).dynamism = static_cast<pte::ShapeDynamism>(3); }),
              "value 1: a tensor of shape dynamism 3");
    EXPECT_EQ(refused([](MethodSpec& m) {
                  tensor(m, 0).dynamism = tensor(m, 1).dynamism = tensor(m, 8).dynamism =
                      pte::ShapeDynamism::DynamicBound;
              }),
              "(accepted)");
}

TEST(MethodLoad, V14_PlacementInsideAnArena) {
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).placement->memory_id = 0; }),
              "value 1: a tensor with memory id 0, the ids are 1..1");
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).placement->memory_id = 2; }),
              "value 1: a tensor with memory id 2, the ids are 1..1");
    EXPECT_EQ(refused([](MethodSpec& m) { m.arena_sizes = {0, 32}; }),
              "value 8: a tensor of 16 bytes at 32 of arena 1, which has 32");
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).placement->offset = 1ULL << 32; }),
              "value 1: a tensor of 4 bytes at 4294967296 of arena 1, which has 48");
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).placement->offset = ~0ULL; }),
              "value 1: a tensor of 4 bytes at 18446744073709551615 of arena 1, which has 48");
}

TEST(MethodLoad, V15_ArenaSizes) {
    EXPECT_EQ(refused([](MethodSpec& m) { m.arena_sizes = {0, -48}; }),
              "arena 1 of method 'forward' needs -48 bytes, 0 to 2147483647 are possible");
    EXPECT_EQ(refused([](MethodSpec& m) { m.arena_sizes = {0, 10LL << 30}; }),
              "arena 1 of method 'forward' needs 10737418240 bytes, 0 to 2147483647 are possible");
    EXPECT_EQ(refused([](MethodSpec& m) { m.arena_sizes = {0, INT64_MAX}; }),
              "arena 1 of method 'forward' needs 9223372036854775807 bytes, 0 to 2147483647 are possible");
    EXPECT_EQ(refused([](MethodSpec& m) { m.arena_sizes = {0, 0x7FFFFFF0, 0x7FFFFFF0}; }),
              "the arenas of method 'forward' need 4294967264 bytes together, at most 2147483647 are possible");
    EXPECT_EQ(refused([](MethodSpec& m) { m.arena_sizes.assign(10, 48); }),
              "method 'forward' has 9 arenas, at most 8 are supported");
    EXPECT_EQ(refused([](MethodSpec& m) { m.arena_sizes = {-1, 48}; }), "(accepted)")
        << "entry 0 is reserved and not looked at";
    EXPECT_EQ(refused([](MethodSpec& m) { m.arena_device_types = {1}; }),
              "an arena of method 'forward' is on device type 1, only the CPU is known");
}

TEST(MethodLoad, V16_PlacementAligned) {
    EXPECT_EQ(refused([](MethodSpec& m) { tensor(m, 1).placement->offset = 20; }),
              "value 1: a tensor at 20 of its arena, not a multiple of 16");
}

/// The scale as a constant: program::constants gets `bytes`, value 9 refers to constant `index`.
std::string refused_constant(std::vector<std::uint8_t> bytes, std::uint32_t index, std::vector<std::int32_t> sizes,
                             ProgramSpec::Constants form = ProgramSpec::Constants::Segment) {
    ProgramSpec p = round_trip_program();
    p.constants = {std::move(bytes)};
    p.constant_form = form;
    TensorSpec t;
    t.sizes = std::move(sizes);
    t.data_index = index;
    p.methods[0].values.push_back(t);
    return refusal(p);
}

TEST(MethodLoad, V17_ConstantsInsideTheirSegment) {
    for (const auto form : {ProgramSpec::Constants::Segment, ProgramSpec::Constants::InlineBuffer}) {
        EXPECT_EQ(refused_constant(std::vector<std::uint8_t>(16), 1, {4}, form), "(accepted)");
        EXPECT_EQ(refused_constant(std::vector<std::uint8_t>(16), 2, {4}, form),
                  "constant 2 is referred to, there are 2");
    }
    EXPECT_EQ(refused_constant(std::vector<std::uint8_t>(16), 1, {5}),
              "constant 1 takes 20 bytes from 0 of its segment, which has 16");
    EXPECT_EQ(refused_constant(std::vector<std::uint8_t>(16), 1, {5}, ProgramSpec::Constants::InlineBuffer),
              "constant 1 has 16 bytes, its tensor needs 20");
    ProgramSpec p = round_trip_program();
    tensor(p.methods[0], 1).data_index = 1;
    EXPECT_EQ(refusal(p), "initial value 1 is referred to, the program has no mutable data");
    p.initial_values = {{1, 2, 3}};
    EXPECT_EQ(refusal(p), "initial value 1 takes 4 bytes from 0 of its segment, which has 3");
}

TEST(MethodLoad, V18_ConstantsAreNotWritten) {
    ProgramSpec p = round_trip_program();
    p.constants = {std::vector<std::uint8_t>(16)};
    TensorSpec& out = tensor(p.methods[0], 8);
    out.placement.reset();
    out.data_index = 1;
    EXPECT_EQ(refusal(p),
              "quantized_decomposed::dequantize_per_tensor.out: argument 7 is an output, but the tensor is a constant");
    p = round_trip_program();
    p.constants = {std::vector<std::uint8_t>(16)};
    TensorSpec& in = tensor(p.methods[0], 0);
    in.placement.reset();
    in.data_index = 1;
    EXPECT_EQ(refusal(p), "input 0 of method 'forward' is value 0, a constant");
    p = round_trip_program();
    tensor(p.methods[0], 0).placement.reset();
    p.methods[0].chains[0][1] = KernelCallSpec{1, {1, 2, 3, 4, 5, 6, 7, 0, 0}};
    EXPECT_THAT(refusal(p), HasSubstr("is an output, but the tensor is a constant"))
        << "an input that is used where the caller has it";
}

TEST(MethodLoad, V20_ArityAndKinds) {
    EXPECT_EQ(refused([](MethodSpec& m) { std::get<KernelCallSpec>(m.chains[0][0]).args.pop_back(); }),
              "instruction 0: quantized_decomposed::quantize_per_tensor.out is called with 7 arguments, it takes 8");
    EXPECT_EQ(refused([](MethodSpec& m) { std::get<KernelCallSpec>(m.chains[0][0]).args.push_back(1); }),
              "instruction 0: quantized_decomposed::quantize_per_tensor.out is called with 9 arguments, it takes 8");
    EXPECT_EQ(refused([](MethodSpec& m) { std::get<KernelCallSpec>(m.chains[0][0]).args[0] = 2; }),
              "quantized_decomposed::quantize_per_tensor.out: argument 0 must be a Tensor, is Double");
    EXPECT_EQ(refused([](MethodSpec& m) { std::get<KernelCallSpec>(m.chains[0][0]).args[5] = 7; }),
              "quantized_decomposed::quantize_per_tensor.out: argument 5 must be an Int, is Null");
}

TEST(MethodLoad, V21_JumpDestinations) {
    const auto jump = [](std::int32_t condition, std::int32_t destination) {
        return refused([&](MethodSpec& m) {
            m.values.push_back(false);
            m.chains[0].push_back(JumpFalseCallSpec{condition, destination});
        });
    };
    EXPECT_EQ(jump(9, 3), "(accepted)") << "the count is the end";
    EXPECT_EQ(jump(9, 4), "instruction 2 jumps to 4, of 3");
    EXPECT_EQ(jump(9, -1), "instruction 2 jumps to -1, of 3");
    EXPECT_EQ(jump(0, 3), "instruction 2 jumps on value 0, which is no Bool and no bool tensor but Tensor");
}

TEST(MethodLoad, FreeCallIsForTensorsOnly) {
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains[0].push_back(FreeCallSpec{3}); }),
              "instruction 2 frees value 3, which is no Tensor");
}

TEST(MethodLoad, MissingTablesAreNamed) {
    namespace plan = pte::slot::plan;
    for (const auto& [slot, name] :
         {std::pair{plan::values, "values"}, std::pair{plan::inputs, "inputs"}, std::pair{plan::outputs, "outputs"},
          std::pair{plan::chains, "chains"}, std::pair{plan::non_const_buffer_sizes, "non_const_buffer_sizes"}})
        EXPECT_EQ(refused([slot](MethodSpec& m) { m.omitted_slots = {slot}; }),
                  std::string("method 'forward' has no ") + name);
    EXPECT_EQ(refused([](MethodSpec& m) { m.chains.clear(); }), "method 'forward' has no chain of instructions");
    EXPECT_EQ(refused([](MethodSpec& m) { m.omitted_slots = {plan::operators}; }),
              "instruction 0 calls operator 0, of 0");
    EXPECT_EQ(refused([](MethodSpec& m) { m.omitted_slots = {plan::container_meta_type, plan::delegates}; }),
              "(accepted)");
}

TEST(MethodLoad, V36_AllMissingOperatorsAreCountedAndUnusedOnesAreNotMissed) {
    EXPECT_EQ(refused([](MethodSpec& m) {
                  m.operators[0] = {"aten::nothing", "out"};
                  m.operators[1] = {"aten::more", ""};
              }),
              "2 operators of method 'forward' are not built in, the first is aten::nothing.out");
    EXPECT_EQ(refused([](MethodSpec& m) { m.operators.emplace_back("aten::unused", "out"); }), "(accepted)");
    ProgramSpec p = round_trip_program();
    p.methods[0].operators = {{"aten::nothing", "out"}, {"aten::more", ""}};
    const auto bytes = write_program(p);
    const auto program = pte::Program::open(bytes).value();
    std::vector<std::string> missing;
    EXPECT_EQ(for_each_missing_operator(program.method(0), operators::kQuantizeOperators,
                                        [&](const pte::OperatorView& op) { missing.emplace_back(op.name); }),
              2u);
    EXPECT_THAT(missing, ::testing::ElementsAre("aten::nothing", "aten::more"));
}

TEST(MethodLoad, V37_OperatorNamesAreComparedWholeAndAreAtMost99Long) {
    const auto named = [](std::string name, std::string overload) {
        return refused([&](MethodSpec& m) { m.operators[0] = {name, overload}; });
    };
    EXPECT_EQ(named("quantized_decomposed::quantize_per_tensor.out", ""), "(accepted)")
        << "the joined name is what counts";
    EXPECT_THAT(named("quantized_decomposed::quantize_per_tensor", "ou"), HasSubstr("not built in"));
    EXPECT_THAT(named("quantized_decomposed::quantize_per_tensor", "out2"), HasSubstr("not built in"));
    EXPECT_THAT(named("quantized_decomposed::quantize_per_tenso", "r.out"), HasSubstr("not built in"));
    EXPECT_THAT(named(std::string(100, 'x'), ""), HasSubstr("not built in"));
    EXPECT_THAT(named("", ""), HasSubstr("not built in"));
}

TEST(MethodLoad, V24_TwoMethodsOfOneName) {
    ProgramSpec p = round_trip_program();
    p.methods.push_back(constant_method_spec("forward", std::int64_t{1}));
    EXPECT_EQ(refusal(p), "two methods have the name 'forward'");
    p.methods[1].name = "other";
    EXPECT_EQ(refusal(p), "(accepted)");
    EXPECT_EQ(load(p, default_options(), "third")->error,
              "no method 'third' among the 2 of the program; the first is 'forward'");
}

TEST(MethodLoad, TheMethodPoolIsNamedWhenItIsTooSmall) {
    const auto file = write_program(round_trip_program());
    const auto program = pte::Program::open(file).value();
    const std::size_t need = Method::pool_bytes(program.method(0)).value();
    const host::AlignedMemory pool(need);
    EXPECT_TRUE(Method::load(program, "forward", pool.pool(), default_options()));
    const auto cut = Method::load(program, "forward", pool.pool().first(need - 16), default_options());
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, ErrorCode::MemoryAllocation);
    EXPECT_EQ(text(cut.error()),
              "pool 'method' needs " + std::to_string(need) + " bytes, it has " + std::to_string(need - 16));
}

TEST(MethodLoad, PortsOfKindsThatNobodyCanSetAreRefused) {
    EXPECT_EQ(refused([](MethodSpec& m) {
                  m.values.push_back(IntListSpec{{3}});
                  m.inputs.push_back(9);
              }),
              "input 1 of method 'forward' is a IntList");
}

}  // namespace
}  // namespace talpa::runtime
