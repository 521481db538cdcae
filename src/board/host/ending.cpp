#include "board/host/ending.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace talpa::board {
namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

sigset_t ending_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : kEndingSignals) ::sigaddset(&set, signal);
    return set;
}

volatile sig_atomic_t forwarded_to = 0;

}  // namespace

void hold_ending_signals(bool held) {
    const sigset_t set = ending_signals();
    ::sigprocmask(held ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
}

bool asked_to_end() {
    sigset_t pending;
    ::sigpending(&pending);
    for (const int signal : kEndingSignals)
        if (::sigismember(&pending, signal) == 1) return true;
    return false;
}

void forward_ending_signals(pid_t board) {
    forwarded_to = board;
    for (const int signal : kEndingSignals) ::signal(signal, [](int) { ::kill(forwarded_to, SIGTERM); });
}

EndRequest::EndRequest() {
    sigset_t set = ending_signals();
    ::sigaddset(&set, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);  // inherited by every thread that comes
    signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    event_ = ::eventfd(0, EFD_CLOEXEC);
}

EndRequest::~EndRequest() {
    ::close(signals_);
    ::close(event_);
}

void EndRequest::end() {
    const std::uint64_t one = 1;
    (void)!::write(event_, &one, sizeof one);
}

void EndRequest::wait() {
    for (;;) {
        pollfd fds[] = {{signals_, POLLIN, 0}, {event_, POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
        if (fds[1].revents != 0) return;
        signalfd_siginfo got{};
        while (::read(signals_, &got, sizeof got) == sizeof got)
            if (got.ssi_signo != SIGCHLD) return;
        while (::waitpid(-1, nullptr, WNOHANG) > 0) {
        }
    }
}

}  // namespace talpa::board
