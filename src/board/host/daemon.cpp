#include "board/host/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/host/file.h"
#include "board/host/board.h"
#include "board/host/control.h"
#include "board/host/log_file.h"

namespace talpa::board {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::unexpected<host::Error> errno_failure(const std::string& doing) {
    return host::failure(ErrorCode::AccessFailed, "{}: {}", doing, std::strerror(errno));
}

/// The state folder with its lock held, by this process and those it forks.
struct Claim {
    BoardRecord record;
    int lock = -1;
};

host::Result<Claim> claim(const BoardOptions& options) {
    TRY(check_board_name(options.name));
    Claim claim;
    for (int attempt = 0; attempt < 3; ++attempt) {
        claim.record = look_up(options.name);
        std::error_code error;
        fs::create_directories(claim.record.folder, error);
        if (error)
            return host::failure(ErrorCode::AccessFailed, "cannot create {}: {}", claim.record.folder.string(),
                                 error.message());
        struct stat st{};
        if (::stat(claim.record.folder.c_str(), &st) != 0 || st.st_uid != ::geteuid())
            return host::failure(ErrorCode::AccessFailed, "{} belongs to somebody else", claim.record.folder.string());
        ::chmod(claim.record.folder.c_str(), 0700);
        claim.lock = ::open(claim.record.lock_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (claim.lock < 0) return errno_failure("cannot open " + claim.record.lock_file().string());
        if (::flock(claim.lock, LOCK_EX | LOCK_NB) != 0) {
            ::close(claim.lock);
            return std::unexpected(
                host::Error(ErrorCode::InvalidState,
                            fmt::format("the board '{}' is up already (pid {})", options.name, claim.record.pid),
                            fmt::format("talpa board down --name {}", options.name)));
        }
        if (!fs::exists(claim.record.record_file())) break;
        // The remains of one that was killed. Cleaning removes the folder, lock and all, so take a fresh one.
        TRY(clean_up(claim.record));
        ::close(claim.lock);
    }
    claim.record.root = options.root;
    return claim;
}

/// A place below the user's folder for everything; nothing of the user's may be in its way.
host::Result<BoardPlaces> prepare_root(const fs::path& given) {
    std::error_code error;
    fs::create_directories(given, error);
    const fs::path root = fs::canonical(given, error);
    if (error) return host::failure(ErrorCode::AccessFailed, "cannot use {}: {}", given.string(), error.message());
    if (root == "/")
        return host::failure(ErrorCode::InvalidArgument, "--root / would put a board over this machine's own /sys");
    for (const char* folder : {"dev", "sys", "proc", "lib/firmware"}) {
        fs::create_directories(root / folder, error);
        if (error || fs::is_symlink(root / folder))
            return host::failure(ErrorCode::AccessFailed, "cannot make the folder {}: {}", (root / folder).string(),
                                 error ? error.message() : "it is a link");
    }
    if (!fs::is_empty(root / "sys", error) || error)
        return host::failure(ErrorCode::InvalidState, "{} is not empty: is another board served there?",
                             (root / "sys").string());
    const fs::path mem = root / "dev/mem";
    if (const auto what = fs::symlink_status(mem, error).type();
        what != fs::file_type::not_found && what != fs::file_type::regular)
        return host::failure(ErrorCode::InvalidState, "{} is something else than a board's memory", mem.string());
    (void)!::symlink("../sys/firmware/devicetree/base", (root / "proc/device-tree").c_str());
    return BoardPlaces{root, root / "sys", root / "dev"};
}

/// Waits until somebody asks the board to end.
class EndRequest {
  public:
    EndRequest() {
        sigset_t set;
        ::sigemptyset(&set);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
        ::sigprocmask(SIG_BLOCK, &set, nullptr);  // inherited by every thread that comes
        signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
        event_ = ::eventfd(0, EFD_CLOEXEC);
    }
    ~EndRequest() {
        ::close(signals_);
        ::close(event_);
    }
    void end() {
        const std::uint64_t one = 1;
        (void)!::write(event_, &one, sizeof one);
    }
    void wait() {
        pollfd fds[] = {{signals_, POLLIN, 0}, {event_, POLLIN, 0}};
        while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
        }
    }

  private:
    int signals_ = -1, event_ = -1;
};

/// All of a board's life, in this process.
host::Result<void> run(const BoardOptions& options, BoardRecord record,
                       const std::function<void(const BoardRecord&)>& ready) {
    EndRequest end;
    LogFile file(record.log_file());
    KernelLog log;
    log.sink = [&file](const std::string& line) { file.append(line); };
    record.pid = ::getpid();
    TRY_ASSIGN(const BoardPlaces places, prepare_root(options.root));
    record.root = places.root;
    // From here on there is something to clean up.
    TRY(save(record));
    auto made = Board::create(options, places, log);
    if (!made) {
        (void)clean_up(record);
        return std::unexpected(made.error());
    }
    const std::unique_ptr<Board> board = std::move(*made);
    auto control = ControlServer::listen(record.control_socket());
    if (!control) return std::unexpected(control.error());
    (*control)->on("status", [&](const auto&, ControlReply& reply) { (void)reply.send(board->status_json() + "\n"); });
    (*control)->on("down", [&](const auto&, ControlReply& reply) {
        end.end();
        (void)reply.send("ending\n");
    });
    (*control)->serve();
    ready(record);
    end.wait();
    control->reset();
    return {};
}

/// One message from the board's process to the one that started it: empty for "up", else an error.
void tell(int pipe, const std::string& text) {
    (void)!::write(pipe, text.data(), text.size());
    ::close(pipe);
}

void detach_from_terminal(const BoardRecord& record) {
    ::setsid();
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    // What libraries print (libfuse does) belongs into the log.
    const int log = ::open(record.log_file().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(null, 0);
    ::dup2(log, 1);
    ::dup2(log, 2);
    (void)!::chdir("/");
}

}  // namespace

host::Result<BoardRecord> bring_up(const BoardOptions& options) {
    BoardOptions absolute = options;
    std::error_code error;
    if (!options.root.empty()) absolute.root = fs::absolute(options.root, error);
    TRY_ASSIGN(Claim claimed, claim(absolute));
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) return errno_failure("cannot make a pipe");
    const pid_t child = ::fork();
    if (child < 0) return errno_failure("cannot start a process");
    if (child == 0) {
        ::close(pipe[0]);
        // A second fork: the board is nobody's child, so that nobody has to wait for it.
        if (::fork() != 0) ::_exit(0);
        detach_from_terminal(claimed.record);
        const auto result = run(absolute, claimed.record, [&](const BoardRecord&) { tell(pipe[1], "up"); });
        // The folder goes while the lock is held, so that nobody takes it for a board that lives.
        (void)clean_up(look_up(absolute.name));
        if (!result) tell(pipe[1], result.error().message + "\n" + result.error().hint);
        ::_exit(result ? 0 : 1);
    }
    ::close(pipe[1]);
    ::close(claimed.lock);
    ::waitpid(child, nullptr, 0);
    std::string answer;
    char buffer[1024];
    for (ssize_t n = 0; (n = ::read(pipe[0], buffer, sizeof buffer)) != 0;) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        answer.append(buffer, static_cast<std::size_t>(n));
    }
    ::close(pipe[0]);
    if (answer == "up") return look_up(absolute.name);
    const auto split = std::min(answer.find('\n'), answer.size());
    if (answer.empty())
        return host::failure(ErrorCode::Internal, "the board's process ended before it was up; see {}",
                             claimed.record.log_file().string());
    return std::unexpected(host::Error(ErrorCode::AccessFailed, answer.substr(0, split),
                                       split < answer.size() ? answer.substr(split + 1) : std::string()));
}

