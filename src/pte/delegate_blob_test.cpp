// Payloads of delegates, good and broken. Names begin with the check of pte-format, section 9.
#include "pte/delegate_blob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "pte/file_for_test.h"
#include "pte/host/delegate_blob_writer.h"
#include "pte/program.h"

namespace talpa::pte {
namespace {

using host::append_block;
using host::DelegateBlobSpec;
using host::IoRecordSpec;
using testing::ExactBytes;
using ::testing::HasSubstr;
using testing::text;

DelegateBlobSpec good() {
    DelegateBlobSpec blob;
    blob.command_data.assign(36, 0x11);
    blob.weights.assign(48, 0x22);
    blob.scratch_size = 256;
    blob.inputs = {{{1, 1, 1, 4, 4, 4}, 1, 0, 1}};
    blob.outputs = {{{1, 1, 1, 1, 4, 8}, 2, 64, 1}, {{1, 1, 1, 1, 1, 16}, 4, 192, 1}};
    return blob;
}

std::string refusal(Bytes payload) {
    const ExactBytes exact(payload);
    const auto blob = parse_delegate_blob(exact.bytes());
    return blob ? "(accepted)" : text(blob.error());
}
std::string refused(const DelegateBlobSpec& spec) {
    return refusal(host::write_delegate_blob(spec));
}

/// The payload from named blocks.
std::vector<std::uint8_t> blocks(const std::vector<std::pair<std::string, std::vector<std::uint8_t>>>& list) {
    std::vector<std::uint8_t> payload;
    for (const auto& [name, data] : list) append_block(payload, name, data);
    return payload;
}

TEST(DelegateBlob, ReadsAGoodPayload) {
    const ExactBytes exact(host::write_delegate_blob(good()));
    const DelegateBlob blob = parse_delegate_blob(exact.bytes()).value();
    EXPECT_EQ(blob.command_data.data.size(), 36u);
    EXPECT_EQ(blob.weights.data.size(), 48u);
    EXPECT_EQ(blob.scratch_size, 256u);
    ASSERT_EQ(blob.outputs.count(), 2u);
    EXPECT_EQ(blob.outputs[0].size_bytes, 64u);
    EXPECT_EQ(blob.outputs[0].rows(), 4u);
    EXPECT_EQ(blob.outputs[0].row_bytes(), 16u);
    EXPECT_EQ(blob.outputs[1].offset, 192u);
}

// pte-format, section 14.5.
TEST(DelegateBlob, ReadsTheTablesOfARealPayload) {
    const auto file =
        talpa::host::MappedFile::open(talpa::testing::golden_folder() / "pte_variants" / "multi.pte").value();
    const Program program = Program::open(file.bytes()).value();
    const DelegateBlob blob = parse_delegate_blob(program.delegate_data(program.method(0).delegate(0)).value()).value();
    ASSERT_EQ(blob.inputs.count(), 2u);
    ASSERT_EQ(blob.outputs.count(), 2u);
    EXPECT_EQ(blob.inputs[0].offset, 0u);
    EXPECT_EQ(blob.inputs[1].offset, 192u);
    EXPECT_EQ(blob.outputs[0].offset, 512u);
    EXPECT_EQ(blob.outputs[1].offset, 0u);
    EXPECT_EQ(blob.scratch_size, 1024u);
}

TEST(DelegateBlob, V25_CutShortAtEveryStep) {
    const auto payload = host::write_delegate_blob(good());
    for (std::size_t size = 0; size < payload.size(); ++size)
        EXPECT_NE(refusal(Bytes(payload).first(size)), "(accepted)") << size;
    EXPECT_EQ(refusal(Bytes(payload).first(payload.size() - 32)),
              "the delegate payload ends at 432 without its last block, vela_end_stream");
    EXPECT_EQ(refusal(Bytes(payload).first(payload.size() - 1)),
              "the delegate payload has 463 bytes, not a multiple of 16: it is cut short or no vela_bin_stream");
}

TEST(DelegateBlob, V25_SizesBeyondTheRest) {
    const auto size = [](std::uint32_t n) {
        auto payload = host::write_delegate_blob(good());
        store_le(payload.data() + 32 + 16, n);
        return refusal(payload);
    };
    EXPECT_EQ(size(0xFFFFFFFF), "block 'cmd_data' at 32 of the delegate payload has 4294967295 bytes, 400 are left");
    EXPECT_EQ(size(401), "block 'cmd_data' at 32 of the delegate payload has 401 bytes, 400 are left");
}

TEST(DelegateBlob, V26_OrderNamesAndCompleteness) {
    const std::vector<std::uint8_t> none, four(4), size{0, 1, 0, 0};
    const std::pair<std::string, std::vector<std::uint8_t>> first{"vela_bin_stream", none}, commands{"cmd_data", four},
        weights{"weight_data", none}, scratch{"scratch_size", size}, inputs{"inputs", four}, outputs{"outputs", four},
        last{"vela_end_stream", none};
    EXPECT_EQ(refusal(blocks({first, outputs, inputs, scratch, weights, commands, last})), "(accepted)")
        << "any order between first and last";
    EXPECT_EQ(refusal(blocks({commands, first, weights, scratch, inputs, outputs, last})),
              "block 'cmd_data' at 0 of the delegate payload: vela_bin_stream must come first, and once");
    EXPECT_EQ(refusal(blocks({first, first, commands, weights, scratch, inputs, outputs, last})),
              "block 'vela_bin_stream' at 32 of the delegate payload: vela_bin_stream must come first, and once");
    EXPECT_EQ(refusal(blocks({first, commands, weights, scratch, inputs, last})),
              "the delegate payload has no block 'outputs'");
    EXPECT_EQ(refusal(blocks({first, weights, scratch, inputs, outputs, last})),
              "the delegate payload has no block 'cmd_data'");
    EXPECT_EQ(refusal(blocks({first, commands, commands, weights, scratch, inputs, outputs, last})),
              "the delegate payload has block 'cmd_data' twice");
    EXPECT_EQ(refusal(blocks({first, {"cmd_data2", four}, weights, scratch, inputs, outputs, last})),
              "the delegate payload has an unknown block 'cmd_data2'");
    EXPECT_EQ(refusal(blocks({first, commands, weights, scratch, inputs, outputs, last, last})),
              "vela_end_stream ends at 288 of a delegate payload of 320 bytes");
    EXPECT_EQ(refusal(blocks({{"vela_bin_stream", four}, commands, weights, scratch, inputs, outputs, last})),
              "block 'vela_bin_stream' at 0 of the delegate payload must be empty");
    auto unterminated = host::write_delegate_blob(good());
    std::fill_n(unterminated.begin() + 32, 16, 'x');
    EXPECT_EQ(refusal(unterminated),
              "the delegate payload's block at 32 has a name without an end: 'xxxxxxxxxxxxxxxx'");
    EXPECT_EQ(refusal(blocks({first, commands, weights, {"scratch_size", none}, inputs, outputs, last})),
              "the delegate's block scratch_size has 0 bytes, not 4");
}

TEST(DelegateBlob, V27_ExternalFlagAndKey) {
    DelegateBlobSpec spec = good();
    spec.weights_key = std::string(64, 'a');
    const ExactBytes exact(host::write_delegate_blob(spec));
    const DelegateBlob blob = parse_delegate_blob(exact.bytes()).value();
    EXPECT_TRUE(blob.weights.external);
    EXPECT_EQ(blob.weights.key(), std::string(64, 'a'));
    spec.weights_key.pop_back();
    EXPECT_EQ(refused(spec), "the external key of block 'weight_data' has 63 characters, not 64");
    auto payload = host::write_delegate_blob(good());
    payload[32 + 20] = 2;
    EXPECT_EQ(refusal(payload), "block 'cmd_data' at 32 of the delegate payload has the external flag 2");
}

TEST(DelegateBlob, V28_TableSizes) {
    const auto with_inputs = [](std::vector<std::uint8_t> table) {
        std::vector<std::uint8_t> payload, size{0, 1, 0, 0};
        append_block(payload, "vela_bin_stream", {});
        append_block(payload, "cmd_data", size);
        append_block(payload, "weight_data", {});
        append_block(payload, "scratch_size", size);
        append_block(payload, "inputs", table);
        append_block(payload, "outputs", host::write_io_table({}));
        append_block(payload, "vela_end_stream", {});
        return refusal(payload);
    };
    auto table = host::write_io_table({IoRecordSpec()});
    EXPECT_EQ(with_inputs(table), "(accepted)");
    const auto count = [&](std::int32_t n) {
        auto changed = table;
        store_le(changed.data(), n);
        return with_inputs(changed);
    };
    EXPECT_EQ(count(-1), "the delegate's table inputs has -1 records");
    EXPECT_EQ(count(2), "the delegate's table inputs has 2 records and 40 bytes, 76 are needed");
    EXPECT_EQ(count(0), "the delegate's table inputs has 0 records and 40 bytes, 4 are needed");
    EXPECT_EQ(count(0x7FFFFFFF),
              "the delegate's table inputs has 2147483647 records and 40 bytes, 77309411296 are needed");
    EXPECT_EQ(with_inputs({1, 0}), "the delegate's table inputs has 2 bytes");
    auto old = table;
    old.resize(32);  // 4 + 28: a record of four dimensions
    EXPECT_THAT(with_inputs(old), HasSubstr("4-D records of ExecuTorch 0.7 and before"));
}

TEST(DelegateBlob, V29_Records) {
    const auto record = [](auto&& change) {
        DelegateBlobSpec spec = good();
        change(spec.outputs[0]);
        return refused(spec);
    };
    EXPECT_EQ(record([](IoRecordSpec& r) { r.shape[3] = 0; }), "record 0 of the delegate's outputs: dimension 3 is 0");
    EXPECT_EQ(record([](IoRecordSpec& r) { r.shape[0] = -7; }),
              "record 0 of the delegate's outputs: dimension 0 is -7");
    EXPECT_EQ(record([](IoRecordSpec& r) { r.element_size = 3; }),
              "record 0 of the delegate's outputs: element size (word 6) is 3");
    EXPECT_EQ(record([](IoRecordSpec& r) { r.element_size = 0; }),
              "record 0 of the delegate's outputs: element size (word 6) is 0");
    EXPECT_EQ(record([](IoRecordSpec& r) {
                  r.shape = {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF};
              }),
              "record 0 of the delegate's outputs has more than 2^31 bytes");
    EXPECT_EQ(record([](IoRecordSpec& r) { r.offset = 193; }),
              "record 0 of the delegate's outputs takes 64 bytes from 193 of the scratch, which has 256");
    EXPECT_EQ(record([](IoRecordSpec& r) { r.offset = -16; }),
              "record 0 of the delegate's outputs takes 64 bytes from -16 of the scratch, which has 256");
    EXPECT_EQ(record([](IoRecordSpec& r) { r.region = 0; }),
              "record 0 of the delegate's outputs has region 0, only the scratch (1) is possible");
    EXPECT_THAT(record([](IoRecordSpec& r) { r.region = 4; }),
                HasSubstr("separate I/O regions (COP2) are not supported"));
    DelegateBlobSpec huge = good();
    huge.scratch_size = 0x80000000;
    EXPECT_EQ(refused(huge), "the delegate asks for 2147483648 bytes of scratch, the limit is 2^31");
}

TEST(DelegateBlob, PayloadsOfOldReleasesAreRefusedByName) {
    const std::vector<std::uint8_t> none, four(4);
    EXPECT_THAT(refusal(blocks({{"vela_bin_stream", none},
                                {"cmd_data", four},
                                {"weight_data", none},
                                {"scratch_data", std::vector<std::uint8_t>(64)}})),
                HasSubstr("the layout of ExecuTorch 0.6 and before (scratch_data)"));
}

TEST(DelegateBlob, MisalignedPayload) {
    auto payload = host::write_delegate_blob(good());
    payload.insert(payload.begin(), 8, 0);
    EXPECT_THAT(text(parse_delegate_blob(Bytes(payload).subspan(8)).error()),
                HasSubstr("must lie at a multiple of 16, it is at 0x"));
}

}  // namespace
}  // namespace talpa::pte
