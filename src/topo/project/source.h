// Where projects come from: git and folders (topo spec, section 7.1).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::topo {

struct Source {
    enum class Kind { Git, Folder } kind = Kind::Git;
    std::string url;  ///< of git, without the ref; the path of a folder
    std::string ref;  ///< behind the last '#'; may be empty
};

[[nodiscard]] host::Result<Source> parse_source(const std::string& text);

/// The last path component without ".git".
[[nodiscard]] std::string default_folder(const Source& source);

/// Copies into `destination`, which must not exist. On failure nothing of it stays. git's own output goes to our
/// streams.
[[nodiscard]] host::Result<void> copy_source(const Source& source, const std::filesystem::path& destination);

/// What a stranger's project could use to reach outside of its folder: symbolic links that leave it, submodules (never
/// fetched) with addresses that run programs or paths that leave it, a .git that is elsewhere. One sentence each, for
/// warnings; the texts in them are the stranger's.
[[nodiscard]] std::vector<std::string> suspicious_parts(const std::filesystem::path& folder);

}  // namespace talpa::topo
