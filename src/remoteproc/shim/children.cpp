#include "remoteproc/shim/children.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <csignal>
#include <memory>

#include "remoteproc/sys/process.h"

namespace talpa::remoteproc::shim {
namespace {

constexpr std::size_t kMaxUnclaimed = 256, kMaxText = 64 * 1024;

// What a command writes, read as it comes; the pipe's end is not waited for, as a container may hold it.
struct Pipe {
    Fd reader;
    std::string text;

    void read() {
        char buffer[4096];
        ssize_t n;
        while (reader && (n = ::read(reader.get(), buffer, sizeof buffer)) != 0) {
            if (n < 0) return;
            if (text.size() < kMaxText) text.append(buffer, static_cast<std::size_t>(n));
        }
    }
};

Fd open_pipe(Pipe& pipe) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Fd();
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pipe.reader = Fd(ends[0]);
    return Fd(ends[1]);
}

}  // namespace

int exit_status(int wait_status) {
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

Children::Children(Loop& loop) : loop_(loop) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    signal_fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    loop_.watch(signal_fd_.get(), EPOLLIN, [this](std::uint32_t) {
        signalfd_siginfo info;
        while (::read(signal_fd_.get(), &info, sizeof info) > 0) {
        }
        reap();
    });
}

void Children::reap() {
    int status = 0;
    for (pid_t pid; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
        const auto found = claimed_.find(pid);
        if (found == claimed_.end()) {
            if (unclaimed_.size() >= kMaxUnclaimed) unclaimed_.erase(unclaimed_.begin());
            unclaimed_[pid] = status;
            continue;
        }
        const Ended ended = std::move(found->second);
        claimed_.erase(found);
        ended(status);
    }
}

void Children::claim(pid_t pid, Ended ended) {
    const auto found = unclaimed_.find(pid);
    if (found == unclaimed_.end()) {
        claimed_[pid] = std::move(ended);
        return;
    }
    const int status = found->second;
    unclaimed_.erase(found);
    loop_.after(0, [status, ended = std::move(ended)] { ended(status); });
}

void Children::claim_new(pid_t pid, Ended ended) {
    unclaimed_.erase(pid);
    claim(pid, std::move(ended));
}

void Children::run(const std::string& program, std::vector<std::string> arguments, std::vector<std::string> environment,
                   const std::vector<int>& extra_fds, std::function<void(const CommandResult&)> done) {
    const auto error = std::make_shared<Pipe>(), output = std::make_shared<Pipe>();
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const Fd error_writer = open_pipe(*error), output_writer = open_pipe(*output);
    SpawnOptions options;
    options.executable = program;
    options.arguments = std::move(arguments);
    options.environment = std::move(environment);
    options.fds = {null.get(), output_writer.get(), error_writer.get()};
    options.fds.insert(options.fds.end(), extra_fds.begin(), extra_fds.end());
    const auto pid = spawn(options);
    if (!pid) {
        loop_.after(0, [done = std::move(done), text = error_line(pid.error())] { done({-1, text, {}}); });
        return;
    }
    for (const auto& pipe : {error, output})
        if (pipe->reader)
            loop_.watch(pipe->reader.get(), EPOLLIN, [this, pipe](std::uint32_t events) {
                pipe->read();
                if ((events & EPOLLHUP) != 0) loop_.unwatch(pipe->reader.get());
            });
    claim_new(*pid, [this, error, output, done = std::move(done)](int status) {
        for (const auto& pipe : {error, output}) {
            pipe->read();
            loop_.unwatch(pipe->reader.get());
        }
        done({exit_status(status), error->text, output->text});
    });
}

}  // namespace talpa::remoteproc::shim
