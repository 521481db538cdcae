#include "base/core/error.h"

#include <gtest/gtest.h>

namespace talpa {
namespace {

std::string text(const Error& error) {
    char buffer[200];
    return std::string(error.render(buffer));
}

TEST(Error, FillsPlaceholdersInOrder) {
    EXPECT_EQ(text(Error(ErrorCode::InvalidProgram, "tensor {} needs {} bytes at {}", -3, 7u, hex(0xBEEF))),
              "tensor -3 needs 7 bytes at 0xbeef");
}

TEST(Error, SmallestNumberIsNotLost) {
    EXPECT_EQ(text(Error(ErrorCode::Internal, "{}", INT64_MIN)), "-9223372036854775808");
}

TEST(Error, TextOfAStrangerCannotDriveATerminal) {
    EXPECT_EQ(text(Error(ErrorCode::NotFound, "'{}'", std::string_view("a\x1b[31m\n"))), "'a?[31m?'");
}

TEST(Error, IsCutAtTheEndOfTheBuffer) {
    char buffer[4];
    EXPECT_EQ(Error(ErrorCode::Internal, "abcdef").render(buffer), "abcd");
}

TEST(Error, MissingArgumentsLeaveNothing) {
    EXPECT_EQ(text(Error(ErrorCode::Internal, "<{}>")), "<>");
}

Result<int> half(int v) {
    if (v % 2 != 0) return fail(ErrorCode::InvalidArgument, "{} is odd", v);
    return v / 2;
}
Result<int> quarter(int v) {
    TRY_ASSIGN(const int h, half(v));
    TRY(half(h));
    return half(h);
}

TEST(Error, TryPassesTheErrorUp) {
    EXPECT_EQ(quarter(8).value(), 2);
    EXPECT_EQ(text(quarter(6).error()), "3 is odd");
}

}  // namespace
}  // namespace talpa
