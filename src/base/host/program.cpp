#include "base/host/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/host/fd.h"

extern char** environ;  // NOLINT: POSIX

namespace talpa::host {
namespace {

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

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> out;
    for (const std::string& word : words) out.push_back(const_cast<char*>(word.c_str()));
    out.push_back(nullptr);
    return out;
}

struct Trouble {
    enum What : int { Folder, Exec } what = Exec;
    int error = 0;
};

bool put_stream(int from, int to) {
    if (from == kOurs) return true;
    if (from == kNothing) from = ::open("/dev/null", (to == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    if (from == to) return ::fcntl(to, F_SETFD, 0) == 0;
    return from >= 0 && ::dup2(from, to) >= 0;
}

/// Only system calls: the parent may have had other threads. Returns when it could not become the program.
Trouble become(const Program& program, char* const* arguments, char* const* environment, pid_t parent) {
    if (program.own_group) ::setpgid(0, 0);
    if (program.ends_with_us && (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || ::getppid() != parent))
        return {Trouble::Exec, ECHILD};
    if (!put_stream(program.in, 0) || !put_stream(program.out, 1) || !put_stream(program.err, 2))
        return {Trouble::Exec, errno};
    if (!program.folder.empty() && ::chdir(program.folder.c_str()) != 0) return {Trouble::Folder, errno};
    // What we handle would be handled here too until the exec; what is ignored stays so (nohup).
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction action{};
        if (::sigaction(number, nullptr, &action) != 0 || (action.sa_handler == SIG_IGN && number != SIGPIPE)) continue;
        action.sa_handler = SIG_DFL;
        action.sa_flags = 0;
        ::sigaction(number, &action, nullptr);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (std::strchr(arguments[0], '/') != nullptr)
        ::execve(arguments[0], arguments, environment);
    else
        ::execvpe(arguments[0], arguments, environment);
    return {Trouble::Exec, errno};
}

std::unexpected<Error> failed(const Program& program, const Trouble& trouble) {
    const std::string& name = program.arguments[0];
    if (trouble.what == Trouble::Folder)
        return failure(ErrorCode::AccessFailed, "cannot run {} in {}: {}", name, program.folder.string(),
                       std::strerror(trouble.error));
    if (trouble.error == ENOENT) return failure(ErrorCode::NotFound, "there is no program '{}'", name);
    return failure(ErrorCode::AccessFailed, "cannot run {}: {}", name, std::strerror(trouble.error));
}

}  // namespace

Result<pid_t> start_program(const Program& program) {
    if (program.arguments.empty()) return failure(ErrorCode::InvalidArgument, "no program is named");
    int ends[2];  // carries a Trouble; closes when the child becomes the program
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return failure(ErrorCode::OutOfResources, "cannot make a pipe: {}", std::strerror(errno));
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    const std::vector<std::string> variables = environment_with(program.environment);
    const std::vector<char*> arguments = pointers(program.arguments), environment = pointers(variables);
    const pid_t parent = ::getpid();
    // Ignored by whoever started us, the kernel would throw the child's status away.
    struct sigaction ends_told{};
    if (::sigaction(SIGCHLD, nullptr, &ends_told) == 0 && ends_told.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = ::fork();
    if (child == 0) {
        const Trouble trouble = become(program, arguments.data(), environment.data(), parent);
        (void)!::write(writer.get(), &trouble, sizeof trouble);
        ::_exit(127);
    }
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) return failure(ErrorCode::OutOfResources, "cannot start a process: {}", std::strerror(error));
    writer.reset();
    Trouble trouble;
    ssize_t n = 0;
    while ((n = ::read(reader.get(), &trouble, sizeof trouble)) < 0 && errno == EINTR) {
    }
    if (n != sizeof trouble) return child;
    (void)wait_for_end(child);
    return failed(program, trouble);
}

int wait_for_end(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return kEndUnknown;
    return exit_code_of(status);
}

int exit_code_of(int wait_status) {
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace talpa::host
