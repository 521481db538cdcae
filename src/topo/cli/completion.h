// Completion scripts, manual pages and the reference page, all made of the command table.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topo/cli/command_table.h"

namespace talpa::topo {

/// For bash, zsh, fish or powershell; nothing for another shell. Targets are completed from the hosts of the SSH
/// configuration, arguments as parameters and services from the compose file here.
[[nodiscard]] std::optional<std::string> completion_script(std::string_view shell, bool descriptions);

/// roff, for `man -l -`. nullptr: the page of topo itself.
[[nodiscard]] std::string manual_page(const CommandRow* command);

/// Markdown: every command with its flags.
[[nodiscard]] std::string reference_page();

}  // namespace talpa::topo
