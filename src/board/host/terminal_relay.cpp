#include "board/host/terminal_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace talpa::board {
namespace {

void copy_size(int to) {
    winsize size{};
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) ::ioctl(to, TIOCSWINSZ, &size);
}

/// False when nobody takes it.
bool write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

bool at_terminal() {
    return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

TerminalRelay::TerminalRelay() {
    master_ = ::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int unlock = 0;
    if (master_ < 0 || ::ioctl(master_, TIOCSPTLCK, &unlock) != 0) return;
    slave_ = ::ioctl(master_, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    if (slave_ >= 0 && ::tcgetattr(STDIN_FILENO, &settings) == 0) ::tcsetattr(slave_, TCSANOW, &settings);
    copy_size(master_);
}

TerminalRelay::~TerminalRelay() {
    for (const int fd : {master_, slave_})
        if (fd >= 0) ::close(fd);
}

void TerminalRelay::adopt() {
    ::setsid();
    ::ioctl(slave_, TIOCSCTTY, 0);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(slave_, fd);
}

void TerminalRelay::run(int child) {
    ::close(slave_);
    slave_ = -1;
    termios before{}, raw{};
    const bool have = ::tcgetattr(STDIN_FILENO, &before) == 0;
    raw = before;
    ::cfmakeraw(&raw);
    if (have) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    sigset_t resized;
    ::sigemptyset(&resized);
    ::sigaddset(&resized, SIGWINCH);
    ::sigprocmask(SIG_BLOCK, &resized, nullptr);
    const int signals = ::signalfd(-1, &resized, SFD_CLOEXEC);
    const int ended = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));

    bool keys = true;
    char buffer[4096];
    for (;;) {
        pollfd fds[] = {
            {master_, POLLIN, 0}, {keys ? STDIN_FILENO : -1, POLLIN, 0}, {signals, POLLIN, 0}, {ended, POLLIN, 0}};
        if (::poll(fds, 4, -1) < 0 && errno != EINTR) break;
        if ((fds[2].revents & POLLIN) != 0) {
            signalfd_siginfo info{};
            (void)!::read(signals, &info, sizeof info);
            copy_size(master_);
        }
        if ((fds[0].revents & (POLLIN | POLLHUP)) != 0) {
            const ssize_t n = ::read(master_, buffer, sizeof buffer);
            if (n <= 0 || !write_all(STDOUT_FILENO, {buffer, static_cast<std::size_t>(n)})) break;
            continue;  // all that it wrote comes before the news of its end
        }
        if ((fds[1].revents & (POLLIN | POLLHUP)) != 0) {
            const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
            keys = n > 0 && write_all(master_, {buffer, static_cast<std::size_t>(n)});
        }
        if (fds[3].revents != 0) break;
    }
    for (const int fd : {signals, ended})
        if (fd >= 0) ::close(fd);
    if (have) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

}  // namespace talpa::board
