#include "base/host/error.h"

#include <gtest/gtest.h>

namespace talpa::host {
namespace {

talpa::Result<int> core_failure() {
    return talpa::fail(ErrorCode::InvalidProgram, "rank {} of 16", 17);
}

Result<int> host_function() {
    TRY_ASSIGN(const int v, core_failure());
    return v;
}

TEST(HostError, TakesOverAFreestandingError) {
    const auto error = host_function().error();
    EXPECT_EQ(error.code, ErrorCode::InvalidProgram);
    EXPECT_EQ(error.message, "rank 17 of 16");
}

TEST(HostError, StrangersTextCannotDriveATerminal) {
    EXPECT_EQ(Error(ErrorCode::NotFound, "no method '\x1b[31mred\a'", "see\nhere").describe(),
              "no method '?[31mred?' (NotFound)\n  see\nhere");
}

TEST(HostError, DescribesContextFromTheOutsideIn) {
    auto failed = with_context(with_context(core_failure(), "tensor 3"), "reading m.pte");
    EXPECT_EQ(std::move(failed.error()).with_hint("export it again").describe(),
              "reading m.pte: tensor 3: rank 17 of 16 (InvalidProgram)\n  export it again");
}

}  // namespace
}  // namespace talpa::host
