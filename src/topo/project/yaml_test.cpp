// The YAML reader: positions, duplicate keys, anchors and merges, and bombs that must not go off.
#include "topo/project/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace talpa::topo::yaml {
namespace {

using ::testing::HasSubstr;

NodePtr read(std::string_view text) {
    auto root = parse_first(text, "f.yaml");
    EXPECT_TRUE(root) << root.error().describe();
    return root ? *root : nullptr;
}

std::string error_of(std::string_view text) {
    const auto root = parse_first(text, "f.yaml");
    if (!root) return root.error().describe();
    const auto expanded = expand(**root, "f.yaml");
    return expanded ? "" : expanded.error().describe();
}

TEST(Yaml, KeepsPositionsInCharactersAndRangesInBytes) {
    const std::string_view text = "a: ü\nbéé: [x, 'zwei ü' , \"3\"]\n";
    const NodePtr root = read(text);
    const Node* list = root->own("béé");
    ASSERT_NE(list, nullptr);
    EXPECT_EQ(list->mark.line, 2);
    EXPECT_EQ(list->mark.column, 6);
    EXPECT_EQ(text.substr(list->items[1]->begin, list->items[1]->end - list->items[1]->begin), "'zwei ü'");
    EXPECT_EQ(text.substr(list->begin, list->end - list->begin), "[x, 'zwei ü' , \"3\"]");
}

TEST(Yaml, ByteOrderMarkDoesNotShiftRanges) {
    const std::string_view text = "\xEF\xBB\xBFkey: value\n";
    const NodePtr root = read(text);
    const Node* value = root->own("key");
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(text.substr(value->begin, value->end - value->begin), "value");
}

TEST(Yaml, DuplicateKeysNameBothLines) {
    EXPECT_THAT(error_of("a: 1\nb: 2\na: 3\n"), HasSubstr("f.yaml:3:1: mapping key \"a\" already defined at line 1"));
}

TEST(Yaml, MergesGiveWhatIsNotThere) {
    const NodePtr root = read("base: &b {x: 1, y: 2}\nover: {<<: *b, y: 3}\nlist: {<<: [{p: 1}, {p: 2, q: 3}]}\n");
    const auto expanded = expand(*root, "f.yaml");
    ASSERT_TRUE(expanded);
    const Node* over = (*expanded)->own("over");
    EXPECT_EQ(over->own("x")->value, "1");
    EXPECT_EQ(over->own("y")->value, "3");
    EXPECT_EQ((*expanded)->own("list")->own("p")->value, "1");
    EXPECT_EQ((*expanded)->own("list")->own("q")->value, "3");
    EXPECT_EQ(root->own("over")->find("x")->value, "1");
}

TEST(Yaml, BombsAreLimited) {
    std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; ++i)
        text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i,
                            i - 1);
    EXPECT_THAT(error_of(text), HasSubstr("expand to more than"));

    std::string merges = "m0: &m0 {}\n";
    for (int i = 1; i < 60; ++i) merges += fmt::format("m{0}: &m{0} {{<<: [*m{1}, *m{1}]}}\n", i, i - 1);
    EXPECT_THAT(error_of(merges), HasSubstr("merges more than"));
    const auto root = parse_first(merges, "f.yaml");
    EXPECT_EQ((*root)->own("m59")->find("absent"), nullptr);  // ends, and soon

    EXPECT_THAT(error_of(std::string(500, '[')), HasSubstr("nested deeper than 100"));
    EXPECT_THAT(error_of(std::string(kMaxBytes + 1, '#')), HasSubstr("larger than"));
    EXPECT_THAT(error_of("a: &a [*a]"), HasSubstr("contains itself"));
    EXPECT_THAT(error_of("a: *b"), HasSubstr("unknown anchor 'b'"));
}

TEST(Yaml, GarbageIsASentenceWithAPlace) {
    EXPECT_THAT(error_of("services:\n  a: [unclosed\nx: y\n"), HasSubstr("f.yaml:3:2: invalid YAML"));
    EXPECT_THAT(error_of("a: \x01"), HasSubstr("control characters are not allowed"));
    EXPECT_THAT(error_of("a: \xff\xfe"), HasSubstr("invalid YAML"));
    EXPECT_THAT(error_of("\xFF\xFE"
                         "a\0"),
                HasSubstr("UTF-16"));
    EXPECT_THAT(error_of("[a, b]: c"), HasSubstr("a key must be a plain text"));
}

TEST(Yaml, ScalarTypesFollowTheCoreSchema) {
    EXPECT_EQ(type_of_plain("~"), ScalarType::Null);
    EXPECT_EQ(type_of_plain("true"), ScalarType::Bool);
    EXPECT_EQ(type_of_plain("yes"), ScalarType::String);
    EXPECT_EQ(type_of_plain("-12"), ScalarType::Integer);
    EXPECT_EQ(type_of_plain("1.5e3"), ScalarType::Float);
    EXPECT_EQ(type_of_plain("1.5e"), ScalarType::String);
    EXPECT_EQ(type_of_plain("v1.5"), ScalarType::String);
    for (const char* text : {"yes", "No", "on", "007", "0x1f", "1:30", "2026-01-01", "1_000", "", "null", "<<", ".inf"})
        EXPECT_TRUE(plain_is_ambiguous(text)) << text;
    for (const char* text : {"red", "A=B", "celsius", "v1", "example/a:1"})
        EXPECT_FALSE(plain_is_ambiguous(text)) << text;
}

}  // namespace
}  // namespace talpa::topo::yaml
