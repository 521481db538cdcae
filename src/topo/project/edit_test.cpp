// Edits change the values' bytes and nothing else, and what they write is what every reader takes for that string.
// Python's yaml (YAML 1.1) is asked in tests/topo_cli_test.py; here the cases are those of the specification.
#include "topo/project/edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace talpa::topo {
namespace {

std::string edit(std::string text, const Values& values) {
    const auto result = apply_values(std::move(text), "f.yaml", values);
    return result ? result->text : "error: " + result.error().describe();
}

std::string with_args(std::string_view args) {
    return fmt::format(
        "# top\n\nservices:\n    a:\n        build:\n            args:\n{}\n# end\n---\nsecond: document\n", args);
}

TEST(Edit, OldTypesDoNotLeakIntoNewValues) {
    EXPECT_EQ(
        edit(with_args("                N: 5 # five\n                B: true\n                M: ${M:-q}"),
             {{"N", "007"}, {"B", "yes"}, {"M", "\"q\""}}),
        with_args("                N: \"007\" # five\n                B: \"yes\"\n                M: \"\\\"q\\\"\""));
}

TEST(Edit, TagsGoAndAnchorsStay) {
    EXPECT_EQ(edit(with_args("                N: !!int 5\n                B: &b old"), {{"N", "6"}, {"B", "new"}}),
              with_args("                N: \"6\"\n                B: &b new"));
}

TEST(Edit, EmptyValuesAreFilled) {
    EXPECT_EQ(edit(with_args("                N:\n                B:   # comment"), {{"N", "x"}, {"B", "yy"}}),
              with_args("                N: x\n                B: yy   # comment"));
    EXPECT_EQ(edit("services: {a: {build: {args: {N: , B}}}}", {{"N", "x"}, {"B", "yy"}}),
              "services: {a: {build: {args: {N: x , B: yy}}}}");
}

TEST(Edit, BlockTextsAreReplacedWhole) {
    EXPECT_EQ(
        edit(
            with_args("                N: |\n                    one\n                    two\n\n                B: z"),
            {{"N", "a\nb"}}),
        with_args("                N: \"a\\nb\"\n\n                B: z"));
}

TEST(Edit, StylesAreKeptWhereTheyCanBe) {
    EXPECT_EQ(edit(with_args("                N: 'old'"), {{"N", "it's"}}), with_args("                N: 'it''s'"));
    EXPECT_EQ(edit(with_args("                N: 'old'"), {{"N", "a\tb"}}), with_args("                N: \"a\\tb\""));
    EXPECT_EQ(edit(with_args("                N: old"), {{"N", "a: b"}}), with_args("                N: \"a: b\""));
    EXPECT_EQ(edit(with_args("                N: old"), {{"N", "https://x/y"}}),
              with_args("                N: https://x/y"));
}

TEST(Edit, MergedValuesGetAKeyOfTheirOwn) {
    const char* text =
        "x: &c\n  Z: north\n  K: 1\nservices:\n  a:\n    build:\n      args:\n        <<: *c\n        Q: q\n    "
        "environment: *c\n";
    EXPECT_EQ(edit(text, {{"Z", "south"}}),
              "x: &c\n  Z: north\n  K: 1\nservices:\n  a:\n    build:\n      args:\n        Z: south\n        <<: *c\n "
              "       Q: q\n    environment: *c\n");
}

TEST(Edit, AliasesGetAPrivateCopy) {
    EXPECT_EQ(edit("x: &c {Z: north, K: 1, E: }\nservices:\n  a:\n    build:\n      args: *c\n", {{"Z", "south"}}),
              "x: &c {Z: north, K: 1, E: }\nservices:\n  a:\n    build:\n      args: {Z: south, K: 1, E: null}\n");
    EXPECT_EQ(edit("services:\n  a:\n    build:\n      args: &s {Z: n}\n  b:\n    build:\n      args: *s\n",
                   {{"Z", "south"}}),
              "services:\n  a:\n    build:\n      args: &s {Z: south}\n  b:\n    build:\n      args: *s\n");
    EXPECT_EQ(edit("x: &c [Z=n, YY]\nservices:\n  a:\n    build:\n      args: *c\n", {{"Z", "s, t"}}),
              "x: &c [Z=n, YY]\nservices:\n  a:\n    build:\n      args: [\"Z=s, t\", YY]\n");
}

// What else means the old value by its anchor goes on meaning it.
TEST(Edit, AnAnchorThatOthersUseMovesToTheFirstOfThem) {
    EXPECT_EQ(
        edit("services:\n  a:\n    build:\n      args:\n        P: &x old\n        Q: *x\n    container_name: *x\n",
             {{"P", "new"}}),
        "services:\n  a:\n    build:\n      args:\n        P: new\n        Q: &x old\n    container_name: *x\n");
    EXPECT_EQ(edit("services: {a: {build: {args: {P: &x 5}}}, b: {build: {args: {P: *x}}}, c: {scale: *x}}\n",
                   {{"P", "new"}}),
              "services: {a: {build: {args: {P: new}}}, b: {build: {args: {P: new}}}, c: {scale: &x 5}}\n");
    EXPECT_EQ(edit("services:\n  a:\n    build:\n      args:\n        P: &x |\n          old\n    command: [*x]\n",
                   {{"P", "new"}}),
              "services:\n  a:\n    build:\n      args:\n        P: \"new\"\n    command: [&x \"old\\n\"]\n");
    EXPECT_EQ(edit("services:\n  a:\n    build:\n      args:\n        P: &x a, b\n    command: [*x]\n", {{"P", "new"}}),
              "services:\n  a:\n    build:\n      args:\n        P: new\n    command: [&x \"a, b\"]\n");
}

TEST(Edit, AByteOrderMarkStays) {
    EXPECT_EQ(edit("\xEF\xBB\xBFservices:\n  a: {build: {args: {P: old}}}\n", {{"P", "new"}}),
              "\xEF\xBB\xBFservices:\n  a: {build: {args: {P: new}}}\n");
    EXPECT_EQ(edit("\xEF\xBB\xBF# \xC3\xBC\nservices:\n  a: {build: {args: {P: old}}}\n", {{"P", "new"}}),
              "\xEF\xBB\xBF# \xC3\xBC\nservices:\n  a: {build: {args: {P: new}}}\n");
}

TEST(Edit, WindowsLineEndsStay) {
    EXPECT_EQ(edit("services:\r\n  a:\r\n    build:\r\n      args:\r\n        N: old\r\n\r\n# c\r\n", {{"N", "new"}}),
              "services:\r\n  a:\r\n    build:\r\n      args:\r\n        N: new\r\n\r\n# c\r\n");
}

TEST(Edit, TheSameValueAgainIsNoChange) {
    const auto result = apply_values(with_args("                N: new"), "f.yaml", {{"N", "new"}});
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->changed);
}

