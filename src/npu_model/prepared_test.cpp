// Jobs whose owner says that stream and constants do not change: what the model may keep, and what it must not trust.
#include "npu_model/prepared.h"

#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu_model/delegate_for_test.h"
#include "npu_model/model.h"

namespace talpa::npu_model {
namespace {

class ConstantJob : public ::testing::Test {
  protected:
    ConstantJob()
        : folder_(talpa::testing::golden_folder() / "ops" / "int8_io_conv"),
          delegates_(testing::delegates_in(host::read_file(folder_ / "int8_io_conv.pte").value())),
          input_(host::read_file(folder_ / "in0.bin").value()),
          expected_(host::read_file(folder_ / "out0.bin").value()) {}

    std::vector<std::uint8_t> run(std::uint64_t constant_id) {
        delegates_[0].set_input(0, input_);
        npu::Job job = delegates_[0].job();
        job.constant_id = constant_id;
        const auto result = model_.run(job);
        EXPECT_TRUE(result) << host::Error(result.error()).describe();
        if (result) stats_ = *result;
        return delegates_[0].output(0);
    }
    void change_constants() {
        const npu::Region constants = delegates_[0].job().regions[0];
        for (std::size_t i = 0; i < 10; ++i) constants.data[i] ^= 0x55;  // the first scale record
    }

    std::filesystem::path folder_;
    std::vector<testing::Delegate> delegates_;
    std::vector<std::uint8_t> input_, expected_;
    Model model_;
    npu::JobStats stats_;
};

TEST_F(ConstantJob, GivesTheSameEveryTime) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(7), expected_) << "run " << i;
    const auto cycles = stats_.cycles;
    EXPECT_EQ(run(0), expected_);
    EXPECT_EQ(stats_.cycles, cycles);
}

TEST_F(ConstantJob, IsNotLookedAtAgain) {
    EXPECT_EQ(run(7), expected_);
    change_constants();
    EXPECT_EQ(run(7), expected_) << "the owner said that they do not change";
    EXPECT_NE(run(8), expected_) << "another owner";
    EXPECT_NE(run(0), expected_) << "no such word: the memory counts";
}

TEST_F(ConstantJob, WithSmallerRegionsIsCheckedAgain) {
    EXPECT_EQ(run(7), expected_);
    for (const std::size_t region : {0, 1}) {
        npu::Job job = delegates_[0].job();
        job.constant_id = 7;
        job.regions[region].size = 16;
        const auto result = model_.run(job);
        ASSERT_FALSE(result) << "region " << region;
        EXPECT_EQ(result.error().code, ErrorCode::OutOfBounds);
    }
    npu::Job job = delegates_[0].job();
    job.constant_id = 7;
    job.regions[1].data = nullptr;
    EXPECT_FALSE(model_.run(job));
}

TEST_F(ConstantJob, AFailedRunIsNotKept) {
    ModelOptions options;
    options.work_limit = 1000;
    Model small(options);
    npu::Job job = delegates_[0].job();
    job.constant_id = 7;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(small.run(job).error().code, ErrorCode::OutOfResources) << i;
}

TEST(PreparedJobs, TheLeastRecentlyUsedGoes) {
    PreparedJobs jobs(1000);
    const auto job = [](std::uint64_t id) {
        npu::Job j;
        j.constant_id = id;
        return j;
    };
    const auto prepared = [&](std::uint64_t id, std::size_t bytes) {
        PreparedJob p;
        p.job = job(id);
        p.filter_bytes = bytes;
        return p;
    };
    jobs.add(prepared(1, 400));
    jobs.add(prepared(2, 400));
    EXPECT_NE(jobs.find(job(1)), nullptr);
    jobs.add(prepared(3, 400));
    EXPECT_NE(jobs.find(job(1)), nullptr);
    EXPECT_EQ(jobs.find(job(2)), nullptr);
    for (std::uint64_t id = 10; id < 10 + PreparedJobs::kMaxJobs; ++id) jobs.add(prepared(id, 0));
    EXPECT_EQ(jobs.find(job(1)), nullptr);
    EXPECT_NE(jobs.find(job(10)), nullptr);
}

}  // namespace
}  // namespace talpa::npu_model
