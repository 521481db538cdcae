// What passes between the board's parts, for `talpa board trace`: costs one load where nobody listens.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace talpa::board {

enum class TraceSource : std::uint8_t { Rpmsg, Mu, Npu, Sysfs };
inline constexpr std::string_view kTraceSources[] = {"rpmsg", "mu", "npu", "sysfs"};

class Tracer {
  public:
    /// One listener's lines; the oldest are dropped when it does not keep up.
    class Listener {
      public:
        /// The next line, its newline included; nothing when none came in that time.
        [[nodiscard]] std::optional<std::string> next(std::chrono::milliseconds at_most);

      private:
        friend class Tracer;
        static constexpr std::size_t kMostLines = 65536;
        unsigned sources_ = 0;
        std::mutex mutex_;
        std::condition_variable came_;
        std::deque<std::string> lines_;
        std::size_t dropped_ = 0;
    };

    /// `sources`: bit n for TraceSource n. Listening ends when the listener is gone.
    [[nodiscard]] std::shared_ptr<Listener> listen(unsigned sources);

    [[nodiscard]] bool wants(TraceSource source) const {
        return (wanted_.load(std::memory_order_relaxed) & (1u << static_cast<unsigned>(source))) != 0;
    }
    /// Any thread.
    template <typename... Args>
    void line(TraceSource source, fmt::format_string<Args...> format, Args&&... args) {
        if (wants(source)) put(source, fmt::format(format, std::forward<Args>(args)...));
    }

  private:
    void put(TraceSource source, std::string_view text);

    std::atomic<unsigned> wanted_{0};
    std::mutex mutex_;
    std::vector<std::weak_ptr<Listener>> listeners_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Bytes as a reader of traces likes them: quoted, with \n, \xNN; at most `most` of them.
[[nodiscard]] std::string show_bytes(std::string_view bytes, std::size_t most = 80);

}  // namespace talpa::board
