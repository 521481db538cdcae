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

/// The child's half of run_program; why it did not become the program goes into `doubt`, which closes when it does. It
/// ends with its parent, however that ends: a download that nobody waits for would go on writing into a file that the
/// next one continues.
[[noreturn]] void become(const std::vector<char*>& argv, int out, int err, int doubt, ::pid_t parent) {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && nothing >= 0 && ::dup2(nothing, 0) >= 0 && ::dup2(out, 1) >= 0 &&
        ::dup2(err, 2) >= 0 && ::getppid() == parent)
        ::execvp(argv[0], argv.data());
    const int why = errno;
    (void)!::write(doubt, &why, sizeof why);
    ::_exit(1);
}

/// What the child has to say about its beginning: an error number, or 0.
int begin_of(int doubt) {
    int why = 0;
    ::ssize_t got;
    do got = ::read(doubt, &why, sizeof why);
    while (got < 0 && errno == EINTR);
    return got == sizeof why ? why : 0;
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
    int pipes[3][2];  // what it prints, what it complains of, why it does not begin
    for (int made = 0; made < 3; ++made) {
        if (::pipe2(pipes[made], O_CLOEXEC) == 0) continue;
        const int why = errno;
        while (made-- > 0)
            for (const int end : pipes[made]) ::close(end);
        return failure(ErrorCode::OutOfResources, "no pipe: {}", std::strerror(why));
    }
    std::vector<char*> argv;
    for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    const ::pid_t parent = ::getpid();
    const ::pid_t pid = ::fork();
    if (pid == 0) become(argv, pipes[0][1], pipes[1][1], pipes[2][1], parent);
    int failed = pid < 0 ? errno : 0;
    for (const auto& pipe : pipes) ::close(pipe[1]);
    std::string text, trouble;
    if (failed == 0) failed = begin_of(pipes[2][0]);
    if (failed == 0) collect(pipes[0][0], pipes[1][0], text, trouble);
    for (const auto& pipe : pipes) ::close(pipe[0]);
    int status = 0;
    while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (failed == ENOENT) return failure(ErrorCode::NotFound, "there is no program '{}'", arguments[0]);
    if (failed != 0)
        return failure(ErrorCode::OutOfResources, "cannot run {}: {}", arguments[0], std::strerror(failed));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
    trouble = lines_once(trouble);
    return failure(ErrorCode::AccessFailed, "{} failed: {}", arguments[0],
                   trouble.empty()
                       ? fmt::format("status {}", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status))
                       : trouble);
}

}  // namespace talpa::compiler::models
