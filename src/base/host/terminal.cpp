#include "base/host/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace talpa::host {
namespace {

constexpr auto kSilence = std::chrono::seconds(1);
constexpr auto kRefresh = std::chrono::milliseconds(100);

bool plain_terminal() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return (no_color != nullptr && *no_color != '\0') || (term != nullptr && std::string_view(term) == "dumb");
}

}  // namespace

Style::Style(std::FILE* stream) : colours_(::isatty(::fileno(stream)) != 0 && !plain_terminal()) {}

std::string Style::wrapped(const char* code, std::string_view text) const {
    return colours_ ? fmt::format("\x1B[{}m{}\x1B[0m", code, text) : std::string(text);
}

void say(const std::string& text) {
    // fmt::print throws when the write fails, and there is nobody left to tell.
    static_cast<void>(std::fputs(text.c_str(), stderr));
}

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)),
      total_(total),
      terminal_(::isatty(STDERR_FILENO) != 0),
      started_(Clock::now()),
      last_shown_(started_) {}

void Progress::done(std::size_t so_far) {
    if (!terminal_) return;
    if (so_far == total_) return clear();
    const auto now = Clock::now();
    if (now - started_ < kSilence || (shown_ && now - last_shown_ < kRefresh)) return;
    say(fmt::format("\r\x1B[K{} {}{}", what_, so_far, total_ == 0 ? "" : fmt::format(" of {}", total_)));
    std::fflush(stderr);
    shown_ = true;
    last_shown_ = now;
}

void Progress::clear() {
    if (!shown_) return;
    say("\r\x1B[K");
    std::fflush(stderr);
    shown_ = false;
}

}  // namespace talpa::host
