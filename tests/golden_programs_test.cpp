// Every golden program, run by the executor on the functional NPU model: outputs equal to the expected files, bit for
// bit. (tests/golden/README.md says whose they are.)
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu_model/model.h"
#include "runtime/host/session.h"
#include "runtime/operators/quantize.h"

namespace talpa {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> programs(const fs::path& folder) {
    std::vector<fs::path> found;
    if (fs::exists(folder))
        for (const auto& entry : fs::directory_iterator(folder))
            found.push_back(entry.path() / (entry.path().filename().string() + ".pte"));
    std::ranges::sort(found);
    return found;
}

std::string test_name(const ::testing::TestParamInfo<fs::path>& info) {
    return info.param.stem().string();
}

class GoldenProgram : public ::testing::TestWithParam<fs::path> {};

TEST_P(GoldenProgram, GivesTheExpectedBytes) {
    const fs::path folder = GetParam().parent_path();
    npu_model::Model npu;
    runtime::host::SessionOptions options;
    options.operators = runtime::operators::kQuantizeOperators;
    options.device = &npu;
    auto session = runtime::host::Session::open(GetParam(), options);
    if (!session && session.error().code == ErrorCode::OperatorMissing) GTEST_SKIP() << session.error().describe();
    ASSERT_TRUE(session) << session.error().describe();
    std::vector<std::vector<std::uint8_t>> inputs;
    for (std::uint32_t i = 0; i < session->input_count(); ++i) {
        inputs.push_back(host::read_file(folder / ("in" + std::to_string(i) + ".bin")).value());
        const auto set = session->set_input(i, inputs.back());
        ASSERT_TRUE(set) << set.error().describe();
    }
    const auto ran = session->run();
    ASSERT_TRUE(ran) << ran.error().describe();
    ASSERT_GT(session->output_count(), 0u);
    for (std::uint32_t i = 0; i < session->output_count(); ++i) {
        const auto expected = host::read_file(folder / ("out" + std::to_string(i) + ".bin")).value();
        const auto bytes = session->output_bytes(i);
        ASSERT_TRUE(bytes) << bytes.error().describe();
        EXPECT_TRUE(std::ranges::equal(*bytes, expected)) << "output " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Ops, GoldenProgram, ::testing::ValuesIn(programs(testing::golden_folder() / "ops")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Models, GoldenProgram, ::testing::ValuesIn(programs(testing::golden_folder() / "models")),
                         test_name);

}  // namespace
}  // namespace talpa
