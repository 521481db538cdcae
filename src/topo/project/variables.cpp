#include "topo/project/variables.h"

#include <cstdlib>

#include "base/host/file.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr int kMaxNesting = 20;
constexpr std::size_t kMaxResult = 1 << 20;

bool name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool name_part(char c) {
    return name_start(c) || (c >= '0' && c <= '9');
}

std::string_view take_name(std::string_view& text) {
    std::size_t n = 0;
    if (!text.empty() && name_start(text[0]))
        while (n < text.size() && name_part(text[n])) ++n;
    const std::string_view name = text.substr(0, n);
    text.remove_prefix(n);
    return name;
}

// Where the brace that closes the one before `text` stands.
std::size_t closing_brace(std::string_view text) {
    int open = 1;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '{')
            ++open, ++i;
        else if (text[i] == '}' && --open == 0)
            return i;
    }
    return std::string_view::npos;
}

class Interpolation {
  public:
    Interpolation(const Variables& variables, const std::string& file, Mark mark)
        : variables_(variables), file_(file), mark_(mark) {}

    Checked<std::string> run(std::string_view text, int depth) {
        if (depth > kMaxNesting) return bad("variables are nested too deeply");
        std::string out;
        while (!text.empty()) {
            const std::size_t at = text.find('$');
            out += text.substr(0, at);
            if (at == std::string_view::npos) break;
            text.remove_prefix(at + 1);
            if (text.starts_with('$')) {
                out += '$';
                text.remove_prefix(1);
            } else if (text.starts_with('{')) {
                text.remove_prefix(1);
                const std::size_t end = closing_brace(text);
                if (end == std::string_view::npos) return bad(fmt::format("\"${{{}\" has no closing brace", text));
                TRY_ASSIGN(const std::string value, braced(text.substr(0, end), depth));
                out += value;
                text.remove_prefix(end + 1);
            } else {
                const std::string_view name = take_name(text);
                if (name.empty()) return bad(fmt::format("\"${}\" is no variable", text.substr(0, 20)));
                out += plain(std::string(name));
            }
            if (out.size() > kMaxResult) return bad("the result is too long");
        }
        return out;
    }

  private:
    std::string plain(const std::string& name) {
        const auto value = variables_.find(name);
        if (!value) variables_.note_missing(name);
        return value.value_or("");
    }

    Checked<std::string> braced(std::string_view inside, int depth) {
        std::string_view rest = inside;
        const std::string name(take_name(rest));
        if (name.empty()) return bad(fmt::format("\"${{{}}}\" is no variable", inside));
        if (rest.empty()) return plain(name);
        const bool colon = rest.starts_with(':');
        if (colon) rest.remove_prefix(1);
        const char what = rest.empty() ? '\0' : rest[0];
        if (what != '-' && what != '?' && what != '+')
            return bad(fmt::format("\"${{{}}}\": after the name come :-, -, :?, ?, :+ or +", inside));
        rest.remove_prefix(1);
        const auto value = variables_.find(name);
        const bool have = value && !(colon && value->empty());
        if (what == '+') return have ? run(rest, depth + 1) : Checked<std::string>("");
        if (have) return *value;
        if (what == '-') return run(rest, depth + 1);
        TRY_ASSIGN(const std::string message, run(rest, depth + 1));
        return finding(
            "compose.interpolation", file_, mark_,
            fmt::format("required variable {} is missing a value{}{}", name, message.empty() ? "" : ": ", message),
            fmt::format("set it: {}=VALUE, in the environment or in the project's .env", name));
    }

    [[nodiscard]] std::unexpected<Finding> bad(const std::string& what) const {
        return finding("compose.interpolation", file_, mark_, "invalid interpolation format: " + what,
                       "a dollar sign that is meant as such is written $$");
    }

    const Variables& variables_;
    const std::string& file_;
    Mark mark_;
};

// The text of a double-quoted value up to its quote; backslash escapes as in a shell, plus \n, \r, \t.
bool take_double_quoted(std::string_view& text, std::string& out) {
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (text[i] == '"') {
            text.remove_prefix(i + 1);
            return true;
        }
        if (text[i] == '\\' && i + 1 < text.size()) {
            ++i;
            constexpr std::string_view kFrom = "nrt", kTo = "\n\r\t";
            const std::size_t known = kFrom.find(text[i]);
            if (known != std::string_view::npos)
                out += kTo[known];
            else if (text[i] == '$')
                out += "$$";
            else
                out += text[i];
        } else {
            out += text[i];
        }
    }
    return false;
}

}  // namespace

