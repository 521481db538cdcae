// One thread, one epoll: everything in the shim is a file descriptor that becomes ready or a time that comes. No
// threads, so no stacks, no locks and no wait that steals another's child.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc::shim {

class Loop {
  public:
    using Ready = std::function<void(std::uint32_t events)>;
    using Clock = std::chrono::steady_clock;

    Loop();
    /// Calls `ready` whenever one of `events` (EPOLLIN, EPOLLOUT) holds. The descriptor stays the caller's.
    void watch(int fd, std::uint32_t events, Ready ready);
    void change(int fd, std::uint32_t events);
    void unwatch(int fd);
    void after(int milliseconds, std::function<void()> then);
    void run();
    void quit() { running_ = false; }

    std::function<void()> on_quiet;  ///< called once when nothing has happened for two seconds

  private:
    Fd epoll_;
    std::map<int, std::shared_ptr<Ready>> watched_;
    std::multimap<Clock::time_point, std::function<void()>> timers_;
    bool running_ = true, busy_ = true;
};

}  // namespace talpa::remoteproc::shim
