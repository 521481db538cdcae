// Small files of this program's own: folders made as needed, files replaced whole and read within a limit.
#pragma once

#include <string>
#include <string_view>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {

/// Makes a folder and its parents (mode 0755), as `mkdir -p`.
[[nodiscard]] Result<void> make_folders(const std::string& path);
/// Writes by "<path>.tmp" and rename; never through a symbolic link.
[[nodiscard]] Result<void> replace_file(const std::string& path, std::string_view text, unsigned mode);
/// The text of a regular file of at most `limit_bytes`, opened without following a link at its end.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path, std::size_t limit_bytes);

}  // namespace talpa::remoteproc
