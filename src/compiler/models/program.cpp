#include "compiler/models/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <set>

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

/// The child's half of run_program. It ends with its parent, however that ends: a download that nobody waits for would
/// go on writing into a file that the next one continues.
[[noreturn]] void become(const std::vector<char*>& argv, int out, int err, ::pid_t parent) {
    constexpr int kNoProgram = 127;
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || ::getppid() != parent || nothing < 0 || ::dup2(nothing, 0) < 0 ||
        ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0)
        ::_exit(kNoProgram);
    ::execvp(argv[0], argv.data());
    ::_exit(kNoProgram);
}

/// What a program that tries again says again is told once.
std::string lines_once(const std::string& text) {
    std::set<std::string> seen;
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        at = end + 1;
        if (line.empty() || !seen.insert(line).second) continue;
        if (!result.empty()) result += '\n';
        result += line;
    }
    return result;
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
    std::vector<char*> argv;
    for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    const ::pid_t parent = ::getpid();
    const ::pid_t pid = ::fork();
    if (pid == 0) become(argv, out[1], err[1], parent);
    const int failed = pid < 0 ? errno : 0;
    ::close(out[1]);
    ::close(err[1]);
    std::string text, trouble;
    if (failed == 0) collect(out[0], err[0], text, trouble);
    ::close(out[0]);
    ::close(err[0]);
    if (failed != 0)
        return failure(ErrorCode::OutOfResources, "cannot run {}: {}", arguments[0], std::strerror(failed));
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
    trouble = lines_once(trouble);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && trouble.empty())
        return failure(ErrorCode::NotFound, "there is no program '{}'", arguments[0]);
    return failure(ErrorCode::AccessFailed, "{} failed: {}", arguments[0],
                   trouble.empty()
                       ? fmt::format("status {}", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status))
                       : trouble);
}

}  // namespace talpa::compiler::models
