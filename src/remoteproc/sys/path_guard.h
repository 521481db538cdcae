// Paths of strangers below a folder of ours: no "..", absolute link or magic link leads out. openat2(RESOLVE_IN_ROOT)
// where the kernel has it (5.6), else the same walk by hand.
#pragma once

#include <string_view>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {

enum class Walk : std::uint8_t {
    Kernel,  ///< openat2, and by hand where that is missing
    ByHand,
};

/// Opens `path` as a process would see it whose root folder is `root_fd`. Returns an errno on failure (ELOOP: too many
/// links, or a magic link).
[[nodiscard]] std::expected<Fd, int> open_in_root(int root_fd, std::string_view path, int flags,
                                                  Walk walk = Walk::Kernel);

/// `path` with ".", ".." and double slashes resolved by their letters, always below "/"; nothing if ".." climbs above.
[[nodiscard]] std::expected<std::string, int> clean_below_root(std::string_view path);

/// Lexical cleaning of any path ("a/../b" is "b", "" is ".").
[[nodiscard]] std::string clean_path(std::string_view path);

/// Absolute form of a path: joined to the working directory and cleaned.
[[nodiscard]] std::string absolute_path(std::string_view path);

}  // namespace talpa::remoteproc
