// What a person reads of a run. The document for programs is held by tests/cli_run_test.py.
#include "classifier/run_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace talpa::classifier {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string printed(const RunResult& result, const Labels& labels) {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* const file = ::open_memstream(&text, &size);
    print(file, result, labels, host::Style(file));
    std::fclose(file);
    std::string all(text, size);
    std::free(text);
    return all;
}

// U+009B begins a control sequence as ESC [ does; U+202E turns what follows around.
TEST(RunResult, ALabelCannotCommandTheTerminal) {
    const Labels labels = Labels::of_text(
                              "a\xC2\x9B"
                              "31mb\nc\xE2\x80\xAE"
                              "d\ntabby, t\xC3\xA4"
                              "by cat",
                              "labels", 0)
                              .value();
    RunResult result;
    result.classification = Classification{
        .scores = Classification::Scores::Probabilities, .top = {{0, 0.5}, {1, 0.25}, {2, 0.25}}, .classes = 3};
    result.runs_ms = {1};
    const std::string text = printed(result, labels);
    EXPECT_THAT(text, HasSubstr("a?31mb"));
    EXPECT_THAT(text, HasSubstr("c?d"));
    EXPECT_THAT(text, HasSubstr("tabby, t\xC3\xA4"
                                "by cat"));
    EXPECT_THAT(text, Not(HasSubstr("\xC2\x9B")));
}

}  // namespace
}  // namespace talpa::classifier