std::optional<std::string> Variables::find(const std::string& name) const {
    if (const auto it = over_.find(name); it != over_.end()) return it->second;
    if (with_environment_)
        if (const char* value = std::getenv(name.c_str())) return std::string(value);
    if (const auto it = under_.find(name); it != under_.end()) return it->second;
    return std::nullopt;
}

Checked<std::string> interpolate(std::string_view text, const Variables& variables, const std::string& file,
                                 Mark mark) {
    if (text.find('$') == std::string_view::npos) return std::string(text);
    return Interpolation(variables, file, mark).run(text, 0);
}

Checked<std::vector<std::pair<std::string, std::string>>> parse_env_file(std::string_view text, const std::string& file,
                                                                         const Variables& variables) {
    std::vector<std::pair<std::string, std::string>> found;
    Variables seen = variables;
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    int line = 0;
    while (!text.empty()) {
        ++line;
        const auto bad = [&](const char* what) { return finding("env.syntax", file, {line, 1}, what); };
        const std::size_t end = text.find('\n');
        std::string_view row = trimmed(text.substr(0, end));
        if (row.empty() || row[0] == '#') {
            text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
            continue;
        }
        if (row.starts_with("export ")) row = trimmed(row.substr(7));
        const std::size_t equals = row.find('=');
        const std::string name(trimmed(row.substr(0, equals)));
        if (name.empty() || name.find_first_of(" \t'\"$") != std::string::npos) return bad("expected NAME=value");
        if (equals == std::string_view::npos) {  // NAME alone: from the environment, if it is there
            if (const auto value = variables.find(name)) found.emplace_back(name, *value);
            text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
            continue;
        }
        // A quoted value may go over several lines: find its place in the whole text.
        std::string_view value = text.substr(static_cast<std::size_t>(row.data() - text.data()) + equals + 1);
        while (!value.empty() && (value[0] == ' ' || value[0] == '\t')) value.remove_prefix(1);
        std::string result;
        if (value.starts_with('\'')) {
            const std::size_t quote = value.find('\'', 1);
            if (quote == std::string_view::npos) return bad("a quote is not closed");
            result = value.substr(1, quote - 1);
            value.remove_prefix(quote + 1);
        } else if (value.starts_with('"')) {
            std::string raw;
            if (!take_double_quoted(value, raw)) return bad("a quote is not closed");
            TRY_ASSIGN(result, interpolate(raw, seen, file, {line, 1}));
        } else {
            std::string_view raw = value.substr(0, value.find('\n'));
            for (std::size_t i = 1; i < raw.size(); ++i)
                if (raw[i] == '#' && (raw[i - 1] == ' ' || raw[i - 1] == '\t')) raw = raw.substr(0, i);
            if (raw.starts_with('#')) raw = {};
            TRY_ASSIGN(result, interpolate(trimmed(raw), seen, file, {line, 1}));
            value = value.find('\n') == std::string_view::npos ? std::string_view() : value.substr(value.find('\n'));
        }
        for (const char c : text.substr(0, text.size() - value.size())) line += c == '\n';
        seen.set_default(name, result);
        found.emplace_back(name, std::move(result));
        const std::size_t rest = value.find('\n');
        text = rest == std::string_view::npos ? std::string_view() : value.substr(rest + 1);
    }
    return found;
}

Checked<void> load_dotenv(const std::filesystem::path& folder, Variables& variables) {
    const std::filesystem::path path = folder / ".env";
    std::error_code none;
    if (!std::filesystem::is_regular_file(path, none)) return {};
    const auto text = host::read_text(path, 1 << 20);
    if (!text) return finding("env.syntax", path.string(), {}, text.error().message);
    TRY_ASSIGN(const auto pairs, parse_env_file(*text, path.string(), variables));
    for (const auto& [name, value] : pairs) variables.set_default(name, value);
    return {};
}

}  // namespace talpa::topo