host::Result<void> run_in_foreground(const BoardOptions& options,
                                     const std::function<void(const BoardRecord&)>& ready) {
    TRY_ASSIGN(Claim claimed, claim(options));
    auto result = run(options, claimed.record, ready);
    (void)clean_up(look_up(options.name));
    ::close(claimed.lock);
    return result;
}

host::Result<bool> take_down(const BoardRecord& record) {
    constexpr std::chrono::milliseconds kPatience = 10s, kLook = 10ms;
    std::error_code error;
    if (!fs::exists(record.folder, error)) return false;
    if (record.alive) {
        const bool asked = ask_board(record.control_socket(), "down").has_value();
        const auto until = std::chrono::steady_clock::now() + (asked ? kPatience : 0ms);
        while (look_up(record.name).alive && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(kLook);
        if (look_up(record.name).alive && record.pid > 0) {
            ::kill(record.pid, SIGKILL);
            for (int i = 0; i < 500 && look_up(record.name).alive; ++i) std::this_thread::sleep_for(kLook);
        }
        if (look_up(record.name).alive)
            return host::failure(ErrorCode::Timeout, "the board '{}' (pid {}) does not end", record.name, record.pid);
    }
    if (fs::exists(record.folder, error)) TRY(clean_up(record));
    return true;
}

}  // namespace talpa::board
