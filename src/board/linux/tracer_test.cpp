// Who hears what of a trace.
#include "board/linux/tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace talpa::board {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr unsigned bit(TraceSource source) {
    return 1u << static_cast<unsigned>(source);
}

TEST(TracerTest, AListenerHearsItsSourcesOnly) {
    Tracer tracer;
    EXPECT_FALSE(tracer.wants(TraceSource::Mu));
    const auto listener = tracer.listen(bit(TraceSource::Mu) | bit(TraceSource::Sysfs));
    EXPECT_TRUE(tracer.wants(TraceSource::Mu));
    EXPECT_FALSE(tracer.wants(TraceSource::Npu));
    tracer.line(TraceSource::Npu, "unheard");
    tracer.line(TraceSource::Mu, "word {}", 7);
    EXPECT_THAT(listener->next(0ms).value(), EndsWith("] mu    word 7\n"));
    EXPECT_FALSE(listener->next(1ms));
}

TEST(TracerTest, NothingIsWrittenWhenNobodyIsLeft) {
    Tracer tracer;
    auto listener = tracer.listen(bit(TraceSource::Rpmsg));
    listener.reset();
    tracer.line(TraceSource::Rpmsg, "the last one that is formatted");
    EXPECT_FALSE(tracer.wants(TraceSource::Rpmsg));
}

TEST(TracerTest, ASlowListenerIsToldWhatItMissed) {
    Tracer tracer;
    const auto listener = tracer.listen(bit(TraceSource::Npu));
    for (int i = 0; i < 65536 + 10; ++i) tracer.line(TraceSource::Npu, "{}", i);
    const auto first = listener->next(0ms).value();
    EXPECT_THAT(first, HasSubstr("(10 lines were dropped)\n"));
    EXPECT_THAT(first, EndsWith("npu   10\n"));
}

TEST(TracerTest, BytesAreShownAsText) {
    EXPECT_EQ(show_bytes("RUN\n\x01\""), R"("RUN\n\x01\"")");
    EXPECT_EQ(show_bytes("abcdef", 3), "\"abc\"…");
}

}  // namespace
}  // namespace talpa::board
