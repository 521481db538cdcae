#include "runtime/host/c_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace talpa::runtime::host {
namespace {

using ::testing::ElementsAre;

// numpy.arange(12).reshape(1, 2, 2, 3), and the same after .transpose(0, 2, 3, 1) as C-contiguous bytes.
constexpr std::uint8_t kLogical[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
constexpr std::uint8_t kChannelsLast[] = {0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11};
constexpr std::uint8_t kOrder[] = {0, 2, 3, 1};
constexpr std::int32_t kSizes[] = {1, 2, 2, 3};

TEST(COrder, ChannelsLastBecomesLogicalOrderAndBack) {
    EXPECT_EQ(to_c_order(kChannelsLast, 1, kOrder, kSizes), std::vector<std::uint8_t>(kLogical, kLogical + 12));
    EXPECT_EQ(from_c_order(kLogical, 1, kOrder, kSizes), std::vector<std::uint8_t>(kChannelsLast, kChannelsLast + 12));
}

TEST(COrder, ElementsMoveWhole) {
    const std::uint8_t stored[] = {1, 2, 3, 4, 5, 6, 7, 8};  // 2 x 2 elements of two bytes, columns outermost
    const std::uint8_t order[] = {1, 0};
    const std::int32_t sizes[] = {2, 2};
    EXPECT_THAT(to_c_order(stored, 2, order, sizes), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
}

TEST(COrder, DimensionsOfSizeOneDoNotCount) {
    const std::uint8_t order[] = {0, 2, 3, 1};
    EXPECT_FALSE(is_c_order(order, std::initializer_list<std::int32_t>{1, 2, 3, 4}));
    EXPECT_TRUE(is_c_order(order, std::initializer_list<std::int32_t>{1, 2, 1, 1}));
    EXPECT_TRUE(is_c_order(order, std::initializer_list<std::int32_t>{5, 1, 3, 4}));
}

TEST(COrder, EmptyTensorsAndScalarsStayAsTheyAre) {
    const std::int32_t empty[] = {1, 0, 2, 3};
    EXPECT_TRUE(to_c_order({}, 4, kOrder, empty).empty());
    const std::uint8_t scalar[] = {7, 0};
    EXPECT_THAT(to_c_order(scalar, 2, {}, {}), ElementsAre(7, 0));
}

}  // namespace
}  // namespace talpa::runtime::host
