#include "npu_model/thread_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace talpa::npu_model {
namespace {

TEST(ThreadPool, calls_each_index_once_in_many_short_loops) {
    for (const unsigned threads : {1u, 2u, 5u}) {
        ThreadPool pool(threads);
        EXPECT_EQ(pool.threads(), threads);
        for (std::uint32_t round = 0; round < 3000; ++round) {
            const std::uint32_t count = round % 17;
            std::vector<std::atomic<int>> calls(count);
            pool.run(count, [&](std::uint32_t i) { ++calls[i]; });
            for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(calls[i], 1) << "loop " << round << " index " << i;
        }
    }
}

// Which thread does what stays the same from loop to loop, as long as none is late.
TEST(ThreadPool, each_thread_begins_with_a_part_of_its_own) {
    ThreadPool pool(2);
    const auto caller = std::this_thread::get_id();
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> first_of_other = -1;
        pool.run(100, [&](std::uint32_t i) {
            if (std::this_thread::get_id() == caller) {
                while (first_of_other < 0) std::this_thread::yield();  // or all would be done before it has begun
            } else {
                int none = -1;
                static_cast<void>(first_of_other.compare_exchange_strong(none, static_cast<int>(i)));
            }
        });
        EXPECT_EQ(first_of_other, 50);
    }
}

TEST(ThreadPool, workers_that_went_to_sleep_come_back) {
    ThreadPool pool(3);
    std::atomic<int> calls = 0;
    for (int i = 0; i < 5; ++i) {
        pool.run(100, [&](std::uint32_t) { ++calls; });
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(calls, 500);
}

TEST(ThreadPool, starts_no_thread_before_there_is_work_and_ends_idle_ones) {
    ThreadPool unused(64);
    ThreadPool used(2);
    used.run(2, [](std::uint32_t) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace talpa::npu_model
