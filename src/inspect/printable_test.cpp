#include "inspect/printable.h"

#include <gtest/gtest.h>

namespace talpa::inspect {
namespace {

TEST(Printable, Numbers) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(3469760), "3,469,760");
    EXPECT_EQ(size_text(512), "512 B");
    EXPECT_EQ(size_text(3 * 1024 * 1024 + 512 * 1024), "3.5 MiB");
}

TEST(Printable, CutsAtCodePoints) {
    EXPECT_EQ(fitted("größer", 10), "größer");
    EXPECT_EQ(fitted("größer", 4), "grö…");
    EXPECT_EQ(columns("grö…"), 4u);
}

}  // namespace
}  // namespace talpa::inspect
