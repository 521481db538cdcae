#include "remoteproc/sys/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

namespace talpa::remoteproc {

std::string read_proc(const std::string& path, std::size_t limit_bytes) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return fd ? read_fd(fd.get(), limit_bytes).value_or("") : "";
}

std::optional<std::uint64_t> process_start_time(pid_t pid) {
    const std::string stat = read_proc(fmt::format("/proc/{}/stat", pid), 4096);
    // The command's name may hold spaces and parentheses: fields are counted from the last ')'. "PID (NAME) S …"
    const std::size_t close = stat.rfind(')');
    if (close == std::string::npos || close + 2 >= stat.size()) return std::nullopt;
    if (stat[close + 2] == 'Z' || stat[close + 2] == 'X') return std::nullopt;
    std::size_t at = close + 2;
    for (int field = 3; field < 22; ++field) {
        at = stat.find(' ', at);
        if (at == std::string::npos) return std::nullopt;
        ++at;
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(stat.data() + at, stat.data() + stat.size(), value);
    if (error != std::errc{}) return std::nullopt;
    return value;
}

const std::string& boot_id() {
    static const std::string id = [] {
        std::string text = read_proc("/proc/sys/kernel/random/boot_id", 64);
        while (!text.empty() && text.back() == '\n') text.pop_back();
        return text;
    }();
    return id;
}

std::string process_arguments(pid_t pid) {
    return read_proc(fmt::format("/proc/{}/cmdline", pid), 65536);
}

std::optional<PinnedProcess> PinnedProcess::pin(pid_t pid, std::uint64_t start_time) {
    if (pid <= 0) return std::nullopt;
    PinnedProcess process;
    process.pid_ = pid;
    process.pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!process.pidfd_ && errno == ESRCH) return std::nullopt;
    // Only now is the start time read: had the number been recycled before the pidfd, it differs.
    const auto started = process_start_time(pid);
    if (!started || (start_time != 0 && *started != start_time)) return std::nullopt;
    process.start_time_ = *started;
    return process;
}

bool PinnedProcess::alive() const {
    if (pidfd_) {
        pollfd wait{pidfd_.get(), POLLIN, 0};
        return ::poll(&wait, 1, 0) == 0;
    }
    return process_start_time(pid_) == start_time_;
}

int PinnedProcess::signal(int number, int value) const {
    siginfo_t info{};
    info.si_signo = number;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    info.si_value.sival_int = value;
    if (pidfd_) return ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, &info, 0) == 0 ? 0 : errno;
    if (!alive()) return ESRCH;
    return ::syscall(SYS_rt_sigqueueinfo, pid_, number, &info) == 0 ? 0 : errno;
}

bool PinnedProcess::wait_exit(int timeout_ms) const {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        if (pidfd_) {
            pollfd wait{pidfd_.get(), POLLIN, 0};
            const int n = ::poll(&wait, 1, static_cast<int>(std::max<long long>(left, 0)));
            if (n > 0) return true;
            if (n == 0) return false;
        } else {
            if (!alive()) return true;
            if (left <= 0) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
}

namespace {

struct CloneArguments {  // struct clone_args of <linux/sched.h>, first version
    std::uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

// fork into new namespaces. clone3 takes all flags; where it is missing (qemu-user), clone takes all but CLONE_NEWTIME.
pid_t fork_into(std::uint64_t flags) {
    CloneArguments arguments{};
    arguments.flags = flags;
    arguments.exit_signal = SIGCHLD;
    long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid < 0 && errno == ENOSYS) {
        if (flags == 0) return ::fork();
#if defined(__aarch64__)
        pid = ::syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
#else
        pid = ::syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
#endif
    }
    return static_cast<pid_t>(pid);
}

void close_from(int first) {
#ifdef SYS_close_range
    if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
#endif
    for (int fd = first; fd < 4096; ++fd) ::close(fd);
}

// Only system calls from here on: the parent may have had other threads.
[[noreturn]] void run_child(const SpawnOptions& options, const std::vector<int>& sources, int report,
                            const sigset_t& mask, char* const* arguments, char* const* environment) {
    const auto give_up = [&](int error) {
        (void)!::write(report, &error, sizeof error);
        ::_exit(127);
    };
    if (options.new_session) ::setsid();
    if (options.new_group) ::setpgid(0, 0);
    for (const auto& space : options.join)
        if (::setns(space.file.get(), space.type) != 0) give_up(errno);
    if (!options.folder.empty() && ::chdir(options.folder.c_str()) != 0) give_up(errno);
    const int count = static_cast<int>(sources.size());
    for (int i = 0; i < count; ++i)
        if (::dup2(sources[static_cast<std::size_t>(i)], i) < 0) give_up(errno);
    // The report pipe closes itself on exec; it is moved right behind the wanted ones, and all others go.
    const int kept = ::fcntl(report, F_DUPFD_CLOEXEC, count);
    const int at = kept == count ? kept : ::dup3(report, count, O_CLOEXEC);
    close_from(count + 1);
    report = at;
    for (int number = 1; number < NSIG; ++number)
        if (number != SIGKILL && number != SIGSTOP) std::signal(number, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::execve(options.executable.c_str(), arguments, environment);
    give_up(errno);
    ::_exit(127);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

}  // namespace

Result<pid_t> spawn(const SpawnOptions& options) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return os_failure("create", "pipe", errno);
    const Fd reader(ends[0]);
    Fd first_writer(ends[1]);
    // Sources and the report are moved above all targets first, so that no dup2 overwrites what is still needed.
    const int above = static_cast<int>(options.fds.size()) + 1;
    Fd writer(::fcntl(first_writer.get(), F_DUPFD_CLOEXEC, above));
    if (!writer) return os_failure("duplicate", "file descriptor", errno);
    first_writer.reset();  // else the report would never end
    std::vector<Fd> moved;
    std::vector<int> sources;
    for (const int fd : options.fds) {
        moved.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, above));
        if (!moved.back()) return os_failure("duplicate", "file descriptor", errno);
        sources.push_back(moved.back().get());
    }
    const auto arguments = pointers(options.arguments), environment = pointers(options.environment);
    sigset_t blocked, before, child_mask;
    sigfillset(&blocked);
    sigemptyset(&child_mask);
    for (const int number : options.block) sigaddset(&child_mask, number);
    ::sigprocmask(SIG_SETMASK, &blocked, &before);
    const pid_t pid = fork_into(options.clone_flags);
    if (pid == 0) run_child(options, sources, writer.get(), child_mask, arguments.data(), environment.data());
    const int error = errno;
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (pid < 0) return os_failure("fork/exec", options.executable, error);
    writer.reset();
    int child_error = 0;
    ssize_t n;
    do n = ::read(reader.get(), &child_error, sizeof child_error);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        ::waitpid(pid, nullptr, 0);
        return os_failure("fork/exec", options.executable, child_error);
    }
    return pid;
}

}  // namespace talpa::remoteproc
