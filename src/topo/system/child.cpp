#include "topo/system/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace talpa::topo {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

host::Result<PipeEnds> make_pipe() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0)
        return host::failure(ErrorCode::OutOfResources, "cannot make a pipe: {}", std::strerror(errno));
    return PipeEnds{host::Fd(fds[0]), host::Fd(fds[1])};
}

void set_nonblocking(int fd) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

host::Result<Child> Child::start(const Command& command, Streams streams, Group group) {
    const auto program = find_program(command.argv.at(0));
    if (!program) return host::failure(ErrorCode::NotFound, "\"{}\" not found in $PATH", command.argv[0]);
    host::Program start{.arguments = command.argv,
                        .in = streams.in,
                        .out = streams.out,
                        .err = streams.err,
                        .environment = command.environment,
                        .folder = command.folder,
                        .own_group = group == Group::Own};
    start.arguments[0] = program->string();
    Child child;
    child.group_ = group;
    TRY_ASSIGN(child.pid_, host::start_program(start));
    return child;
}

Child::~Child() {
    if (pid_ < 0) return;
    send(SIGKILL);
    (void)wait();
}

void Child::send(int signal) const {
    if (pid_ < 0) return;
    ::kill(group_ == Group::Own ? -pid_ : pid_, signal);
    ::kill(pid_, signal);  // in case it has not made its group yet
}

int Child::wait() {
    return host::wait_for_end(std::exchange(pid_, -1));
}

std::optional<int> Child::wait_for(Milliseconds limit) {
    const auto end = Clock::now() + limit;
    for (;;) {
        int status = 0;
        const pid_t got = ::waitpid(pid_, &status, WNOHANG);
        if (got == pid_ || (got < 0 && errno == ECHILD)) {
            pid_ = -1;
            return got < 0 ? 0 : host::exit_code_of(status);
        }
        if (Clock::now() >= end) return std::nullopt;
        ::usleep(2000);
    }
}

int Child::stop() {
    send(SIGTERM);
    if (const auto status = wait_for(Milliseconds(3000))) return *status;
    send(SIGKILL);
    return wait();
}

}  // namespace talpa::topo
