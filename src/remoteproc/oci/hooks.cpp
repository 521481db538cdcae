#include "remoteproc/oci/hooks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "remoteproc/oci/log.h"
#include "remoteproc/sys/process.h"

namespace talpa::remoteproc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kOutputKept = 2048;

Result<void> run_hook(const Hook& hook, const std::string& state) {
    if (!hook.path.starts_with('/'))
        return host::failure(ErrorCode::InvalidArgument, "hook path {} is not absolute", printable(hook.path));
    int input[2], output[2];
    if (::pipe2(input, O_CLOEXEC) != 0) return os_failure("create", "pipe", errno);
    const Fd input_reader(input[0]);
    Fd input_writer(input[1]);
    if (::pipe2(output, O_CLOEXEC) != 0) return os_failure("create", "pipe", errno);
    Fd output_reader(output[0]), output_writer(output[1]);
    SpawnOptions options;
    options.executable = hook.path;
    options.arguments = hook.arguments.empty() ? std::vector<std::string>{hook.path} : hook.arguments;
    options.environment = hook.environment;
    options.fds = {input_reader.get(), output_writer.get(), output_writer.get()};
    TRY_ASSIGN(const pid_t pid, spawn(options));
    output_writer.reset();
    const auto process = PinnedProcess::pin(pid, 0);
    // The state fits a pipe's buffer nearly always; where it does not, the hook's reading is waited for below.
    std::string_view rest = state;
    ::fcntl(input_writer.get(), F_SETFL, O_NONBLOCK);
    std::string said;
    const auto until = Clock::now() + std::chrono::seconds(hook.timeout_s);
    int status = 0;
    bool ended = false, late = false;
    while (!ended && !late) {
        pollfd waits[3] = {{output_reader ? output_reader.get() : -1, POLLIN, 0},
                           {input_writer ? input_writer.get() : -1, POLLOUT, 0},
                           {process ? process->pidfd() : -1, POLLIN, 0}};
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        // No process: it ended before it could be looked at. No pidfd: its end is not told, so it is looked for.
        const int longest = !process ? 1 : process->pidfd() < 0 ? 20 : -1;
        ::poll(waits, 3,
               longest >= 0 || hook.timeout_s == 0 ? longest : static_cast<int>(std::max<long long>(left, 0)));
        if (input_writer && waits[1].revents != 0) {
            const ssize_t n = ::write(input_writer.get(), rest.data(), rest.size());
            if (n > 0) rest.remove_prefix(static_cast<std::size_t>(n));
            if (rest.empty() || (n < 0 && errno != EAGAIN && errno != EINTR)) input_writer.reset();
        }
        if (output_reader && waits[0].revents != 0) {
            char buffer[1024];
            const ssize_t n = ::read(output_reader.get(), buffer, sizeof buffer);
            if (n <= 0)
                output_reader.reset();
            else if (said.size() < kOutputKept)
                said.append(buffer, std::min(static_cast<std::size_t>(n), kOutputKept - said.size()));
        }
        const pid_t waited = ::waitpid(pid, &status, WNOHANG);
        if (waited < 0 && errno != EINTR)
            return host::failure(ErrorCode::AccessFailed, "hook {}: its end was lost: {}", printable(hook.path),
                                 errno_text(errno));
        ended = waited > 0;
        late = hook.timeout_s > 0 && Clock::now() >= until;
    }
    if (!ended) {
        if (process) process->signal(SIGKILL);
        ::waitpid(pid, &status, 0);
        return host::failure(ErrorCode::Timeout, "hook {} took longer than {} s", printable(hook.path), hook.timeout_s);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return host::failure(ErrorCode::AccessFailed, "hook {}: {} {}, output: {}", printable(hook.path),
                         WIFEXITED(status) ? "exit status" : "signal",
                         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), printable(said));
}

}  // namespace

Result<void> run_hooks(const Hooks& hooks, HookKind kind, const std::string& state) {
    const auto index = static_cast<std::size_t>(kind);
    for (std::size_t i = 0; i < hooks[index].size(); ++i)
        if (auto done = run_hook(hooks[index][i], state); !done)
            return std::unexpected(
                std::move(done.error()).with_context(fmt::format("error running {} hook #{}", kHookKeys[index], i)));
    return {};
}

void run_hooks_to_the_end(const Hooks& hooks, HookKind kind, const std::string& state) {
    const auto index = static_cast<std::size_t>(kind);
    for (const Hook& hook : hooks[index])
        if (const auto done = run_hook(hook, state); !done)
            log(LogLevel::Warn, error_line(done.error()), {{"hook", std::string(kHookKeys[index])}});
}

}  // namespace talpa::remoteproc
