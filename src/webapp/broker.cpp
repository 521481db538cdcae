#include "webapp/broker.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace talpa::webapp {
namespace {

using link::host::BoardError;
using link::host::BoardFault;
using link::host::BoardResult;
using link::host::OpenedTty;
using talpa::host::Fd;
using Clock = std::chrono::steady_clock;

constexpr char kMemory = 'm', kTty = 't', kLook = 'l', kBoard = 'b';
constexpr std::size_t kMaxAnswer = 128 << 10;
constexpr auto kLastWait = std::chrono::milliseconds(500);
constexpr std::string_view kNumber = "number", kKind = "kind", kError = "error";

struct Question {
    char kind = 0;
    std::uint32_t number = 0;
};

/// What goes back, with a descriptor beside it where there is one.
struct Reply {
    host::Json json;
    Fd fd;
};

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

class Desk {
  public:
    explicit Desk(const LookPaths& paths) : paths_(paths), access_(link::host::direct_access(paths.board)) {}

    Reply answer(char kind) {
        switch (kind) {
            case kMemory:
                return memory();
            case kTty: {
                auto tty = access_->open_tty();
                if (!tty) return {{{kError, error_json(tty.error())}}, Fd()};
                return {{{"path", tty->path}}, std::move(tty->fd)};
            }
            case kLook:
                return {remoteproc_json(access_->look()), Fd()};
            default:
                return {to_json(look_at_board(paths_)), Fd()};
        }
    }

  private:
    Reply memory() {
        if (memory_given_)
            return {{{kError,
                      error_json(BoardError(BoardFault::MemoryDenied,
                                            host::Error(ErrorCode::InvalidState, "the memory was given already")))}},
                    Fd()};
        auto memory = access_->open_memory();
        if (!memory) return {{{kError, error_json(memory.error())}}, Fd()};
        memory_given_ = true;
        return {host::Json::object(), *std::move(memory)};
    }

    const LookPaths& paths_;
    std::unique_ptr<link::host::BoardAccess> access_;
    bool memory_given_ = false;
};

[[noreturn]] void serve(int socket, const LookPaths& paths) {
    Desk desk(paths);
    for (;;) {
        Question question;
        const ssize_t n = ::recv(socket, &question, sizeof question, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n != static_cast<ssize_t>(sizeof question)) ::_exit(0);  // the server has gone
        Reply reply;
        try {
            reply = desk.answer(question.kind);
        } catch (const std::exception& e) {  // of one question: the next may be answered
            reply = {{{kError, error_json(BoardError(host::Error(ErrorCode::Internal, e.what())))}}, Fd()};
        }
        reply.json[kNumber] = question.number;
        reply.json[kKind] = std::string(1, question.kind);
        const std::string text = reply.json.dump(-1, ' ', false, host::Json::error_handler_t::replace);
        if (!send_answer(socket, text, reply.fd.get())) ::_exit(1);
    }
}

}  // namespace

struct Broker::Lock {
    std::mutex mutex;
};

Broker::Broker(Fd socket, pid_t pid, std::chrono::milliseconds answer_timeout)
    : lock_(std::make_unique<Lock>()), socket_(std::move(socket)), pid_(pid), answer_timeout_(answer_timeout) {}

Broker::~Broker() {
    socket_.reset();
    const auto until = Clock::now() + kLastWait;
    while (::waitpid(pid_, nullptr, WNOHANG) == 0 && Clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

host::Result<std::unique_ptr<Broker>> Broker::start(LookPaths paths, std::chrono::milliseconds answer_timeout) {
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
    return std::unique_ptr<Broker>(new Broker(std::move(ours), pid, answer_timeout));
}

namespace {

std::unexpected<host::Error> gone() {
    return host::failure(ErrorCode::Internal, "the broker process has gone");
}

/// What `read` makes of an answer, which is our own broker's, so that what does not fit is a fault of the program.
template <typename Read>
auto understood(Read read) -> host::Result<decltype(read())> {
    try {
        return read();
    } catch (const std::exception& e) {
        return host::failure(ErrorCode::Internal, "the broker's answer is not understood: {}", e.what());
    }
}

}  // namespace

host::Result<Broker::Answer> Broker::ask(char kind) {
    const std::scoped_lock lock(lock_->mutex);
    if (kind == kMemory && late_memory_) return Answer{host::Json::object(), std::move(late_memory_)};
    const Question question{kind, ++asked_};
    if (::send(socket_.get(), &question, sizeof question, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof question))
        return gone();
    const auto until = Clock::now() + answer_timeout_;
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd p{socket_.get(), POLLIN, 0};
        const int ready = ::poll(&p, 1, static_cast<int>(std::max<long long>(left, 0)));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return host::failure(ErrorCode::Timeout, "the broker process does not answer");
        TRY_ASSIGN(Answer answer, receive());
        if (answer.json.value(kNumber, 0U) == asked_) return answer;
        // To an earlier question, given up by then.
        if (answer.json.value(kKind, "") == std::string(1, kMemory)) late_memory_ = std::move(answer.fd);
    }
}

host::Result<Broker::Answer> Broker::receive() {
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
    TRY_ASSIGN(answer.json, understood([&] {
                   auto json = host::Json::parse(std::string_view(text.data(), static_cast<std::size_t>(n)));
                   if (!json.is_object()) throw std::runtime_error("no object");
                   return json;
               }));
    return answer;
}

BoardResult<Fd> Broker::open_memory() {
    TRY_ASSIGN(Answer answer, ask(kMemory));
    if (answer.json.contains(kError)) return std::unexpected(error_of(answer.json.at(kError)));
    return std::move(answer.fd);
}

BoardResult<OpenedTty> Broker::open_tty() {
    TRY_ASSIGN(Answer answer, ask(kTty));
    if (answer.json.contains(kError)) return std::unexpected(error_of(answer.json.at(kError)));
    TRY_ASSIGN(std::string path, understood([&] { return answer.json.at("path").get<std::string>(); }));
    return OpenedTty{std::move(answer.fd), std::move(path)};
}

link::host::RemoteprocLook Broker::look() {
    const auto answer = ask(kLook);
    if (!answer) return {};
    return understood([&] { return remoteproc_of(answer->json); }).value_or(link::host::RemoteprocLook());
}

BoardLook Broker::look_at_board() {
    const auto answer = ask(kBoard);
    const auto look = !answer ? host::Result<BoardLook>(std::unexpected(answer.error()))
                              : understood([&] { return board_look_of(answer->json); });
    if (look) return *look;
    BoardLook none;
    none.memory_open = answer && answer->json.contains(kError) ? error_of(answer->json.at(kError)).error.message
                                                               : look.error().message;
    return none;
}

}  // namespace talpa::webapp
