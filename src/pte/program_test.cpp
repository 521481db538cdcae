#include "pte/program.h"

#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "pte/data_file.h"
#include "pte/file_for_test.h"
#include "pte/host/flatbuffer_builder.h"
#include "pte/metadata.h"

namespace talpa::pte {
namespace {

namespace files = talpa::host;

files::MappedFile variant(const std::string& name) {
    return files::MappedFile::open(talpa::testing::golden_folder() / "pte_variants" / name).value();
}

// The 352 bytes of pte-format, section 14.1: what they hold was confirmed by the stock runtime.
TEST(Program, ReadsTheSmallestProgram) {
    const auto file = variant("min.pte");
    const Program program = Program::open(file.bytes()).value();
    EXPECT_FALSE(program.frame().has_header);
    ASSERT_EQ(program.method_count(), 1u);
    const MethodView method = program.find_method("f").value();
    EXPECT_EQ(method.inputs().size(), 0u);
    ASSERT_EQ(method.outputs().size(), 1u);
    EXPECT_EQ(method.value(0).type(), ValueType::Int);
    EXPECT_EQ(method.value(0).as_int(), 42);
    EXPECT_EQ(method.chain_count(), 1u);
    EXPECT_TRUE(method.instructions(0).empty());
}

// Section 14.3.
TEST(Program, ReadsSegmentsAndHeader) {
    const auto file = variant("two_seg.pte");
    const Program program = Program::open(file.bytes()).value();
    EXPECT_EQ(program.frame().header_length, 32u);
    EXPECT_EQ(program.frame().flatbuffer_size, 2296u);
    EXPECT_EQ(program.frame().segment_base, 2304u);
    EXPECT_EQ(program.frame().segment_data_size, 3920u);
    ASSERT_EQ(program.segment_count(), 2u);
    EXPECT_EQ(program.segment(1).size, 3920u);
    const DelegateView delegate = program.method(0).delegate(0);
    EXPECT_EQ(delegate.location(), DataLocation::Segment);
    EXPECT_EQ(delegate.id(), "EthosUBackend");
    EXPECT_EQ(delegate.compile_spec("target"), "ethos-u65-256");
    EXPECT_EQ(program.delegate_data(delegate).value().size(), 3920u);
    EXPECT_EQ(program.method(0).arena_sizes()[1], 5120);
}

// Section 14.4: IntList [16] with value 16 = Int 3.
TEST(Program, IntListsHoldValueIndices) {
    const auto file = variant("fallback.pte");
    const Program program = Program::open(file.bytes()).value();
    const MethodView method = program.method(0);
    EXPECT_EQ(method.values().size(), 32u);
    EXPECT_EQ(method.instructions(0).size(), 7u);
    const InstructionView flip(method.instructions(0)[3]);
    EXPECT_EQ(method.op(static_cast<std::uint32_t>(flip.op_index())).name, "aten::flip");
    EXPECT_EQ(flip.args().size(), 4u);
    EXPECT_EQ(flip.args()[1], 17);
    ASSERT_EQ(method.value(17).int_list().size(), 1u);
    EXPECT_EQ(method.value(17).int_list()[0], 16);
    EXPECT_EQ(method.value(16).as_int(), 3);
}

TEST(Program, ParametersOfInt8PortsAreInConstantMethods) {
    const auto file = variant("two_qio.pte");
    const Program program = Program::open(file.bytes()).value();
    const auto input = io_quantization(program, program.method(0), IoSide::Input, 0);
    ASSERT_TRUE(input);
    EXPECT_EQ(input->dtype, 1);
    EXPECT_EQ(input->quant_min, -128);
    EXPECT_EQ(input->quant_max, 127);
    EXPECT_GT(input->scale, 0);
    EXPECT_TRUE(io_quantization(program, program.method(0), IoSide::Output, 0));
    EXPECT_FALSE(io_quantization(program, program.method(0), IoSide::Output, 1));
}

TEST(Program, V19_ConstantsInOnePlaceOnly) {
    using namespace host;  // NOLINT(google-build-using-namespace)
    const auto with = [](std::vector<std::uint64_t> offsets) {
        const FlatRef buffers = flat_tables({TableBuilder().child(0, flat_bytes({})).ref()});
        const FlatRef segment = TableBuilder().child(slot::subsegment::offsets, flat_vector(offsets)).ref();
        const FlatRef plans = flat_tables({TableBuilder().child(slot::plan::name, flat_string("forward")).ref()});
        auto bytes = finish_flatbuffer(TableBuilder()
                                           .child(slot::program::execution_plan, plans)
                                           .child(slot::program::constant_buffer, buffers)
                                           .child(slot::program::constant_segment, segment)
                                           .ref(),
                                       "ET12", 8);
        bytes.resize(std::max<std::size_t>(bytes.size(), 64));
        const auto program = Program::open(bytes);
        return program ? "(accepted)" : testing::text(program.error());
    };
    EXPECT_EQ(with({0}), "(accepted)") << "the placeholder alone is no use";
    EXPECT_EQ(with({0, 0}), "constants are both in constant_buffer (1) and in constant_segment (2)");
}

TEST(Program, AProgramHasMethods) {
    auto bytes = host::finish_flatbuffer(host::TableBuilder().ref(), "ET12", 8);
    bytes.resize(64);
    EXPECT_EQ(testing::text(Program::open(bytes).error()), "the program has no methods");
}

TEST(DataFile, ReadsNamedTensorsAndBlobs) {
    const auto tensors = variant("_default_external_constant.ptd");
    const DataFile file = DataFile::open(tensors.bytes()).value();
    const auto weight = file.find("l.weight").value();
    ASSERT_TRUE(weight && weight->layout);
    EXPECT_EQ(weight->layout->scalar_type(), 6);
    ASSERT_EQ(weight->layout->sizes().size(), 2u);
    EXPECT_EQ(weight->layout->sizes()[0], 3);
    EXPECT_EQ(weight->layout->sizes()[1], 5);
    EXPECT_EQ(file.data(*weight).value().size(), 60u);
    const auto blob = variant("flash.ptd");
    const DataFile flash = DataFile::open(blob.bytes()).value();
    ASSERT_EQ(flash.count(), 1u);
    EXPECT_EQ(flash.entry(0).key.size(), 64u);
    EXPECT_FALSE(flash.entry(0).layout);
}

}  // namespace
}  // namespace talpa::pte
