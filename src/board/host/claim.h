// What a board takes before it comes up: its name, and with --root the folders below which it serves.
#pragma once

#include <filesystem>
#include <vector>

#include "base/host/error.h"
#include "board/host/options.h"
#include "board/host/state.h"

namespace talpa::board {

/// The state folder with its lock held, by this process and those it forks.
struct Claim {
    BoardRecord record;
    int lock = -1;
};

/// Takes the name. InvalidState: a board of that name is up or coming up; the remains of a dead one are cleaned up
/// first.
[[nodiscard]] host::Result<Claim> claim(const BoardOptions& options);

/// Makes a place below the user's folder for everything and adds to `made` what was not there before; nothing of the
/// user's may be in its way. Returns the folder's true path. What a failure made is taken away again.
[[nodiscard]] host::Result<std::filesystem::path> prepare_root(const std::filesystem::path& given, unsigned remoteprocs,
                                                               std::vector<std::filesystem::path>& made);

}  // namespace talpa::board
