// Entering a running board's namespaces. Programs are started here and not by base/host/program.h, whose child does
// nothing but exec: this one adopts the board's terminal, looks for its folder on the board and says if it is not
// there.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <optional>

#include "base/host/program.h"
#include "base/host/terminal.h"
#include "board/host/child_error.h"
#include "board/host/covers.h"
#include "board/host/forward.h"
#include "board/host/namespaces.h"
#include "board/host/terminal_relay.h"

namespace talpa::board {
namespace {

/// Folders in which root's programs lie, behind those that the user has: engines look for iptables there.
std::string path_with_defaults() {
    const char* set = std::getenv("PATH");
    return set == nullptr || *set == '\0' ? kProgramFolders : std::string(set) + ":" + kProgramFolders;
}

volatile sig_atomic_t child_to_signal = 0;
void pass_on(int signal) {
    if (child_to_signal > 0) ::kill(child_to_signal, signal);
}

/// The terminal's signals reach the child by themselves.
void pass_signals_on_to(pid_t child) {
    child_to_signal = child;
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGQUIT, SIG_IGN);
    for (const int signal : {SIGTERM, SIGHUP}) ::signal(signal, pass_on);
}

}  // namespace

namespace {

host::Result<void> enter(const BoardRecord& record, int kinds) {
    const int board = static_cast<int>(::syscall(SYS_pidfd_open, record.pid, 0));
    if (board < 0)
        return host::failure(ErrorCode::NotFound, "the board's process {} is not there: {}", record.pid,
                             std::strerror(errno));
    if (::geteuid() != 0) kinds |= CLONE_NEWUSER;
    // A board that came up in a chroot has its files below that, and a mount namespace puts who enters it at its own
    // root.
    const std::string path = fmt::format("/proc/{}/root", record.pid);
    const int root = (kinds & CLONE_NEWNS) != 0 ? ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    const bool entered = ::setns(board, kinds) == 0 && (root < 0 || (::fchdir(root) == 0 && ::chroot(".") == 0));
    const int why = errno;
    ::close(board);
    if (root >= 0) ::close(root);
    if (!entered)
        return host::failure(ErrorCode::AccessFailed, "cannot enter the board's namespaces: {}", std::strerror(why));
    return {};
}

}  // namespace

host::Result<void> connect_in_board(const BoardRecord& record, std::uint16_t port) {
    TRY(enter(record, CLONE_NEWNET));
    const int socket = connect_local(port);
    if (socket < 0)
        return host::failure(ErrorCode::NotFound, "nothing answers at port {} of the board: {}", port,
                             std::strerror(-socket));
    ::signal(SIGPIPE, SIG_IGN);
    relay(STDIN_FILENO, STDOUT_FILENO, socket);
    ::close(socket);
    return {};
}

namespace {

/// All of it in a process of its own, which has entered the board's namespaces: waits for the program, at a terminal of
/// the board if there is one. Its exit status as a shell counts.
host::Result<int> run_inside(const BoardRecord& record, const std::vector<std::string>& command) {
    char folder[PATH_MAX];
    const bool has_folder = ::getcwd(folder, sizeof folder) != nullptr;
    TRY(enter(record, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC));
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // what is at the other end of the terminal goes with whoever sits there
    look_again(has_folder ? folder : "/");

    std::optional<TerminalRelay> terminal;
    if (at_terminal()) terminal.emplace();
    if (terminal && !terminal->valid()) terminal.reset();
    int report[2];  // carries errno when the program cannot be started
    if (::pipe2(report, O_CLOEXEC) != 0)
        return host::failure(ErrorCode::OutOfResources, "cannot make a pipe: {}", std::strerror(errno));
    const pid_t child = ::fork();
    if (child < 0) return host::failure(ErrorCode::OutOfResources, "cannot start a process: {}", std::strerror(errno));
    if (child == 0) {
        ::close(report[0]);
        if (terminal) terminal->adopt();
        if (!has_folder || ::chdir(folder) != 0) {
            host::say(fmt::format("talpa: note: {} is not on the board: the program runs in /\n",
                                  has_folder ? folder : "this folder"));
            (void)!::chdir("/");
        }
        ::setenv("PATH", path_with_defaults().c_str(), 1);
        ::setenv("TALPA_BOARD", record.name.c_str(), 1);
        for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
        std::vector<char*> argv;
        for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execvp(argv[0], argv.data());
        const int error = errno;
        (void)!::write(report[1], &error, sizeof error);
        ::_exit(127);
    }
    ::close(report[1]);
    pass_signals_on_to(child);
    if (terminal) terminal->run(child);
    int error = 0;
    ssize_t n = 0;
    while ((n = ::read(report[0], &error, sizeof error)) < 0 && errno == EINTR) {
    }
    ::close(report[0]);
    const int status = host::wait_for_end(child);
    if (n != sizeof error) return status;
    host::say(fmt::format("talpa: cannot run {} on the board: {}\n", command[0], std::strerror(error)));
    return error == ENOENT ? 127 : 126;  // as shells, env and ssh have it
}

}  // namespace

// This process stays outside: setns(CLONE_NEWPID) puts all further children of a process into the board's pid
// namespace, where they cannot see their parent. LeakSanitizer, which looks at a program when it ends, does so from
// such a child; that takes its parent for dead and leaves, and the parent waits for its answer for ever.
host::Result<int> run_in_board(const BoardRecord& record, const std::vector<std::string>& command) {
    int report[2];  // carries the error when there is one
    if (::pipe2(report, O_CLOEXEC) != 0)
        return host::failure(ErrorCode::OutOfResources, "cannot make a pipe: {}", std::strerror(errno));
    const pid_t inside = ::fork();
    if (inside < 0) return host::failure(ErrorCode::OutOfResources, "cannot start a process: {}", std::strerror(errno));
    if (inside == 0) {
        ::close(report[0]);
        const auto result = run_inside(record, command);
        if (result) ::_exit(*result);
        const std::string why = packed(result.error());
        (void)!::write(report[1], why.data(), why.size());
        ::_exit(1);
    }
    ::close(report[1]);
    pass_signals_on_to(inside);
    std::string why;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::read(report[0], buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) why.append(buffer, static_cast<std::size_t>(n));
    ::close(report[0]);
    const int status = host::wait_for_end(inside);
    if (!why.empty()) return std::unexpected(unpacked(why));
    return status;
}

}  // namespace talpa::board
