#include "npu_model/thread_pool.h"

#include <gtest/gtest.h>

namespace talpa::npu_model {
namespace {

TEST(ThreadPool, calls_each_index_once_and_returns_when_all_are_done) {
    for (const unsigned threads : {1u, 2u, 5u}) {
        ThreadPool pool(threads);
        EXPECT_EQ(pool.threads(), threads);
        for (std::uint32_t count : {0u, 1u, 2u, 3u, 100u, 1000u})
            for (int repeat = 0; repeat < 50; ++repeat) {
                std::vector<std::atomic<int>> calls(count);
                pool.run(count, [&](std::uint32_t i) { ++calls[i]; });
                for (const auto& n : calls) ASSERT_EQ(n, 1);
            }
    }
}

}  // namespace
}  // namespace talpa::npu_model
