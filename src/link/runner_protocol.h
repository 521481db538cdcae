// The runner's protocol "ETR/1": text lines over RPMsg, so that `echo RUN > /dev/ttyRPMSG0` works by hand. This file
// has what both sides need: commands, error codes, reply keywords, the assembly of lines from messages and the parsing
// of one. (imx93-remoteproc, sections 4.2 and 11)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/core/error.h"

namespace talpa::link {

inline constexpr std::string_view kProtocolName = "ETR/1";
inline constexpr std::size_t kMaxLine = 240;  ///< bytes of a line without its end
inline constexpr std::size_t kMaxTag = 8;     ///< of "@id "
inline constexpr std::size_t kRunQueueDepth = 4;

/// What a failed command is answered with: "ERR code text". X(name, code, text)
#define TALPA_RUNNER_ERRORS(X)                               \
    X(UnknownCommand, 1, "unknown command")                  \
    X(BadArgument, 2, "line too long or bad argument")       \
    X(Busy, 3, "busy")                                       \
    X(NoModel, 4, "no model")                                \
    X(CrcMismatch, 5, "crc mismatch")                        \
    X(Timeout, 6, "timeout")                                 \
    X(Aborted, 7, "aborted")                                 \
    X(BadAddress, 8, "out of range address")                 \
    X(UnsupportedOperator, 9, "unsupported operator")        \
    X(Memory, 10, "memory")                                  \
    X(NpuAbsent, 11, "NPU absent or unpowered")              \
    X(NpuBusError, 12, "NPU bus error")                      \
    X(NpuMismatch, 13, "NPU parse error or config mismatch") \
    X(InputMismatch, 14, "input shape mismatch")             \
    X(RuntimeError, 15, "runtime error")                     \
    X(InternalFault, 16, "internal fault")                   \
    X(Version, 17, "version")

enum class RunnerError : std::uint8_t {
    None = 0,
#define X(name, code, text) name = code,
    TALPA_RUNNER_ERRORS(X)
#undef X
};
[[nodiscard]] const char* runner_error_text(RunnerError error);

/// Commands. X(name, word)
#define TALPA_RUNNER_COMMANDS(X) \
    X(Ping, "PING")              \
    X(Info, "INFO")              \
    X(Status, "STATUS")          \
    X(Run, "RUN")                \
    X(Load, "LOAD")              \
    X(Crc, "CRC")                \
    X(Out, "OUT")                \
    X(Abort, "ABORT")            \
    X(Level, "LEVEL")

enum class RunnerCommand : std::uint8_t {
#define X(name, word) name,
    TALPA_RUNNER_COMMANDS(X)
#undef X
};
[[nodiscard]] std::string_view runner_command_word(RunnerCommand command);

/// Is this line one of the runner's own replies? A tty with ECHO on sends them back to the runner, which must not
/// answer.
[[nodiscard]] bool is_reply_line(std::string_view line);

/// One parsed command line. Views point into the line.
struct CommandLine {
    struct Argument {
        std::string_view key;  ///< empty for a positional argument
        std::string_view value;
    };
    static constexpr std::size_t kMaxArguments = 12;

    std::string_view tag;  ///< of "@id ", without the @; empty if there is none
    RunnerCommand command = RunnerCommand::Ping;
    std::array<Argument, kMaxArguments> arguments{};
    std::size_t argument_count = 0;

    /// The value of `key` (compared without case), or nothing.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const;
};

/// The tag at the start of any line ("@id "), whatever follows; empty if there is none or it is too long.
[[nodiscard]] std::string_view line_tag(std::string_view line);

/// Errors: UnknownCommand, BadArgument (more than kMaxArguments, a tag that is too long). The bare code, for that is
/// what the answer's line begins with.
[[nodiscard]] std::expected<CommandLine, RunnerError> parse_command(std::string_view line);

/// A decimal or 0x number that fits 32 bits; nothing else.
[[nodiscard]] std::optional<std::uint32_t> parse_number(std::string_view text);
/// "a" or "a,b": up to `out.size()` numbers; the count, or nothing if the text is malformed or has more.
[[nodiscard]] std::optional<std::size_t> parse_numbers(std::string_view text, std::span<std::uint32_t> out);

/// Puts lines together from messages, which need not end where lines end. Ends are CR, LF, CRLF; empty lines are
/// dropped; the 12-byte greeting that NXP's tty driver sends at probe is swallowed.
class LineAssembler {
  public:
    /// Feeds one message and hands each complete line to `sink(std::string_view line, bool too_long)`. A line that is
    /// too long is handed over once, cut, with `too_long` set, when its end arrives.
    template <typename Sink>
    void feed(std::string_view message, Sink&& sink) {
        feed(message, sink, [] { return true; });
    }
    /// The same, asking `ready()` before each line is handed over. Where it says no, feeding ends there; the bytes
    /// taken are returned, and the rest of the message is to be fed later.
    template <typename Sink, typename Ready>
    std::size_t feed(std::string_view message, Sink&& sink, Ready&& ready) {
        if (message == kGreeting) {
            clear();
            return message.size();
        }
        for (std::size_t i = 0; i < message.size(); ++i) {
            const char c = message[i];
            if (c == '\r' || c == '\n') {
                if (used_ != 0 || too_long_) {
                    if (!ready()) return i;
                    sink(std::string_view(line_.data(), used_), too_long_);
                }
                clear();
            } else if (used_ < line_.size()) {
                line_[used_++] = c;
            } else {
                too_long_ = true;
            }
        }
        return message.size();
    }
    void clear() {
        used_ = 0;
        too_long_ = false;
    }

  private:
    static constexpr std::string_view kGreeting = "hello world!";
    std::array<char, kMaxLine> line_{};
    std::size_t used_ = 0;
    bool too_long_ = false;
};

}  // namespace talpa::link
