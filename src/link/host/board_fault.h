// What can go wrong between Linux and the M33's runner, by kinds with stable names: `talpa classify` prints them, the
// web application's problem documents carry them, and both have the same advice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "link/runner_protocol.h"

namespace talpa::link::host {

/// X(name, stable code, HTTP status that fits, sentence)
#define TALPA_BOARD_FAULTS(X)                                                                                   \
    X(MemoryMissing, "memory-missing", 503, "there is no /dev/mem")                                             \
    X(MemoryDenied, "memory-denied", 503, "the board's memory may not be opened or mapped")                     \
    X(NoRemoteproc, "no-remoteproc", 503, "Linux knows no remote processor of that name")                       \
    X(FirmwareNotRunning, "firmware-not-running", 503, "the Cortex-M33 does not run its firmware")              \
    X(NoTty, "no-tty", 503, "there is no RPMsg tty that could be opened")                                       \
    X(FirmwareStopped, "firmware-stopped", 503, "the firmware was stopped or restarted before it had answered") \
    X(FirmwareFault, "firmware-fault", 502, "the firmware ended in a processor fault")                          \
    X(NoAnswer, "no-answer", 504, "the firmware does not answer")                                               \
    X(Runner, "runner-error", 502, "the runner answered with an error")                                         \
    X(BadReply, "bad-reply", 502, "the runner's answer is not understood")                                      \
    X(Busy, "board-busy", 503, "another program is using the board")                                            \
    X(DoesNotFit, "does-not-fit", 422, "program and inputs do not fit the reserved memory")                     \
    X(Cancelled, "cancelled", 499, "nobody waits for the answer any more")                                      \
    X(Other, "internal", 500, "something else")

enum class BoardFault : std::uint8_t {
#define X(name, code, status, text) name,
    TALPA_BOARD_FAULTS(X)
#undef X
};
/// The stable code ("no-answer").
[[nodiscard]] std::string_view board_fault_code(BoardFault fault);
[[nodiscard]] int board_fault_http_status(BoardFault fault);
[[nodiscard]] std::string_view board_fault_text(BoardFault fault);

/// An error of the board: what kind, the runner's own code where it answered one, the text for a person, and what is
/// known about the state of the board (lines).
struct BoardError {
    BoardFault fault = BoardFault::Other;
    RunnerError runner = RunnerError::None;
    talpa::host::Error error;
    std::vector<std::string> known;

    BoardError() = default;
    BoardError(BoardFault kind, talpa::host::Error e) : fault(kind), error(std::move(e)) {}
    BoardError(talpa::host::Error e) : error(std::move(e)) {}  // NOLINT(google-explicit-constructor): for TRY

    /// As host::Error, with what is known in the hint.
    [[nodiscard]] talpa::host::Error flat() const;
};

template <typename T>
using BoardResult = std::expected<T, BoardError>;

/// `return board_failure(BoardFault::NoTty, "no {}*", path);`
template <typename... Args>
[[nodiscard]] std::unexpected<BoardError> board_failure(BoardFault fault, fmt::format_string<Args...> format,
                                                        Args&&... args) {
    const ErrorCode code = fault == BoardFault::NoAnswer ? ErrorCode::Timeout : ErrorCode::AccessFailed;
    return std::unexpected(
        BoardError(fault, talpa::host::Error(code, fmt::format(format, std::forward<Args>(args)...))));
}

}  // namespace talpa::link::host
