// What a program shows a person at a terminal, and only there: colour, and progress of what takes longer than a second.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace talpa::host {

/// Colours for a stream, or none: not a terminal, NO_COLOR set and not empty (no-color.org), or TERM=dumb.
class Style {
  public:
    explicit Style(std::FILE* stream);
    [[nodiscard]] bool colours() const { return colours_; }
    [[nodiscard]] std::string bold(std::string_view text) const { return wrapped("1", text); }
    [[nodiscard]] std::string dim(std::string_view text) const { return wrapped("2", text); }
    [[nodiscard]] std::string red(std::string_view text) const { return wrapped("31", text); }
    [[nodiscard]] std::string green(std::string_view text) const { return wrapped("32", text); }

  private:
    [[nodiscard]] std::string wrapped(const char* code, std::string_view text) const;
    bool colours_ = false;
};

/// Writes to standard error and does not mind when that is closed or full.
void say(const std::string& text);

/// One line on standard error, rewritten as work goes on; it appears after a second and goes when the object does.
/// Silent where standard error is no terminal.
class Progress {
  public:
    /// `total` 0: how much there is to do is not known.
    Progress(std::string what, std::size_t total);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void done(std::size_t so_far);
    /// Takes the line away, so that something else can be printed.
    void clear();

  private:
    using Clock = std::chrono::steady_clock;
    std::string what_;
    std::size_t total_;
    bool terminal_;
    bool shown_ = false;
    Clock::time_point started_, last_shown_;
};

}  // namespace talpa::host
