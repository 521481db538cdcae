// The board as a place of its own: mount, pid, network, host-name and IPC namespaces in which programs see an i.MX 93
// at its real paths and may install things, while nothing of the user's machine changes. The board's process is the
// namespaces' first; when it ends, however it ends, everything in them ends. (topo, section 18.2)
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/host/error.h"
#include "board/host/board.h"
#include "board/host/state.h"

namespace talpa::board {

/// Where a board may keep files on a real disk: a folder that does not lie below any that the board covers. `made` gets
/// what was not there before.
[[nodiscard]] host::Result<std::filesystem::path> disk_folder(const std::string& name,
                                                              std::vector<std::filesystem::path>& made);

/// The next fork is the first process of a new pid namespace; for a user other than root in a user namespace, which
/// this process enters.
[[nodiscard]] host::Result<void> unshare_pids();

/// In that first process: enters the other namespaces, covers the system's folders and the homes (covers.h), replaces
/// /run, /lib/firmware, /root/.ssh, /dev, /proc; of `shared` programs see the user's own. Before threads.
[[nodiscard]] host::Result<BoardPlaces> build_file_system(const BoardRecord& record,
                                                          const std::vector<std::filesystem::path>& shared);

/// Once the tree of /sys is served: shows it at its real places, and opens the loopback interface.
[[nodiscard]] host::Result<void> show_board(const BoardPlaces& places, const std::string& name);

/// Runs a program in a board's namespaces, in the caller's folder where the board has it and at a
/// terminal of the board if the caller has one, and waits for it. Its exit
/// status as a shell counts (128 + signal). NotFound when it cannot be started.
[[nodiscard]] host::Result<int> run_in_board(const BoardRecord& record, const std::vector<std::string>& command);

/// Moves bytes between standard input and output and a port of the board, until both directions have ended.
[[nodiscard]] host::Result<void> connect_in_board(const BoardRecord& record, std::uint16_t port);

}  // namespace talpa::board
