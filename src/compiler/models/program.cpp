#include "compiler/models/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/host/fd.h"
#include "base/host/program.h"

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
    host::Fd ends[2][2];  // what it prints, what it complains of
    for (auto& pipe : ends) {
        int fds[2];
        if (::pipe2(fds, O_CLOEXEC) != 0)
            return failure(ErrorCode::OutOfResources, "no pipe: {}", std::strerror(errno));
        for (int k = 0; k < 2; ++k) pipe[k] = host::Fd(fds[k]);
    }
    // It ends with us: a download that nobody waits for would go on writing into a file that the next one continues.
    TRY_ASSIGN(const ::pid_t pid,
               host::start_program(
                   {.arguments = arguments, .out = ends[0][1].get(), .err = ends[1][1].get(), .ends_with_us = true}));
    for (auto& pipe : ends) pipe[1].reset();
    std::string text, trouble;
    collect(ends[0][0].get(), ends[1][0].get(), text, trouble);
    const int status = host::wait_for_end(pid);
    if (status == 0) return text;
    trouble = lines_once(trouble);
    return failure(ErrorCode::AccessFailed, "{} failed: {}", arguments[0],
                   trouble.empty() ? fmt::format("status {}", status) : trouble);
}

}  // namespace talpa::compiler::models
