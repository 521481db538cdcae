#include "classifier/latency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace talpa::classifier {
namespace {

TEST(Latency, QuantilesAreThoseOfTheRuns) {
    const Latency one = latency_of({5});
    EXPECT_EQ(one.min, 5);
    EXPECT_EQ(one.median, 5);
    EXPECT_EQ(one.p90, 5);
    EXPECT_EQ(one.max, 5);
    const Latency ten = latency_of({10, 9, 8, 7, 6, 5, 4, 3, 2, 1});
    EXPECT_EQ(ten.min, 1);
    EXPECT_EQ(ten.median, 5.5);
    EXPECT_EQ(ten.p90, 9) << "nine of ten do not exceed it";
    EXPECT_EQ(ten.max, 10);
    EXPECT_EQ(latency_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}).p90, 10);
}

TEST(Latency, TheHistogramCountsEveryRunOnce) {
    std::vector<double> runs;
    for (int i = 0; i < 1000; ++i) runs.push_back(1.0 + i % 100 / 100.0);
    runs.push_back(50);
    std::size_t counted = 0, lines = 0;
    const std::string text = histogram(runs, 5);
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++lines)
        counted += std::stoul(text.substr(text.find("ms", at) + 2));
    EXPECT_EQ(counted, runs.size());
    EXPECT_EQ(lines, 6u) << "five bins and what is slower than nearly all";
    EXPECT_EQ(histogram({1, 2, 3}, 5), "") << "too few to have a shape";
    EXPECT_EQ(histogram(std::vector<double>(20, 1.0), 5), "") << "no width";
}

}  // namespace
}  // namespace talpa::classifier
