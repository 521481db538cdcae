// JSON as a tree that knows where each value stands, so that every complaint can name its path
// ("graph_module.graph.nodes[12].inputs[0].arg"). Parsed strictly (model-formats, sections 1.4 and 1.9): no duplicate
// keys, no trailing text, no integers beyond 64 bits, depth and size limited.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/error.h"

namespace talpa::compiler::import {

class JsonTree;

/// A value in a tree; as cheap as a pointer, valid as long as the tree.
class Json {
  public:
    enum class Kind : std::uint8_t { Null, Bool, Int, Float, String, Array, Object };

    Json() = default;  ///< no value
    [[nodiscard]] Kind kind() const;
    [[nodiscard]] bool is(Kind k) const { return kind() == k; }
    [[nodiscard]] explicit operator bool() const { return tree_ != nullptr; }
    [[nodiscard]] std::string path() const;

    [[nodiscard]] host::Result<std::int64_t> integer() const;
    /// An integer too, and the texts "Infinity", "-Infinity", "NaN".
    [[nodiscard]] host::Result<double> number() const;
    [[nodiscard]] host::Result<bool> boolean() const;
    [[nodiscard]] host::Result<std::string_view> text() const;

    /// Of an array or object.
    [[nodiscard]] std::size_t size() const;
    [[nodiscard]] std::string_view key() const;  ///< this value's own key in its object
    [[nodiscard]] Json first() const;            ///< none when empty
    [[nodiscard]] Json next() const;

    /// A member, or none.
    [[nodiscard]] Json find(std::string_view key) const;
    [[nodiscard]] host::Result<Json> member(std::string_view key) const;
    [[nodiscard]] host::Result<Json> array() const;
    [[nodiscard]] host::Result<Json> object() const;
    /// The only member of a tagged union.
    [[nodiscard]] host::Result<Json> only() const;

    /// "PATH: what"
    [[nodiscard]] host::Error error(const std::string& what) const;

  private:
    friend class JsonTree;
    friend class JsonRange;
    Json(const JsonTree* tree, std::uint32_t node) : tree_(tree), node_(node) {}
    [[nodiscard]] host::Result<Json> wanted(Kind kind) const;

    const JsonTree* tree_ = nullptr;
    std::uint32_t node_ = 0;
};

/// for (const Json item : each(array))
class JsonRange {
  public:
    explicit JsonRange(Json first) : first_(first) {}
    struct Iterator {
        Json at;
        Json operator*() const { return at; }
        Iterator& operator++() {
            at = at.next();
            return *this;
        }
        bool operator!=(const Iterator&) const { return static_cast<bool>(at); }
    };
    [[nodiscard]] Iterator begin() const { return {first_}; }
    [[nodiscard]] Iterator end() const { return {}; }

  private:
    Json first_;
};
[[nodiscard]] inline JsonRange each(Json container) {
    return JsonRange(container.first());
}

class JsonTree {
  public:
    [[nodiscard]] static host::Result<std::unique_ptr<JsonTree>> parse(std::string_view text,
                                                                       std::size_t depth_limit = 100);
    [[nodiscard]] Json root() const { return {this, 1}; }

  private:
    friend class Json;
    friend class JsonSax;
    struct Node {
        Json::Kind kind = Json::Kind::Null;
        std::uint32_t parent = 0, next = 0, first = 0, size = 0;
        std::uint32_t key = 0;  ///< index into texts_
        union {
            std::int64_t integer = 0;
            double number;
            std::uint32_t text;
            bool boolean;
        };
    };
    std::vector<Node> nodes_{Node{}};  ///< 0: none
    std::deque<std::string> texts_{""};
};

}  // namespace talpa::compiler::import
