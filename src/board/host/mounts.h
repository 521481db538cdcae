// mount(2) and its relatives with errors that say what was mounted where.
#pragma once

#include <filesystem>
#include <string>

#include "base/host/error.h"

namespace talpa::board {

[[nodiscard]] host::Result<void> mount_tmpfs(const std::filesystem::path& at, const std::string& options,
                                             unsigned long flags = 0);
/// Shows `from` at `at` as well, with what is mounted below it if `recursive`.
[[nodiscard]] host::Result<void> bind_mount(const std::filesystem::path& from, const std::filesystem::path& at,
                                            bool recursive = false);
/// An overlay at `at` over the folder `lower`: what is there stays visible, what is written goes to `upper`, a new
/// folder.
[[nodiscard]] host::Result<void> overlay(const std::filesystem::path& lower, const std::filesystem::path& at,
                                         const std::filesystem::path& upper);
/// Of a mount point and all mounts below it.
[[nodiscard]] host::Result<void> make_read_only(const std::filesystem::path& at);
[[nodiscard]] host::Result<void> mount_type(const char* type, const std::filesystem::path& at,
                                            const std::string& options, unsigned long flags);
/// Changes how mounts propagate, for the whole tree below `at`.
[[nodiscard]] host::Result<void> set_propagation(const std::filesystem::path& at, unsigned long kind);

[[nodiscard]] host::Result<void> make_folder(const std::filesystem::path& path, unsigned mode = 0755);

}  // namespace talpa::board
