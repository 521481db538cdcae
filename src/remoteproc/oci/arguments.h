// The command line, read as the original's library reads it (GNU style: flags anywhere, also a command's flags before
// its name; "--" ends them), from one table that --help is printed from as well. (remoteproc-runtime, section 2)
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {

struct FlagInfo {
    std::string_view name;
    char letter = 0;
    std::string_view value;  ///< name of its value; empty: a switch
    std::string_view help;   ///< empty: not shown
};

enum class CommandGroup : std::uint8_t {
    Life,
    Tell,
    Refused,  ///< with an explanation, whatever its flags
    Ignored,  ///< success without action, whatever its flags
    Hidden,
};

struct CommandInfo {
    std::string_view name;
    std::string_view positional;  ///< "ID [SIGNAL]"
    std::size_t least, most;
    std::span<const FlagInfo> flags;
    std::string_view help;
    std::string_view example;
    CommandGroup group = CommandGroup::Life;
};

[[nodiscard]] std::span<const CommandInfo> all_commands();
[[nodiscard]] std::span<const FlagInfo> global_flags();

struct CommandLine {
    const CommandInfo* command = nullptr;
    std::vector<std::string> positional;
    std::map<std::string, std::string, std::less<>> flags;  ///< by long name; a switch has "true"

    [[nodiscard]] bool has(std::string_view flag) const { return flags.find(flag) != flags.end(); }
    [[nodiscard]] std::string value(std::string_view flag, std::string_view otherwise = {}) const;
};

/// Errors are usage errors with the original's wording.
[[nodiscard]] Result<CommandLine> parse_command_line(std::span<const std::string> arguments);

/// Help of the program, or of one command.
[[nodiscard]] std::string usage(const CommandInfo* command);

}  // namespace talpa::remoteproc
