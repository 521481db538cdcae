// Shell completion, made of the command table: it cannot fall behind it.
#pragma once

#include <string>
#include <string_view>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {

/// A script for "bash", "zsh" or "fish" that completes commands, flags and their values, the containers that there are
/// and the machine's remote processors. InvalidArgument for another shell.
[[nodiscard]] Result<std::string> completion_script(std::string_view shell);

}  // namespace talpa::remoteproc
