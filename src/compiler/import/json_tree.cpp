#include "compiler/import/json_tree.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

namespace talpa::compiler::import {

using host::Error;
using host::Result;

namespace {
constexpr std::size_t kMostNodes = 16 << 20;
constexpr const char* kKindNames[] = {"null", "a boolean", "an integer", "a number", "a text", "an array", "an object"};
}  // namespace

/// Receives nlohmann's events and builds the tree; the first complaint stops the parse.
class JsonSax {
  public:
    JsonSax(JsonTree& tree, std::size_t depth_limit) : tree_(tree), limit_(depth_limit) {}

    bool null() { return add(Json::Kind::Null) != 0; }
    bool boolean(bool v) {
        const auto n = add(Json::Kind::Bool);
        return n != 0 && (tree_.nodes_[n].boolean = v, true);
    }
    bool number_integer(std::int64_t v) {
        const auto n = add(Json::Kind::Int);
        return n != 0 && (tree_.nodes_[n].integer = v, true);
    }
    bool number_unsigned(std::uint64_t v) {
        if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            return complain(fmt::format("{} does not fit 64 bits", v));
        return number_integer(static_cast<std::int64_t>(v));
    }
    bool number_float(double v, const std::string& text) {
        if (text.find_first_of(".eE") == std::string::npos) return complain(text + " does not fit 64 bits");
        const auto n = add(Json::Kind::Float);
        return n != 0 && (tree_.nodes_[n].number = v, true);
    }
    bool string(std::string& v) {
        const auto n = add(Json::Kind::String);
        if (n == 0) return false;
        tree_.nodes_[n].text = intern(std::move(v));
        return true;
    }
    bool binary(std::vector<std::uint8_t>&) { return complain("binary data"); }
    bool start_object(std::size_t) { return open(Json::Kind::Object); }
    bool start_array(std::size_t) { return open(Json::Kind::Array); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(std::string& v) {
        if (!open_.back().keys.insert(v).second) return complain(fmt::format("the key '{}' stands twice", v));
        key_ = intern(std::move(v));
        return true;
    }
    bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& e) {
        std::string_view what = e.what();
        if (const auto colon = what.rfind("; "); colon != what.npos) what = what.substr(colon + 2);
        return complain(fmt::format("no JSON at byte {}: {}", at, what.substr(0, 200)));
    }

    [[nodiscard]] const std::string& complaint() const { return complaint_; }

  private:
    struct Open {
        std::uint32_t node, last;
        std::unordered_set<std::string> keys;
    };

    std::uint32_t add(Json::Kind kind) {
        auto& nodes = tree_.nodes_;
        if (nodes.size() > kMostNodes) return complain(fmt::format("more than {} values", kMostNodes)), 0;
        const auto n = static_cast<std::uint32_t>(nodes.size());
        JsonTree::Node node;
        node.kind = kind;
        if (!open_.empty()) {
            Open& open = open_.back();
            node.parent = open.node;
            node.key = std::exchange(key_, 0);
            (open.last == 0 ? nodes[open.node].first : nodes[open.last].next) = n;
            open.last = n;
            ++nodes[open.node].size;
        }
        nodes.push_back(node);
        return n;
    }
    bool open(Json::Kind kind) {
        if (open_.size() >= limit_) return complain(fmt::format("nested deeper than {} levels", limit_));
        const auto n = add(kind);
        if (n == 0) return false;
        open_.push_back({n, 0, {}});
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }
    std::uint32_t intern(std::string text) {
        tree_.texts_.push_back(std::move(text));
        return static_cast<std::uint32_t>(tree_.texts_.size() - 1);
    }
    bool complain(std::string what) {
        complaint_ = std::move(what);
        return false;
    }

    JsonTree& tree_;
    std::size_t limit_;
    std::vector<Open> open_;
    std::uint32_t key_ = 0;
    std::string complaint_;
};

Result<std::unique_ptr<JsonTree>> JsonTree::parse(std::string_view text, std::size_t depth_limit) {
    auto tree = std::make_unique<JsonTree>();
    JsonSax sax(*tree, depth_limit);
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &sax))
        return std::unexpected(Error(ErrorCode::InvalidProgram, sax.complaint()));
    return tree;
}

Json::Kind Json::kind() const {
    return tree_ == nullptr ? Kind::Null : tree_->nodes_[node_].kind;
}

std::string Json::path() const {
    if (tree_ == nullptr) return "";
    const auto& node = tree_->nodes_[node_];
    if (node.parent == 0) return "";
    const Json parent{tree_, node.parent};
    if (parent.is(Kind::Array)) {
        std::size_t index = 0;
        for (Json item = parent.first(); item && item.node_ != node_; item = item.next()) ++index;
        return fmt::format("{}[{}]", parent.path(), index);
    }
    const std::string before = parent.path();
    return before.empty() ? std::string(key()) : fmt::format("{}.{}", before, key());
}

Error Json::error(const std::string& what) const {
    const std::string where = path();
    return {ErrorCode::InvalidProgram, where.empty() ? what : fmt::format("{}: {}", where, what)};
}

Result<Json> Json::wanted(Kind k) const {
    if (kind() == k) return *this;
    return std::unexpected(error(fmt::format("{} is needed, this is {}", kKindNames[static_cast<int>(k)],
                                             kKindNames[static_cast<int>(kind())])));
}

Result<std::int64_t> Json::integer() const {
    TRY(wanted(Kind::Int));
    return tree_->nodes_[node_].integer;
}

Result<double> Json::number() const {
    if (is(Kind::Int)) return static_cast<double>(tree_->nodes_[node_].integer);
    if (is(Kind::String)) {
        const std::string_view text = tree_->texts_[tree_->nodes_[node_].text];
        if (text == "Infinity") return std::numeric_limits<double>::infinity();
        if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
        if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    }
    TRY(wanted(Kind::Float));
    return tree_->nodes_[node_].number;
}

Result<bool> Json::boolean() const {
    TRY(wanted(Kind::Bool));
    return tree_->nodes_[node_].boolean;
}

Result<std::string_view> Json::text() const {
    TRY(wanted(Kind::String));
    return std::string_view(tree_->texts_[tree_->nodes_[node_].text]);
}

Result<Json> Json::array() const {
    return wanted(Kind::Array);
}
Result<Json> Json::object() const {
    return wanted(Kind::Object);
}

std::size_t Json::size() const {
    return tree_ == nullptr ? 0 : tree_->nodes_[node_].size;
}

std::string_view Json::key() const {
    return tree_ == nullptr ? std::string_view() : std::string_view(tree_->texts_[tree_->nodes_[node_].key]);
}

Json Json::first() const {
    if (tree_ == nullptr || tree_->nodes_[node_].first == 0) return {};
    return {tree_, tree_->nodes_[node_].first};
}

Json Json::next() const {
    if (tree_ == nullptr || tree_->nodes_[node_].next == 0) return {};
    return {tree_, tree_->nodes_[node_].next};
}

Json Json::find(std::string_view wanted_key) const {
    if (!is(Kind::Object)) return {};
    for (Json item = first(); item; item = item.next())
        if (item.key() == wanted_key) return item;
    return {};
}

Result<Json> Json::member(std::string_view wanted_key) const {
    TRY(object());
    const Json found = find(wanted_key);
    if (!found) return std::unexpected(error(fmt::format("'{}' is missing", wanted_key)));
    return found;
}

Result<Json> Json::only() const {
    TRY(object());
    if (size() != 1) return std::unexpected(error(fmt::format("exactly one member is needed, there are {}", size())));
    return first();
}

}  // namespace talpa::compiler::import
