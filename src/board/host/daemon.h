// The life of a board's process: started in the background, ready when its files can be used, ended by a request, a
// signal, or kill -9; whatever the end, `take_down` leaves nothing behind.
#pragma once

#include <functional>

#include "base/host/error.h"
#include "board/host/options.h"
#include "board/host/state.h"

namespace talpa::board {

/// Starts a board in a process of its own and waits until it is up. Call it before any thread exists. InvalidState when
/// a board of that name is up; what a dead one of that name left is cleaned up first. SIGINT, SIGTERM and
/// SIGHUP end the board and the caller until it is up; after that they are held back for the caller's short rest.
[[nodiscard]] host::Result<BoardRecord> bring_up(const BoardOptions& options);

using Ready = std::function<void(const BoardRecord&)>;

/// The same, waiting for its end: calls `ready` (in the process that keeps the board) when it is up, returns when it
/// was asked to end (SIGINT, SIGTERM, board down).
[[nodiscard]] host::Result<void> run_in_foreground(const BoardOptions& options, const Ready& ready);

/// Ends the board if it lives (asked first, then by SIGKILL) and removes what is left of it. False: there was nothing.
[[nodiscard]] host::Result<bool> take_down(const BoardRecord& record);

}  // namespace talpa::board
