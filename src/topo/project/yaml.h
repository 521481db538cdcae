// YAML as Compose files use it, with positions: a tree of nodes over libyaml's events that keeps marks, byte ranges,
// styles and aliases, finds duplicate keys, and cannot be made to eat the machine: nesting, nodes and size are limited,
// aliases are pointers (never copied while reading), and an anchor cannot contain itself.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topo/project/finding.h"

namespace talpa::topo::yaml {

inline constexpr std::size_t kMaxBytes = 4 << 20;
inline constexpr int kMaxDepth = 100;
inline constexpr std::size_t kMaxNodes = 200'000;

enum class Kind { Scalar, Sequence, Mapping, Alias };
enum class Style { Plain, SingleQuoted, DoubleQuoted, Literal, Folded };

struct Node;
using NodePtr = std::shared_ptr<Node>;

struct Entry {
    NodePtr key;  ///< a scalar
    NodePtr value;
};

struct Node {
    Kind kind = Kind::Scalar;
    Style style = Style::Plain;  ///< of a scalar
    bool flow = false;           ///< a collection in [] or {}
    Mark mark;
    std::size_t begin = 0, end = 0;  ///< bytes of the text, anchor and tag included
    std::string anchor, tag;         ///< tag: "!reset", "tag:yaml.org,2002:int"; empty if none is written
    std::string value;               ///< of a scalar; the anchor's name of an alias
    NodePtr target;                  ///< of an alias
    std::vector<NodePtr> items;
    std::vector<Entry> entries;

    /// The node itself, or what the alias means.
    [[nodiscard]] const Node& real() const { return kind == Kind::Alias ? *target : *this; }
    /// The value of a mapping's own key (aliases followed, merges not); nullptr if there is none.
    [[nodiscard]] const Node* own(std::string_view key) const;
    /// As own(), and if it is not there, what `<<` brings.
    [[nodiscard]] const Node* find(std::string_view key) const;
    [[nodiscard]] bool is_scalar() const { return kind == Kind::Scalar; }
    [[nodiscard]] bool is_mapping() const { return kind == Kind::Mapping; }
    [[nodiscard]] bool is_sequence() const { return kind == Kind::Sequence; }
};

/// What a scalar means without further knowledge (YAML 1.2 core schema, quoted ones are strings).
enum class ScalarType { Null, Bool, Integer, Float, String };
[[nodiscard]] ScalarType type_of(const Node& scalar);
/// A scalar that says "no value": nothing, ~, null.
[[nodiscard]] bool is_null(const Node& node);
[[nodiscard]] ScalarType type_of_plain(std::string_view text);
/// Would some YAML reader (1.1 or 1.2) take this plain text for something else than a string?
[[nodiscard]] bool plain_is_ambiguous(std::string_view text);
/// For messages: "a list", "a mapping", "a number", …
[[nodiscard]] std::string_view name_of_type(const Node& node);

/// The first document of `text`, or all of them. Findings: yaml.syntax, yaml.duplicate-key, yaml.limit,
/// compose.empty (no document with content; "EOF").
[[nodiscard]] Checked<NodePtr> parse_first(std::string_view text, const std::string& file);
[[nodiscard]] Checked<std::vector<NodePtr>> parse_all(std::string_view text, const std::string& file);

/// A copy without aliases and with `<<` merged: what the document means. Refuses more than kMaxNodes nodes
/// (yaml.limit), so that a bomb ends here.
[[nodiscard]] Checked<NodePtr> expand(const Node& root, const std::string& file);

/// Makers for trees that come from elsewhere than a file.
[[nodiscard]] NodePtr make_scalar(std::string value, Mark mark = {}, Style style = Style::DoubleQuoted);

}  // namespace talpa::topo::yaml
