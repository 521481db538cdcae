#include "link/runner_protocol.h"

#include "base/core/error.h"

namespace talpa::link {
namespace {

constexpr char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool equal_without_case(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (lower(a[i]) != lower(b[i])) return false;
    return true;
}

/// Cuts the next word off `rest`; empty at the end.
std::string_view next_word(std::string_view& rest) {
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
    std::size_t end = 0;
    while (end < rest.size() && rest[end] != ' ' && rest[end] != '\t') ++end;
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    return word;
}

constexpr std::string_view kCommandWords[] = {
#define X(name, word) word,
    TALPA_RUNNER_COMMANDS(X)
#undef X
};

}  // namespace

const char* runner_error_text(RunnerError error) {
    switch (error) {
        case RunnerError::None:
            return "none";
#define X(name, code, text) \
    case RunnerError::name: \
        return TALPA_SENTENCE(text);
            TALPA_RUNNER_ERRORS(X)
#undef X
    }
    return "unknown";
}

std::string_view runner_command_word(RunnerCommand command) {
    return kCommandWords[static_cast<std::size_t>(command)];
}

std::string_view line_tag(std::string_view line) {
    if (line.empty() || line.front() != '@') return {};
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || space < 2 || space > kMaxTag + 1) return {};
    return line.substr(1, space - 1);
}

bool is_reply_line(std::string_view line) {
    if (const auto tag = line_tag(line); !tag.empty()) line.remove_prefix(tag.size() + 2);
    static constexpr std::string_view kStarts[] = {"OK ",        "ERR ",         "TOP ",      "TIME ",  "PONG",
                                                   "INFO proto", "INFO pte_max", "OUT shape", "OUT i=", "CRC 0x"};
    for (const auto start : kStarts)
        if (line.starts_with(start)) {
            // Two of the commands take arguments that look like their replies.
            if (start == "OUT i=") return line.find(" v=") != std::string_view::npos;
            if (start == "CRC 0x") return line.find(' ', 4) == std::string_view::npos;
            return true;
        }
    // "STATUS state=…", "STATUS loading"; the command STATUS has no arguments.
    return line.starts_with("STATUS ") && line.size() > 7;
}

std::optional<std::string_view> CommandLine::find(std::string_view key) const {
    for (std::size_t i = 0; i < argument_count; ++i)
        if (equal_without_case(arguments[i].key, key)) return arguments[i].value;
    return std::nullopt;
}

std::expected<CommandLine, RunnerError> parse_command(std::string_view line) {
    CommandLine parsed;
    parsed.tag = line_tag(line);
    if (!parsed.tag.empty()) {
        line.remove_prefix(parsed.tag.size() + 2);
    } else if (!line.empty() && line.front() == '@') {
        return std::unexpected(RunnerError::BadArgument);
    }
    const std::string_view word = next_word(line);
    bool known = false;
    for (std::size_t i = 0; i < std::size(kCommandWords); ++i) {
        if (!equal_without_case(word, kCommandWords[i])) continue;
        parsed.command = static_cast<RunnerCommand>(i);
        known = true;
    }
    if (!known) return std::unexpected(RunnerError::UnknownCommand);
    for (std::string_view argument = next_word(line); !argument.empty(); argument = next_word(line)) {
        if (parsed.argument_count == CommandLine::kMaxArguments) return std::unexpected(RunnerError::BadArgument);
        const std::size_t equals = argument.find('=');
        parsed.arguments[parsed.argument_count++] =
            equals == std::string_view::npos
                ? CommandLine::Argument{{}, argument}
                : CommandLine::Argument{argument.substr(0, equals), argument.substr(equals + 1)};
    }
    return parsed;
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
    unsigned base = 10;
    if (text.size() > 2 && text[0] == '0' && lower(text[1]) == 'x') {
        base = 16;
        text.remove_prefix(2);
    }
    if (text.empty() || text.size() > 10) return std::nullopt;
    std::uint64_t value = 0;
    for (const char c : text) {
        const char l = lower(c);
        unsigned digit = 0;
        if (l >= '0' && l <= '9')
            digit = static_cast<unsigned>(l - '0');
        else if (base == 16 && l >= 'a' && l <= 'f')
            digit = static_cast<unsigned>(l - 'a') + 10;
        else
            return std::nullopt;
        value = value * base + digit;
    }
    if (value > UINT32_MAX) return std::nullopt;
    return static_cast<std::uint32_t>(value);
}

std::optional<std::size_t> parse_numbers(std::string_view text, std::span<std::uint32_t> out) {
    std::size_t count = 0;
    for (;;) {
        const std::size_t comma = text.find(',');
        const auto number = parse_number(text.substr(0, comma));
        if (!number || count == out.size()) return std::nullopt;
        out[count++] = *number;
        if (comma == std::string_view::npos) return count;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace talpa::link
