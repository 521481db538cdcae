#include "topo/system/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

extern char** environ;  // NOLINT: POSIX

namespace talpa::topo {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& extra) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (std::none_of(extra.begin(), extra.end(), [&](const auto& e) { return e.first == name; }))
            all.emplace_back(text);
    }
    for (const auto& [name, value] : extra) all.push_back(name + "=" + value);
    return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> out;
    for (std::string& word : words) out.push_back(word.data());
    out.push_back(nullptr);
    return out;
}

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

int null_input() {
    static const int kNull = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    return kNull;
}

host::Result<Child> Child::start(const Command& command, Streams streams, Group group) {
    const auto program = find_program(command.argv.at(0));
    if (!program) return host::failure(ErrorCode::NotFound, "\"{}\" not found in $PATH", command.argv[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const auto& [from, to] : {std::pair(streams.in, 0), std::pair(streams.out, 1), std::pair(streams.err, 2)})
        if (from >= 0) posix_spawn_file_actions_adddup2(&actions, from, to);
    if (!command.folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, command.folder.c_str());
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults, none;
    sigemptyset(&defaults);
    sigemptyset(&none);
    for (const int s : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) sigaddset(&defaults, s);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setsigmask(&attributes, &none);
    short flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    if (group == Group::Own) {
        posix_spawnattr_setpgroup(&attributes, 0);
        flags |= POSIX_SPAWN_SETPGROUP;
    }
    posix_spawnattr_setflags(&attributes, flags);
    std::vector<std::string> argv = command.argv;
    std::vector<std::string> env = environment_with(command.environment);
    Child child;
    child.group_ = group;
    const int error = ::posix_spawn(&child.pid_, program->c_str(), &actions, &attributes, pointers(argv).data(),
                                    pointers(env).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) {
        child.pid_ = -1;
        return host::failure(ErrorCode::AccessFailed, "cannot run {}: {}", program->string(), std::strerror(error));
    }
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
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::optional<int> Child::wait_for(Milliseconds limit) {
    const auto end = Clock::now() + limit;
    for (;;) {
        int status = 0;
        const pid_t got = ::waitpid(pid_, &status, WNOHANG);
        if (got == pid_ || (got < 0 && errno == ECHILD)) {
            pid_ = -1;
            return got < 0 ? 0 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
