#include "compiler/models/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace talpa::compiler::models {

using host::failure;
using host::Result;

namespace {

/// Both pipes until both are closed; the first megabyte of each is kept.
void collect(int out, int err, std::string& text, std::string& trouble) {
    ::pollfd both[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    for (int open = 2; open > 0;) {
        if (::poll(both, 2, -1) < 0 && errno != EINTR) return;
        for (int i = 0; i < 2; ++i) {
            if (both[i].fd < 0 || both[i].revents == 0) continue;
            char buffer[4096];
            const auto got = ::read(both[i].fd, buffer, sizeof buffer);
            if (got > 0) {
                std::string& into = i == 0 ? text : trouble;
                if (into.size() < (1u << 20)) into.append(buffer, static_cast<std::size_t>(got));
            } else if (got == 0 || errno != EINTR) {
                both[i].fd = -1;
                --open;
            }
        }
    }
}

}  // namespace

Result<std::string> run_program(const std::vector<std::string>& arguments) {
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0) return failure(ErrorCode::OutOfResources, "no pipe: {}", std::strerror(errno));
    if (::pipe2(err, O_CLOEXEC) != 0) {
        ::close(out[0]);
        ::close(out[1]);
        return failure(ErrorCode::OutOfResources, "no pipe: {}", std::strerror(errno));
    }
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    std::vector<char*> argv;
    for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    ::pid_t pid = 0;
    const int failed = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    ::close(err[1]);
    std::string text, trouble;
    if (failed == 0) collect(out[0], err[0], text, trouble);
    ::close(out[0]);
    ::close(err[0]);
    if (failed != 0) return failure(ErrorCode::NotFound, "cannot run {}: {}", arguments[0], std::strerror(failed));
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
    while (!trouble.empty() && trouble.back() == '\n') trouble.pop_back();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && trouble.empty())
        return failure(ErrorCode::NotFound, "there is no program '{}'", arguments[0]);
    return failure(ErrorCode::AccessFailed, "{} failed: {}", arguments[0],
                   trouble.empty()
                       ? fmt::format("status {}", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status))
                       : trouble);
}

}  // namespace talpa::compiler::models
