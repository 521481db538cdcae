#include "topo/project/yaml.h"

#include <yaml.h>

#include <map>
#include <unordered_map>

namespace talpa::topo::yaml {
namespace {

/// libyaml counts characters; edits need bytes.
class Offsets {
  public:
    explicit Offsets(std::string_view text) {
        bool ascii = true;
        for (const char c : text) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
        if (ascii) return;
        for (std::size_t i = 0; i < text.size(); ++i)
            if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80) bytes_.push_back(i);
        bytes_.push_back(text.size());
    }
    [[nodiscard]] std::size_t byte(std::size_t character) const {
        if (bytes_.empty()) return character;
        return character < bytes_.size() ? bytes_[character] : bytes_.back();
    }

  private:
    std::vector<std::size_t> bytes_;
};

Mark mark_of(const yaml_mark_t& m) {
    return {static_cast<int>(m.line) + 1, static_cast<int>(m.column) + 1};
}

class Event {
  public:
    ~Event() {
        if (live) yaml_event_delete(&event);
    }
    Event() = default;
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    yaml_event_t event{};
    bool live = false;
};

std::string text_of(const yaml_char_t* text) {
    return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

Style style_of(yaml_scalar_style_t style) {
    switch (style) {
        case YAML_SINGLE_QUOTED_SCALAR_STYLE:
            return Style::SingleQuoted;
        case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
            return Style::DoubleQuoted;
        case YAML_LITERAL_SCALAR_STYLE:
            return Style::Literal;
        case YAML_FOLDED_SCALAR_STYLE:
            return Style::Folded;
        default:
            return Style::Plain;
    }
}

class Reader {
  public:
    /// `skipped`: bytes of the file in front of `text`.
    Reader(std::string_view text, const std::string& file, std::size_t skipped)
        : offsets_(text), file_(file), skipped_(skipped) {
        yaml_parser_initialize(&parser_);
        yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
        yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    }
    ~Reader() { yaml_parser_delete(&parser_); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    Checked<std::vector<NodePtr>> documents(bool first_only) {
        std::vector<NodePtr> found;
        TRY(expect(YAML_STREAM_START_EVENT));
        for (;;) {
            Event e;
            TRY(next(e));
            if (e.event.type == YAML_STREAM_END_EVENT) return found;
            anchors_.clear();
            Event start;
            TRY(next(start));
            TRY_ASSIGN(NodePtr root, node(start, 0));
            found.push_back(std::move(root));
            if (first_only) return found;
            TRY(expect(YAML_DOCUMENT_END_EVENT));
        }
    }

  private:
    [[nodiscard]] std::size_t byte(const yaml_mark_t& mark) const { return skipped_ + offsets_.byte(mark.index); }

    Checked<void> next(Event& e) {
        if (yaml_parser_parse(&parser_, &e.event) == 0) return syntax_error();
        e.live = true;
        return {};
    }

    Checked<void> expect(yaml_event_type_t type) {
        Event e;
        TRY(next(e));
        if (e.event.type != type) return finding("yaml.syntax", file_, mark_of(e.event.start_mark), "unexpected YAML");
        return {};
    }

    [[nodiscard]] std::unexpected<Finding> syntax_error() const {
        std::string message = parser_.problem == nullptr ? "not YAML" : parser_.problem;
        Mark mark = mark_of(parser_.problem_mark);
        if (parser_.error == YAML_READER_ERROR) {
            message = fmt::format("{} at byte {}", message, parser_.problem_offset);
            mark = mark_of(parser_.mark);
        } else if (parser_.context != nullptr && parser_.context_mark.line != parser_.problem_mark.line) {
            message += fmt::format(" {} that began in line {}", parser_.context, parser_.context_mark.line + 1);
        }
        return finding("yaml.syntax", file_, mark, "invalid YAML: " + message);
    }

    Checked<NodePtr> node(const Event& start, int depth) {
        const yaml_event_t& e = start.event;
        if (depth > kMaxDepth)
            return finding("yaml.limit", file_, mark_of(e.start_mark),
                           fmt::format("nested deeper than {} levels", kMaxDepth));
        if (++count_ > kMaxNodes)
            return finding("yaml.limit", file_, mark_of(e.start_mark), fmt::format("more than {} nodes", kMaxNodes));
        auto n = std::make_shared<Node>();
        n->mark = mark_of(e.start_mark);
        n->begin = byte(e.start_mark);
        n->end = byte(e.end_mark);
        switch (e.type) {
            case YAML_ALIAS_EVENT: {
                n->kind = Kind::Alias;
                n->value = text_of(e.data.alias.anchor);
                const auto anchor = anchors_.find(n->value);
                if (anchor == anchors_.end())
                    return finding("yaml.syntax", file_, n->mark, fmt::format("unknown anchor '{}'", n->value));
                if (anchor->second == nullptr)
                    return finding("yaml.syntax", file_, n->mark, fmt::format("anchor '{}' contains itself", n->value));
                n->target = anchor->second;
                return n;
            }
            case YAML_SCALAR_EVENT:
                n->style = style_of(e.data.scalar.style);
                n->value.assign(reinterpret_cast<const char*>(e.data.scalar.value), e.data.scalar.length);
                n->anchor = text_of(e.data.scalar.anchor);
                n->tag = text_of(e.data.scalar.tag);
                break;
            case YAML_SEQUENCE_START_EVENT:
                n->anchor = text_of(e.data.sequence_start.anchor);
                n->tag = text_of(e.data.sequence_start.tag);
                n->flow = e.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
                TRY(sequence(*n, depth));
                break;
            case YAML_MAPPING_START_EVENT:
                n->anchor = text_of(e.data.mapping_start.anchor);
                n->tag = text_of(e.data.mapping_start.tag);
                n->flow = e.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
                TRY(mapping(*n, depth));
                break;
            default:
                return finding("yaml.syntax", file_, n->mark, "unexpected YAML");
        }
        if (!n->anchor.empty()) anchors_[n->anchor] = n;
        return n;
    }

    void open(const Node& n) {
        if (!n.anchor.empty()) anchors_[n.anchor] = nullptr;
    }

    Checked<void> sequence(Node& n, int depth) {
        n.kind = Kind::Sequence;
        open(n);
        for (;;) {
            Event e;
            TRY(next(e));
            if (e.event.type == YAML_SEQUENCE_END_EVENT) {
                n.end = byte(e.event.end_mark);
                return {};
            }
            TRY_ASSIGN(NodePtr item, node(e, depth + 1));
            n.items.push_back(std::move(item));
        }
    }

    Checked<void> mapping(Node& n, int depth) {
        n.kind = Kind::Mapping;
        open(n);
        std::unordered_map<std::string, int> lines;
        for (;;) {
            Event e;
            TRY(next(e));
            if (e.event.type == YAML_MAPPING_END_EVENT) {
                n.end = byte(e.event.end_mark);
                return {};
            }
            TRY_ASSIGN(NodePtr key, node(e, depth + 1));
            if (!key->real().is_scalar())
                return finding("yaml.syntax", file_, key->mark, "a key must be a plain text, not a list or mapping");
            if (key->kind == Kind::Alias) key = key->target;
            const auto [first, fresh] = lines.emplace(key->value, key->mark.line);
            if (!fresh && key->value != "<<")
                return finding("yaml.duplicate-key", file_, key->mark,
                               fmt::format("mapping key \"{}\" already defined at line {}", key->value, first->second),
                               "remove one of the two");
            Event v;
            TRY(next(v));
            TRY_ASSIGN(NodePtr value, node(v, depth + 1));
            n.entries.push_back({std::move(key), std::move(value)});
        }
    }

    yaml_parser_t parser_{};
    Offsets offsets_;
    const std::string& file_;
    std::size_t skipped_;
    std::size_t count_ = 0;
    std::map<std::string, NodePtr, std::less<>> anchors_;
};

bool is_empty_document(const Node& root) {
    return root.is_scalar() && root.style == Style::Plain && root.value.empty() && root.tag.empty();
}

Checked<std::vector<NodePtr>> parse(std::string_view text, const std::string& file, bool first_only) {
    if (text.size() > kMaxBytes) return finding("yaml.limit", file, {}, fmt::format("larger than {} bytes", kMaxBytes));
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
        return finding("yaml.syntax", file, {1, 1}, "the file is UTF-16; it must be UTF-8", "save it as UTF-8");
    // A byte order mark is no part of the first key; libyaml skips it only while it guesses the encoding.
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    const std::size_t skipped = text.starts_with(kMark) ? kMark.size() : 0;
    Reader reader(text.substr(skipped), file, skipped);
    TRY_ASSIGN(std::vector<NodePtr> found, reader.documents(first_only));
    std::erase_if(found, [](const NodePtr& n) { return is_empty_document(*n); });
    if (found.empty()) return finding("compose.empty", file, {}, "empty compose file");
    return found;
}

class Expander {
  public:
    explicit Expander(const std::string& file) : file_(file) {}

    Checked<NodePtr> copy(const Node& from, int depth) {
        const Node& n = from.real();
        if (depth > kMaxDepth || ++count_ > kMaxNodes)
            return finding("yaml.limit", file_, from.mark,
                           fmt::format("its aliases expand to more than {} nodes", kMaxNodes));
        auto to = std::make_shared<Node>();
        to->kind = n.kind;
        to->style = n.style;
        to->flow = n.flow;
        to->mark = n.mark;
        to->begin = n.begin;
        to->end = n.end;
        to->tag = n.tag;
        to->value = n.value;
        for (const NodePtr& item : n.items) {
            TRY_ASSIGN(NodePtr copied, copy(*item, depth + 1));
            to->items.push_back(std::move(copied));
        }
        if (n.is_mapping()) TRY(copy_entries(n, *to, depth));
        return to;
    }

  private:
    // Own keys first, then what `<<` brings and is not there yet; of several sources the first wins.
    Checked<void> copy_entries(const Node& n, Node& to, int depth) {
        if (depth > kMaxDepth || ++count_ > kMaxNodes)
            return finding("yaml.limit", file_, n.mark, fmt::format("it merges more than {} mappings", kMaxNodes));
        std::vector<const Node*> sources;
        for (const Entry& entry : n.entries) {
            if (entry.key->value == "<<" && entry.key->style == Style::Plain) {
                const Node& source = entry.value->real();
                if (source.is_mapping()) {
                    sources.push_back(&source);
                    continue;
                }
                if (!source.is_sequence()) return bad_merge(*entry.value);
                for (const NodePtr& item : source.items) {
                    if (!item->real().is_mapping()) return bad_merge(*item);
                    sources.push_back(&item->real());
                }
                continue;
            }
            if (to.own(entry.key->value) != nullptr) continue;
            TRY_ASSIGN(NodePtr value, copy(*entry.value, depth + 1));
            to.entries.push_back({entry.key, std::move(value)});
        }
        for (const Node* source : sources) TRY(copy_entries(*source, to, depth + 1));
        return {};
    }

    [[nodiscard]] std::unexpected<Finding> bad_merge(const Node& n) const {
        return finding("yaml.syntax", file_, n.mark, "`<<` merges mappings only");
    }

    const std::string& file_;
    std::size_t count_ = 0;
};

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words)
        if (text == word) return true;
    return false;
}

bool all_in(std::string_view text, std::string_view set) {
    return !text.empty() && text.find_first_not_of(set) == std::string_view::npos;
}

}  // namespace