TEST(Edit, ValuesThatReachNothingAreWarnedAbout) {
    const auto result =
        apply_values("services:\n  a: {extends: {service: b}}\n  b: {image: x}\n", "f.yaml", {{"N", "1"}});
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->changed);
    EXPECT_THAT(result->warnings,
                ::testing::ElementsAre("arg \"N\" was resolved but not found in any service build args",
                                       ::testing::HasSubstr("service \"a\" uses `extends` without `build.args`")));
}

TEST(Parameters, TheChainStopsWhenAllRequiredAreGiven) {
    const auto root = *yaml::parse_first(
        "services: {a: {build: {args: {R: '', O: o}}}}\nx-topo: {parameters: {R: {required: true}, O: {}}}", "f");
    const XTopo x = *read_x_topo(*root, "f");
    int asked = 0;
    const Prompt prompt = [&](const Parameter&, const std::vector<std::string>&) {
        return ++asked, std::optional<std::string>(" v ");
    };
    EXPECT_EQ(resolve_values(*root, x, {"R=1"}, prompt).value(), (Values{{"R", "1"}}));
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(resolve_values(*root, x, {"O=1"}, prompt).value(), (Values{{"O", "1"}, {"R", "v"}}));
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(resolve_values(*root, x, {}, prompt).value(), (Values{{"O", "v"}, {"R", "v"}}));
    EXPECT_EQ(asked, 3);
    EXPECT_EQ(resolve_values(*root, x, {"R="}, {}).error().message,
              "missing value(s) for required parameters:\n  R:\n    # current: [\"\"]");
    EXPECT_EQ(resolve_values(*root, x, {"X=1"}, {}).error().message, "unknown argument: X");
    EXPECT_EQ(resolve_values(*root, x, {"X"}, {}).error().message, "invalid argument format: X (expected ARG=VALUE)");
}

}  // namespace
}  // namespace talpa::topo
