// The board's own sshd: a key made for it, a configuration of its own, and what a user pastes into ~/.ssh/config.
#pragma once

#include <string>

#include "base/host/error.h"
#include "board/host/state.h"

namespace talpa::board {

inline constexpr std::uint16_t kSshPort = 22;  ///< in the board

/// Is there an sshd to run?
[[nodiscard]] bool has_sshd();

/// Before the namespaces: makes keys and configuration in the board's folders.
[[nodiscard]] host::Result<void> prepare_ssh(const BoardRecord& record);
/// Before the namespaces, too: where sshd writes what it says, sshd.log in the board's state folder.
[[nodiscard]] int open_sshd_log(const BoardRecord& record);
/// In the board: starts sshd and waits until it listens. Closes nothing.
[[nodiscard]] host::Result<void> start_sshd(const BoardRecord& record, int log);

/// A Host block. With a forwarded port it names that, else it goes through `talpa board connect`.
[[nodiscard]] std::string ssh_config(const BoardRecord& record, const std::string& talpa);

}  // namespace talpa::board
