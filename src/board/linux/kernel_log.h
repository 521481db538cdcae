// The board's kernel log: what dmesg would show, kept for `talpa board logs` and for tests.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace talpa::board {

class KernelLog {
  public:
    static constexpr std::size_t kMaxLines = 512;  ///< the log file has all of them

    template <typename... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        append(fmt::format(format, std::forward<Args>(args)...));
    }
    [[nodiscard]] std::vector<std::string> lines() const {
        const std::lock_guard lock(mutex_);
        return {lines_.begin(), lines_.end()};
    }
    /// Does any line contain `text`?
    [[nodiscard]] bool contains(std::string_view text) const {
        const std::lock_guard lock(mutex_);
        for (const auto& l : lines_)
            if (l.find(text) != std::string::npos) return true;
        return false;
    }

    /// Called with each new line, one at a time. Before the first line.
    std::function<void(const std::string& line)> sink;

  private:
    void append(std::string text) {
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
        const std::lock_guard lock(mutex_);
        lines_.push_back(fmt::format("[{:12.6f}] {}", seconds, text));
        if (sink) sink(lines_.back());
        if (lines_.size() > kMaxLines) lines_.pop_front();
    }

    mutable std::mutex mutex_;
    std::deque<std::string> lines_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace talpa::board
