#include "remoteproc/shim/loop.h"

#include <sys/epoll.h>

#include <algorithm>

namespace talpa::remoteproc::shim {

namespace {

constexpr int kQuietMs = 2000, kLongestWaitMs = 60000;

}  // namespace

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void Loop::watch(int fd, std::uint32_t events, Ready ready) {
    watched_[fd] = std::make_shared<Ready>(std::move(ready));
    epoll_event event{.events = events, .data = {.fd = fd}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

void Loop::change(int fd, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::unwatch(int fd) {
    watched_.erase(fd);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void Loop::after(int milliseconds, std::function<void()> then) {
    timers_.emplace(Clock::now() + std::chrono::milliseconds(milliseconds), std::move(then));
}

void Loop::run() {
    while (running_) {
        int timeout = busy_ ? kQuietMs : -1;
        if (!timers_.empty()) {
            const auto left =
                std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - Clock::now()).count();
            timeout = static_cast<int>(std::clamp<long long>(left, 0, busy_ ? kQuietMs : kLongestWaitMs));
        }
        epoll_event events[16];
        const int count = ::epoll_wait(epoll_.get(), events, 16, timeout);
        if (count == 0 && busy_ && timeout == kQuietMs) {
            busy_ = false;
            if (on_quiet) on_quiet();
        } else {
            busy_ = busy_ || count > 0;
        }
        for (int i = 0; i < count; ++i) {
            const auto found = watched_.find(events[i].data.fd);
            if (found == watched_.end()) continue;               // unwatched by one of the others of this round
            const std::shared_ptr<Ready> ready = found->second;  // it may unwatch itself
            (*ready)(events[i].events);
        }
        while (!timers_.empty() && timers_.begin()->first <= Clock::now()) {
            const auto then = std::move(timers_.begin()->second);
            timers_.erase(timers_.begin());
            busy_ = true;
            then();
        }
    }
}

}  // namespace talpa::remoteproc::shim
