// The model on real programs: streams that Vela made, against the outputs that the TOSA reference model computed.
#include "npu_model/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu_model/delegate_for_test.h"

namespace talpa::npu_model {
namespace {

using testing::Delegate;

// int8_io_conv has int8 at both ends and one delegate: no CPU operator in between.
TEST(Model, runs_an_int8_program_bit_for_bit) {
    const auto folder = talpa::testing::golden_folder() / "ops" / "int8_io_conv";
    auto delegates = testing::delegates_in(host::read_file(folder / "int8_io_conv.pte").value());
    ASSERT_EQ(delegates.size(), 1u);
    Delegate& d = delegates[0];
    d.set_input(0, host::read_file(folder / "in0.bin").value());
    Model model;
    const auto result = model.run(d.job());
    ASSERT_TRUE(result) << host::Error(result.error()).describe();
    EXPECT_EQ(d.output(0), host::read_file(folder / "out0.bin").value());
}

// The expected output is there when the last operation is shown, and not before.
TEST(Model, shows_each_operation_when_it_is_done) {
    const auto folder = talpa::testing::golden_folder() / "ops" / "int8_io_conv";
    const auto expected = host::read_file(folder / "out0.bin").value();
    auto delegates = testing::delegates_in(host::read_file(folder / "int8_io_conv.pte").value());
    Delegate& d = delegates[0];
    d.set_input(0, host::read_file(folder / "in0.bin").value());
    std::vector<std::uint32_t> offsets;
    std::vector<bool> finished;
    ModelOptions options;
    options.after_operation = [&](const npu::Operation& op, const npu::Job&) {
        offsets.push_back(op.offset_bytes);
        finished.push_back(d.output(0) == expected);
    };
    ASSERT_TRUE(Model(options).run(d.job()));
    ASSERT_GE(offsets.size(), 2u);
    EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
    EXPECT_EQ(std::count(finished.begin(), finished.end(), true), 1);
    EXPECT_TRUE(finished.back());
}

}  // namespace
}  // namespace talpa::npu_model
