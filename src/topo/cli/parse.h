// From words to a command with its flags. CLI11 does the splitting; what is there comes from the command table.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topo/cli/command_table.h"
#include "topo/system/log.h"
#include "topo/system/process.h"

namespace talpa::topo {

struct Invocation {
    const CommandRow* command = nullptr;  ///< nullptr: none was given
    std::vector<std::string> arguments;
    std::map<std::string, std::vector<std::string>, std::less<>>
        flags;  ///< by long name; switches hold "true" or "false"
    Logging logging;
    std::optional<std::string> answer;  ///< help or version: print it and end well
    bool version = false;               ///< which of them

    [[nodiscard]] bool given(std::string_view flag) const { return flags.contains(flag); }
    /// The last value, or nothing.
    [[nodiscard]] std::optional<std::string> value(std::string_view flag) const;
    [[nodiscard]] std::string text(std::string_view flag, std::string_view otherwise = {}) const;
    [[nodiscard]] std::vector<std::string> all(std::string_view flag) const;
    [[nodiscard]] bool on(std::string_view flag) const { return text(flag) == "true"; }
    /// A switch that an environment variable can give too; the flag wins (section 2.5).
    [[nodiscard]] bool on(std::string_view flag, const char* variable) const;
    [[nodiscard]] bool json() const { return logging.format == Format::Json; }
};

/// The error is a sentence for the user: wrong usage.
[[nodiscard]] std::expected<Invocation, std::string> parse_command_line(int argc, const char* const* argv);

/// What to type after wrong usage: the help of the command that was meant.
[[nodiscard]] std::string usage_hint(int argc, const char* const* argv);

/// Before anything else is known: is JSON wanted?
[[nodiscard]] bool wants_json(int argc, const char* const* argv);

/// The help of one command, or of all (nullptr).
[[nodiscard]] std::string help_text(const CommandRow* command);

[[nodiscard]] std::string version_text();

}  // namespace talpa::topo
