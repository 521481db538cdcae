// Shell completion made from the program's own option table, so that it cannot fall behind.
#pragma once

#include <string>
#include <string_view>

#include "base/host/error.h"

namespace CLI {
class App;
}

namespace talpa::cli {

/// A script for "bash", "zsh" or "fish" that completes the subcommands and options of `app`. An option's type name says
/// what its value is: FILE and names that begin with FILE or contain "." complete files, DIR folders, and a list in
/// braces
/// ({a,b}) its words. InvalidArgument for another shell.
[[nodiscard]] host::Result<std::string> completion_script(const CLI::App& app, std::string_view shell);

}  // namespace talpa::cli
