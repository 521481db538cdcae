#include "link/host/runner_tty.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace talpa::link::host {
namespace {

constexpr int kLockPollMs = 2;
constexpr int kSendTimeoutMs = 1000;
constexpr std::size_t kMaxWaitingLines = 256;  // a firmware that only talks must not fill our memory

}  // namespace

bool RunnerTty::hung_up() const {
    pollfd p{tty_.fd.get(), POLLIN, 0};
    return ::poll(&p, 1, 0) < 0 || (p.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

bool RunnerTty::lock(const std::function<bool()>& give_up) {
    while (::flock(tty_.fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || give_up()) return false;
        ::poll(nullptr, 0, kLockPollMs);
    }
    locked_ = fresh_ = true;
    ::tcflush(tty_.fd.get(), TCIFLUSH);
    assembler_.clear();
    lines_.clear();
    return true;
}

void RunnerTty::unlock() {
    if (locked_) ::flock(tty_.fd.get(), LOCK_UN);
    locked_ = false;
}

bool RunnerTty::send(std::string_view line) {
    // Somebody may have left half a line: it would become the start of ours.
    std::string text = std::exchange(fresh_, false) ? "\n" : "";
    text += line;
    text += '\n';
    std::string_view rest = text;
    const auto until = Clock::now() + std::chrono::milliseconds(kSendTimeoutMs);
    while (!rest.empty()) {
        const ssize_t n = ::write(tty_.fd.get(), rest.data(), rest.size());
        if (n > 0) {
            rest.remove_prefix(static_cast<std::size_t>(n));
            continue;
        }
        // ENOMEM: the mainline driver found no free buffer in the ring. (section 4.2)
        if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ENOMEM) return false;
        if (Clock::now() >= until) return false;
        pollfd p{tty_.fd.get(), POLLOUT, 0};
        ::poll(&p, 1, kLockPollMs);
    }
    return true;
}

RunnerTty::Got RunnerTty::receive(std::string& line, Clock::time_point until) {
    for (;;) {
        if (!lines_.empty()) {
            line = std::move(lines_.front());
            lines_.pop_front();
            return Got::Line;
        }
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        if (left <= 0) return Got::Nothing;
        pollfd p{tty_.fd.get(), POLLIN, 0};
        const int ready = ::poll(&p, 1, static_cast<int>(std::min<long long>(left, 60'000)));
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        char buffer[1024];
        const ssize_t n = ::read(tty_.fd.get(), buffer, sizeof buffer);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) return Got::HungUp;  // end of file: the firmware was stopped
        assembler_.feed({buffer, static_cast<std::size_t>(n)}, [&](std::string_view text, bool too_long) {
            if (!too_long && lines_.size() < kMaxWaitingLines) lines_.emplace_back(text);
        });
    }
}

}  // namespace talpa::link::host
