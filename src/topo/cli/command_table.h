// The command line as a table (topo spec, section 2): the parser, the help, the man pages, the shell completion and the
// reference page come from it.
#pragma once

#include <span>
#include <string_view>

namespace talpa::topo {

enum class ValueKind { None, Text, Target, File, Folder, Duration, Words };

struct FlagRow {
    std::string_view names;  ///< "-t,--target"
    ValueKind value = ValueKind::None;
    std::string_view value_name{};  ///< "TARGET"; of Words: "ed25519|rsa"
    std::string_view help{};
    bool repeatable = false;
    bool hidden = false;

    [[nodiscard]] std::string_view long_name() const { return names.substr(names.find("--")); }
    /// "-t", or empty.
    [[nodiscard]] std::string_view short_name() const { return names.starts_with("--") ? "" : names.substr(0, 2); }
};

struct CommandRow {
    std::string_view name, alias, arguments, help;
    int least = 0, most = 0;  ///< how many arguments
    std::span<const FlagRow> flags{};
    std::string_view examples{};
    bool hidden = false;
};

[[nodiscard]] std::span<const CommandRow> command_table();
[[nodiscard]] std::span<const FlagRow> global_flags();
[[nodiscard]] const CommandRow* find_command(std::string_view name);

}  // namespace talpa::topo