const Node* Node::own(std::string_view key) const {
    if (kind == Kind::Alias) return target->own(key);
    for (const Entry& entry : entries)
        if (entry.key->value == key) return &entry.value->real();
    return nullptr;
}

namespace {

// `budget`: merges of merges could be visited 2^n times.
const Node* find_in(const Node& node, std::string_view key, int& budget) {
    if (const Node* here = node.own(key)) return here;
    if (--budget < 0) return nullptr;
    for (const Entry& entry : node.real().entries) {
        if (entry.key->value != "<<" || entry.key->style != Style::Plain) continue;
        const Node& source = entry.value->real();
        if (source.is_mapping()) {
            if (const Node* found = find_in(source, key, budget)) return found;
        }
        for (const NodePtr& item : source.items)
            if (item->real().is_mapping())
                if (const Node* found = find_in(item->real(), key, budget)) return found;
    }
    return nullptr;
}

}  // namespace

const Node* Node::find(std::string_view key) const {
    int budget = 1000;
    return find_in(*this, key, budget);
}

ScalarType type_of_plain(std::string_view text) {
    if (one_of(text, {"", "~", "null", "Null", "NULL"})) return ScalarType::Null;
    if (one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) return ScalarType::Bool;
    std::string_view digits = text;
    if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
    if (all_in(digits, "0123456789")) return ScalarType::Integer;
    if (text.starts_with("0x") && all_in(text.substr(2), "0123456789abcdefABCDEF")) return ScalarType::Integer;
    if (text.starts_with("0o") && all_in(text.substr(2), "01234567")) return ScalarType::Integer;
    if (one_of(digits, {".inf", ".Inf", ".INF"}) || one_of(text, {".nan", ".NaN", ".NAN"})) return ScalarType::Float;
    // [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
    std::size_t i = 0, before = 0, after = 0;
    while (i < digits.size() && digits[i] >= '0' && digits[i] <= '9') ++i, ++before;
    if (i < digits.size() && digits[i] == '.') {
        ++i;
        while (i < digits.size() && digits[i] >= '0' && digits[i] <= '9') ++i, ++after;
    }
    if (before + after == 0) return ScalarType::String;
    if (i < digits.size() && (digits[i] == 'e' || digits[i] == 'E')) {
        ++i;
        if (i < digits.size() && (digits[i] == '-' || digits[i] == '+')) ++i;
        if (!all_in(digits.substr(i), "0123456789")) return ScalarType::String;
        return ScalarType::Float;
    }
    return i == digits.size() ? ScalarType::Float : ScalarType::String;
}

