// Other programs, run: output captured or passed on, time limits, interruption. Children that are captured get a
// process group of their own, so that a time limit ends them with all that they started; children on the terminal do
// not, so that they may ask questions there.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/host/error.h"

namespace talpa::topo {

using Milliseconds = std::chrono::milliseconds;

struct Command {
    std::vector<std::string> argv;                                   ///< argv[0] is looked up in PATH
    std::vector<std::pair<std::string, std::string>> environment{};  ///< on top of ours
    std::filesystem::path folder{};
    std::string input{};
    Milliseconds timeout{0};        ///< 0: none
    bool input_stays_open = false;  ///< behind `input`, until its output ends
    /// Says of a captured child whether what it was to do has not begun; it is then run again, a few times, with
    /// pauses.
    bool (*not_begun)(const struct Outcome&) = nullptr;
};

struct Outcome {
    int status = -1;  ///< exit status; 128 + signal if a signal ended it
    bool timed_out = false;
    bool cut = false;  ///< more output than the limit: the child was ended
    std::string out, err;

    [[nodiscard]] bool ok() const { return status == 0 && !timed_out && !cut; }
};

inline constexpr std::size_t kMaxCaptured = 16 << 20;

/// The first executable of that name in PATH (a name with a slash is itself).
[[nodiscard]] std::optional<std::filesystem::path> find_program(const std::string& name);

/// Runs it with standard input from `input` and both outputs captured. Errors: the program cannot be started, or we
/// were interrupted (see interrupted()).
[[nodiscard]] host::Result<Outcome> capture(const Command& command, std::size_t limit_bytes = kMaxCaptured);

/// Output goes where `stream` says, as it comes.
enum class Output { Inherit, ErrorsToOutput, ErrorsOnly };
[[nodiscard]] host::Result<Outcome> pass_through(const Command& command, Output output = Output::Inherit);

/// Runs it with its output given line by line to `line` (both streams). With `input_stays_open` its standard input ends
/// when we do.
[[nodiscard]] host::Result<Outcome> stream_lines(const Command& command,
                                                 const std::function<void(std::string_view)>& line);

/// producer | consumer, with the bytes counted on their way. `progress` is called with the bytes so far, several times
/// a second. The outcomes hold the standard error of each and the consumer's output.
struct Piped {
    Outcome producer, consumer;
    std::uint64_t bytes = 0;
};
[[nodiscard]] host::Result<Piped> pipe(const Command& producer, const Command& consumer,
                                       const std::function<void(std::uint64_t)>& progress = {});

/// Runs it with `bytes` on its standard input, its outputs captured. `sent` is called with the bytes so far.
[[nodiscard]] host::Result<Outcome> feed(const Command& command, std::string_view bytes,
                                         const std::function<void(std::uint64_t)>& sent = {});

/// From now on SIGINT, SIGTERM and SIGHUP only set a flag; whatever runs is ended in order. SIGPIPE is ignored.
void handle_interrupts();
[[nodiscard]] bool interrupted();
/// While one lives, an interrupt waits: for undoing what had been begun. A second interrupt ends the wait.
class InterruptShield {
  public:
    InterruptShield();
    ~InterruptShield();
    InterruptShield(const InterruptShield&) = delete;
    InterruptShield& operator=(const InterruptShield&) = delete;
};
/// The error that everything returns after an interrupt: "interrupted".
[[nodiscard]] host::Error interruption();

}  // namespace talpa::topo
