#include "board/host/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/host/file.h"
#include "board/gdb/server.h"
#include "board/host/board.h"
#include "board/host/child_error.h"
#include "board/host/claim.h"
#include "board/host/control.h"
#include "board/host/ending.h"
#include "board/host/log_file.h"
#include "board/host/namespaces.h"
#include "board/host/ssh.h"

namespace talpa::board {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::unexpected<host::Error> errno_failure(const std::string& doing) {
    return host::failure(ErrorCode::AccessFailed, "{}: {}", doing, std::strerror(errno));
}

/// One message from one process to the one that started it: "+" for "up", else "-" and an error.
void tell(int pipe, const std::string& text) {
    (void)!::write(pipe, text.data(), text.size());
    ::close(pipe);
}

/// Up to `most` bytes, or to the end. Closes the pipe at the end.
std::string read_all(int pipe, std::size_t most) {
    std::string text;
    char c = 0;
    while (text.size() < most) {
        const ssize_t n = ::read(pipe, &c, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            ::close(pipe);
            break;
        }
        text += c;
    }
    return text;
}

/// What is made before the namespaces, in those of the user.
struct Outside {
    std::unique_ptr<ControlServer> control;
    std::unique_ptr<LogFile> log;
    std::vector<std::unique_ptr<Forwarder>> forwarders;
    int sshd_log = -1;
};

/// Sends what passes between the board's parts until the asker hangs up. Words behind the first name sources.
void follow_trace(Board& board, const std::vector<std::string>& words, ControlReply& reply) {
    unsigned sources = 0;
    for (std::size_t i = 0; i < std::size(kTraceSources); ++i)
        if (words.size() == 1 || std::find(words.begin() + 1, words.end(), kTraceSources[i]) != words.end())
            sources |= 1u << i;
    const auto listener = board.tracer().listen(sources);
    char ignored = 0;
    for (;;) {
        if (const auto line = listener->next(100ms)) {
            if (!reply.send(*line)) return;
            continue;
        }
        if (const ssize_t n = ::recv(reply.fd(), &ignored, 1, MSG_DONTWAIT); n == 0 || (n < 0 && errno != EAGAIN))
            return;
    }
}

/// All of a board's life, in this process: the first one of its namespaces, if it has any.
host::Result<void> live(const BoardOptions& options, const BoardRecord& record, Outside& outside, const Ready& ready) {
    EndRequest end;
    KernelLog log;
    log.sink = [&outside](const std::string& line) { outside.log->append(line); };
    BoardPlaces places;
    places.root = record.root;
    places.sys = record.root / "sys";
    places.dev = record.root / "dev";
    if (record.root.empty()) {
        TRY_ASSIGN(places, build_file_system(record, options.shared));
    }
    places.died = [](KernelDeath how) { ::_exit(static_cast<int>(how)); };
    TRY_ASSIGN(const std::unique_ptr<Board> board, Board::create(options, places, log));
    if (record.root.empty()) {
        TRY(show_board(places, record.name));
        if (record.ssh) TRY(start_sshd(record, outside.sshd_log));
        for (const auto& forwarder : outside.forwarders) forwarder->serve();
    }
    ControlServer& control = *outside.control;
    control.on("status", [&](const auto&, ControlReply& reply) { (void)reply.send(board->status_json() + "\n"); });
    control.on("trace", [&](const auto& words, ControlReply& reply) { follow_trace(*board, words, reply); });
    control.on("gdb", [&](const auto& words, ControlReply& reply) {
        Machine* const machine = board->machine(words.size() > 1 ? std::strtoul(words[1].c_str(), nullptr, 10) : 0);
        if (machine != nullptr) gdb::serve(*machine, reply.fd());
    });
    // Whoever asks has made the listening socket, in the namespace that it shall be reached from.
    std::mutex publishing;
    control.on("publish", [&](const auto& words, ControlReply& reply) {
        const auto port = parse_published(words.size() > 1 ? words[1] : "");
        const int listener = receive_descriptor(reply.fd());
        if (!port || listener < 0 || !record.root.empty()) {
            if (listener >= 0) ::close(listener);
            return;
        }
        const std::lock_guard lock(publishing);
        outside.forwarders.push_back(Forwarder::adopt(listener, *port));
        outside.forwarders.back()->serve();
        (void)reply.send("published\n");
    });
    control.on("down", [&](const auto&, ControlReply& reply) {
        (void)reply.send("ending\n");
        end.end();
    });
    control.serve();
    ready(record);
    end.wait();
    outside.control.reset();
    outside.forwarders.clear();
    return {};
}

/// Opens what listens on the user's machine, and says where in the record.
host::Result<void> open_ports(const BoardOptions& options, BoardRecord& record, Outside& outside) {
    const auto open = [&](PublishedPort port) -> host::Result<PublishedPort> {
        TRY_ASSIGN(auto forwarder, Forwarder::listen(options.address, port));
        outside.forwarders.push_back(std::move(forwarder));
        return outside.forwarders.back()->port();
    };
    record.ssh = has_sshd() && ::geteuid() == 0;
    if (options.ssh_port) {
        if (!record.ssh)
            return std::unexpected(host::Error(
                ErrorCode::NotFound,
                ::geteuid() == 0 ? "--ssh: there is no sshd on this machine" : "--ssh: sshd on a board wants root",
                ::geteuid() == 0 ? "apt-get install openssh-server" : ""));
        TRY_ASSIGN(const PublishedPort port, open({*options.ssh_port, kSshPort}));
        record.ssh_port = port.outside;
    }
    for (const PublishedPort wanted : options.published) {
        TRY_ASSIGN(const PublishedPort port, open(wanted));
        record.published.push_back(port);
    }
    return {};
}

/// What an exit status of the board's process says of its kernel; "": nothing.
const char* death_word(int status) {
    switch (static_cast<KernelDeath>(status)) {
        case KernelDeath::Panicked:
            return "panicked";
        case KernelDeath::Froze:
            return "frozen";
    }
    return "";
}

/// A page of its memory could not be had (memory_file.cpp).
bool memory_had_no_room(int status) {
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}
std::unexpected<host::Error> no_room(const BoardRecord& record) {
    return std::unexpected(
        host::Error(ErrorCode::OutOfResources,
                    fmt::format("the disk is full: no space for the board's memory{}",
                                record.root.empty() ? "" : fmt::format(" below {}", record.root.string())),
                    "free some space, or take another folder"));
}

/// Becomes the board's keeper: prepares, forks the board, waits for its end and cleans up after an orderly one. What a
/// killed board left stays for `board logs` and `board down`. `keepers_pipe` is closed in the board.
host::Result<void> keep(const BoardOptions& options, BoardRecord record, const Ready& ready, int keepers_pipe = -1) {
    Outside outside;
    outside.log = std::make_unique<LogFile>(record.folder, "log");
    TRY_ASSIGN(outside.control, ControlServer::listen(record.control_socket()));
    if (options.root.empty()) {
        TRY(open_ports(options, record, outside));
        TRY_ASSIGN(record.disk, disk_folder(record.name, record.made));
        TRY(save(record));  // from here on there is something to clean up
        if (record.ssh) {
            TRY(prepare_ssh(record));
            outside.sshd_log = open_sshd_log(record);
        }
        TRY(unshare_pids());
    } else {
        TRY_ASSIGN(record.root, prepare_root(options.root, options.remoteprocs, record.made));
        TRY(save(record));
    }
    int pipe[2], go[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0 || ::pipe2(go, O_CLOEXEC) != 0) return errno_failure("cannot make a pipe");
    const pid_t board = ::fork();
    if (board < 0) return errno_failure("cannot start a process");
    if (board == 0) {
        for (const int fd : {pipe[0], go[1], keepers_pipe})
            if (fd >= 0) ::close(fd);
        char start = 0;
        if (::read(go[0], &start, 1) != 1) ::_exit(1);
        const auto result =
            live(options, record, outside, [&](const BoardRecord&) { (void)!::write(pipe[1], "+", 1); });
        if (!result) tell(pipe[1], "-" + packed(result.error()));
        ::_exit(result ? 0 : 1);
    }
    ::close(pipe[1]);
    ::close(go[0]);
    outside.control->abandon();
    for (const auto& forwarder : outside.forwarders) forwarder->abandon();
    record.pid = board;
    const auto saved = save(record);
    if (saved) (void)!::write(go[1], "+", 1);
    ::close(go[1]);
    std::string answer = read_all(pipe[0], 1);
    if (answer == "+") {
        record.up = true;
        if (const auto known = save(record); !known) {
            ::kill(board, SIGTERM);
            answer = "-" + packed(known.error());
        }
    } else {
        answer += read_all(pipe[0], SIZE_MAX);
    }
    if (answer == "+") {
        forward_ending_signals(board);
        hold_ending_signals(false);
        ready(record);
    }
    int status = 0;
    while (::waitpid(board, &status, 0) < 0 && errno == EINTR) {
    }
    if (answer == "+") {
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return clean_up(record);
        record.death = WIFEXITED(status) ? death_word(WEXITSTATUS(status)) : "";
        if (!record.death.empty()) {
            (void)save(record);
            return host::failure(ErrorCode::Internal, "the board has {}: talpa board logs --name {}", record.death,
                                 record.name);
        }
        if (memory_had_no_room(status)) return no_room(record);
        if (WIFEXITED(status))
            return host::failure(ErrorCode::Internal, "the board's process ended (status {})", WEXITSTATUS(status));
        return host::failure(ErrorCode::Internal, "the board's process was killed by signal {}", WTERMSIG(status));
    }
    (void)clean_up(record);
    if (!saved) return saved;
    if (answer.size() < 2 && memory_had_no_room(status)) return no_room(record);
    if (answer.size() < 2)
        return host::failure(ErrorCode::Internal, "the board's process ended before it was up (status {:#x})", status);
    return std::unexpected(unpacked(std::string_view(answer).substr(1)));
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

/// A keeper as the process sees it that starts it.
struct Started {
    BoardRecord record;
    pid_t process;
    int answer;  ///< a pipe: "+" when the board is up and nobody waits for its end, "-" and an error when it failed
};

/// Takes the name and starts a process that keeps the board: a child that is waited for to its end, or, detached,
/// nobody's child. Signals that ask for the board's end are held back afterwards.
host::Result<Started> start_keeper(const BoardOptions& options, bool detached, const Ready& ready) {
    BoardOptions absolute = options;
    std::error_code error;
    if (!options.root.empty()) absolute.root = fs::absolute(options.root, error);
    hold_ending_signals(true);
    TRY_ASSIGN(const Claim claimed, claim(absolute));
    int pipe[2];
    if (::pipe2(pipe, O_CLOEXEC) != 0) return errno_failure("cannot make a pipe");
    const pid_t child = ::fork();
    if (child < 0) return errno_failure("cannot start a process");
    if (child > 0) {
        ::close(pipe[1]);
        ::close(claimed.lock);
        return Started{claimed.record, child, pipe[0]};
    }
    ::close(pipe[0]);
    if (detached) {
        if (::fork() != 0) ::_exit(0);
        detach_from_terminal(claimed.record);
    } else {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    }
    bool up = false;
    const auto result = keep(
        absolute, claimed.record,
        [&](const BoardRecord& record) {
            up = true;
            if (detached) tell(pipe[1], "+");
            if (ready) ready(record);
        },
        pipe[1]);
    if (!result && !up) (void)clean_up(look_up(absolute.name));
    if (!result && !(detached && up)) tell(pipe[1], "-" + packed(result.error()));
    ::_exit(result ? 0 : 1);
}

}  // namespace

host::Result<BoardRecord> bring_up(const BoardOptions& options) {
    TRY_ASSIGN(const Started keeper, start_keeper(options, true, {}));
    ::waitpid(keeper.process, nullptr, 0);
    const std::string answer = read_all(keeper.answer, SIZE_MAX);
    if (asked_to_end()) {
        const auto gone = take_down(look_up(options.name));
        hold_ending_signals(false);  // ends us, as a shell expects of it
        TRY(gone);
    }
    // It is up, and whoever called only has to say so: a signal that comes now stays held until the process has ended,
    // so that one that ends by a signal has left no board.
    if (answer == "+") return look_up(options.name);
    hold_ending_signals(false);
    if (answer.empty())
        return host::failure(ErrorCode::Internal, "the board's process ended before it was up; see {}",
                             keeper.record.log_file().string());
    return std::unexpected(unpacked(std::string_view(answer).substr(1)));
}

// The keeper is a child here too: it enters namespaces that its own children shall be in, and in which a sanitizer's
// tracer of this process, being a child as well, would not find its parent again and wait for ever.
host::Result<void> run_in_foreground(const BoardOptions& options, const Ready& ready) {
    TRY_ASSIGN(const Started keeper, start_keeper(options, false, ready));
    forward_ending_signals(keeper.process);
    hold_ending_signals(false);
    const std::string answer = read_all(keeper.answer, SIZE_MAX);
    int status = 0;
    while (::waitpid(keeper.process, &status, 0) < 0 && errno == EINTR) {
    }
    if (!answer.empty()) return std::unexpected(unpacked(std::string_view(answer).substr(1)));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return host::failure(ErrorCode::Internal, "the board's keeper ended (status {:#x})", status);
    return {};
}

host::Result<bool> take_down(const BoardRecord& record) {
    constexpr std::chrono::milliseconds kPatience = 10s, kAfterKill = 5s, kLook = 10ms;
    std::error_code error;
    if (!fs::exists(record.folder, error)) return false;
    if (record.alive) {
        // The process number is that of the living lock holder, so it cannot have been given to somebody else.
        const int process = record.pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, record.pid, 0)) : -1;
        const auto ended = [&](std::chrono::milliseconds at_most) {
            const auto until = std::chrono::steady_clock::now() + at_most;
            // The lock is free a little before the last process of the board's namespace is gone.
            pollfd fd{process, POLLIN, 0};
            if (process >= 0) ::poll(&fd, 1, static_cast<int>(at_most.count()));
            while (look_up(record.name).alive && std::chrono::steady_clock::now() < until)
                std::this_thread::sleep_for(kLook);
            return !look_up(record.name).alive;
        };
        const bool asked = ask_board(record.control_socket(), "down").has_value();
        bool gone = asked && ended(kPatience);
        if (!gone && record.pid > 0) {
            ::kill(record.pid, SIGKILL);
            gone = ended(kAfterKill);
        }
        if (process >= 0) ::close(process);
        if (!gone)
            return host::failure(ErrorCode::Timeout, "the board '{}' (pid {}) does not end", record.name, record.pid);
    }
    if (fs::exists(record.folder, error)) TRY(clean_up(record));
    return true;
}

}  // namespace talpa::board
