#include "webapp/broker.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>

namespace talpa::webapp {
namespace {

using link::host::BoardError;
using link::host::BoardFault;
using link::host::BoardResult;
using link::host::OpenedTty;
using talpa::host::Fd;

constexpr char kMemory = 'm', kTty = 't', kLook = 'l', kBoard = 'b';
constexpr std::size_t kMaxAnswer = 128 << 10;
constexpr int kAnswerTimeoutMs = 5000;

bool send_answer(int socket, const std::string& text, int fd) {
    iovec data{const_cast<char*>(text.data()), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
    }
    return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

host::Json error_json(const BoardError& error) {
    return {{"fault", static_cast<int>(error.fault)},
            {"code", static_cast<int>(error.error.code)},
            {"message", error.error.message},
            {"hint", error.error.hint}};
}

BoardError error_of(const host::Json& json) {
    BoardError error;
    error.fault = static_cast<BoardFault>(json.at("fault").get<int>());
    error.error.code = static_cast<ErrorCode>(json.at("code").get<int>());
    json.at("message").get_to(error.error.message);
    json.at("hint").get_to(error.error.hint);
    return error;
}

/// Keeps the standard streams and `keep` only.
void close_others(int keep) {
    std::vector<int> open;
    if (DIR* const folder = ::opendir("/proc/self/fd")) {
        while (const dirent* const entry = ::readdir(folder)) {
            int fd = -1;
            const char* const end = entry->d_name + std::strlen(entry->d_name);
            if (std::from_chars(entry->d_name, end, fd).ptr == end && fd > 2 && fd != keep && fd != ::dirfd(folder))
                open.push_back(fd);
        }
        ::closedir(folder);
    }
    for (const int fd : open) ::close(fd);
}

[[noreturn]] void serve(int socket, const LookPaths& paths) {
    const auto access = link::host::direct_access(paths.board);
    bool memory_given = false;
    const auto text_of = [](const host::Json& json) {
        return json.dump(-1, ' ', false, host::Json::error_handler_t::replace);
    };
    for (;;) {
        char question = 0;
        const ssize_t n = ::recv(socket, &question, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) ::_exit(0);  // the server has gone
        bool sent = false;
        if (question == kMemory && memory_given) {
            sent = send_answer(
                socket,
                text_of({{"error", error_json(BoardError(
                                       BoardFault::MemoryDenied,
                                       host::Error(ErrorCode::InvalidState, "the memory was given already")))}}),
                -1);
        } else if (question == kMemory) {
            auto memory = access->open_memory();
            memory_given = memory.has_value();
            sent = memory ? send_answer(socket, "{}", memory->get())
                          : send_answer(socket, text_of({{"error", error_json(memory.error())}}), -1);
        } else if (question == kTty) {
            auto tty = access->open_tty();
            sent = tty ? send_answer(socket, text_of({{"path", tty->path}}), tty->fd.get())
                       : send_answer(socket, text_of({{"error", error_json(tty.error())}}), -1);
        } else if (question == kLook) {
            sent = send_answer(socket, text_of(remoteproc_json(access->look())), -1);
        } else if (question == kBoard) {
            sent = send_answer(socket, text_of(to_json(look_at_board(paths))), -1);
        }
        if (!sent) ::_exit(1);
    }
}

}  // namespace

struct Broker::Lock {
    std::mutex mutex;
};

Broker::Broker(Fd socket, pid_t pid) : lock_(std::make_unique<Lock>()), socket_(std::move(socket)), pid_(pid) {}

Broker::~Broker() {
    socket_.reset();
    ::waitpid(pid_, nullptr, 0);
}

host::Result<std::unique_ptr<Broker>> Broker::start(LookPaths paths) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return host::failure(ErrorCode::AccessFailed, "cannot make a socket pair: {}", std::strerror(errno));
    Fd ours(pair[0]), theirs(pair[1]);
    const int size = static_cast<int>(2 * kMaxAnswer);
    ::setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) return host::failure(ErrorCode::AccessFailed, "cannot fork: {}", std::strerror(errno));
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(0);
        ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        ::prctl(PR_SET_NAME, "talpa-broker");
        // It ends with the server, not with a signal to the group that the server wants to answer in its own time.
        ::signal(SIGTERM, SIG_IGN);
        ::signal(SIGINT, SIG_IGN);
        ::signal(SIGHUP, SIG_IGN);
        ours.reset();
        close_others(theirs.get());
        serve(theirs.get(), paths);
    }
    return std::unique_ptr<Broker>(new Broker(std::move(ours), pid));
}

host::Result<Broker::Answer> Broker::ask(char question) {
    const std::scoped_lock lock(lock_->mutex);
    const auto gone = [] { return host::failure(ErrorCode::Internal, "the broker process has gone"); };
    if (::send(socket_.get(), &question, 1, MSG_NOSIGNAL) != 1) return gone();
    pollfd p{socket_.get(), POLLIN, 0};
    if (::poll(&p, 1, kAnswerTimeoutMs) <= 0)
        return host::failure(ErrorCode::Timeout, "the broker process does not answer");
    std::string text(kMaxAnswer, '\0');
    iovec data{text.data(), text.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (n <= 0) return gone();
    Answer answer;
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
        answer.fd = Fd(fd);
    }
    try {
        answer.json = host::Json::parse(std::string_view(text.data(), static_cast<std::size_t>(n)));
    } catch (const std::exception& e) {
        return host::failure(ErrorCode::Internal, "the broker's answer is not understood: {}", e.what());
    }
    return answer;
}

BoardResult<Fd> Broker::open_memory() {
    TRY_ASSIGN(Answer answer, ask(kMemory));
    if (answer.json.contains("error")) return std::unexpected(error_of(answer.json.at("error")));
    return std::move(answer.fd);
}

BoardResult<OpenedTty> Broker::open_tty() {
    TRY_ASSIGN(Answer answer, ask(kTty));
    if (answer.json.contains("error")) return std::unexpected(error_of(answer.json.at("error")));
    return OpenedTty{std::move(answer.fd), answer.json.at("path").get<std::string>()};
}

link::host::RemoteprocLook Broker::look() {
    const auto answer = ask(kLook);
    if (!answer) return {};
    return remoteproc_of(answer->json);
}

BoardLook Broker::look_at_board() {
    const auto answer = ask(kBoard);
    if (!answer) {
        BoardLook none;
        none.memory_open = answer.error().message;
        return none;
    }
    return board_look_of(answer->json);
}

}  // namespace talpa::webapp