bool is_null(const Node& node) {
    return node.is_scalar() && type_of(node) == ScalarType::Null;
}

ScalarType type_of(const Node& scalar) {
    if (scalar.style != Style::Plain || scalar.tag == "!" || scalar.tag == "tag:yaml.org,2002:str")
        return ScalarType::String;
    return type_of_plain(scalar.value);
}

bool plain_is_ambiguous(std::string_view text) {
    if (type_of_plain(text) != ScalarType::String) return true;
    // YAML 1.1: booleans by other words, sexagesimal and underscored numbers, dates; and the merge key.
    std::string word(text);
    for (char& c : word) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    if (one_of(word, {"y", "n", "yes", "no", "on", "off", "=", "<<"})) return true;
    return all_in(text, "0123456789_:.+-eExXabcdefABCDEFoOtTzZ ") && text.find_first_of("0123456789") != text.npos &&
           text.find_first_of("0123456789") <= 1;
}

std::string_view name_of_type(const Node& node) {
    const Node& n = node.real();
    if (n.is_sequence()) return "a list";
    if (n.is_mapping()) return "a mapping";
    switch (type_of(n)) {
        case ScalarType::Null:
            return "nothing";
        case ScalarType::Bool:
            return "a boolean";
        case ScalarType::Integer:
        case ScalarType::Float:
            return "a number";
        case ScalarType::String:
            return "a text";
    }
    return "a value";
}

Checked<NodePtr> parse_first(std::string_view text, const std::string& file) {
    TRY_ASSIGN(const std::vector<NodePtr> all, parse(text, file, true));
    return all.front();
}

Checked<std::vector<NodePtr>> parse_all(std::string_view text, const std::string& file) {
    return parse(text, file, false);
}

Checked<NodePtr> expand(const Node& root, const std::string& file) {
    return Expander(file).copy(root, 0);
}

NodePtr make_scalar(std::string value, Mark mark, Style style) {
    auto n = std::make_shared<Node>();
    n->value = std::move(value);
    n->mark = mark;
    n->style = style;
    return n;
}

}  // namespace talpa::topo::yaml
