#include "board/host/control.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

namespace talpa::board {
namespace {

constexpr std::size_t kLongestRequest = 4096;

host::Result<int> open_socket(const std::filesystem::path& path, sockaddr_un& address) {
    address = {};
    address.sun_family = AF_UNIX;
    const std::string& text = path.native();
    if (text.size() >= sizeof address.sun_path)
        return host::failure(ErrorCode::InvalidArgument, "{} is too long for a socket's name ({} of {} bytes)", text,
                             text.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return host::failure(ErrorCode::OutOfResources, "cannot make a socket: {}", std::strerror(errno));
    return fd;
}

}  // namespace

bool ControlReply::send(std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

host::Result<std::unique_ptr<ControlServer>> ControlServer::listen(const std::filesystem::path& path) {
    sockaddr_un address;
    TRY_ASSIGN(const int fd, open_socket(path, address));
    ::unlink(path.c_str());
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(fd, 16) != 0) {
        const int why = errno;
        ::close(fd);
        return host::failure(ErrorCode::AccessFailed, "cannot listen at {}: {}", path.string(), std::strerror(why));
    }
    return std::unique_ptr<ControlServer>(new ControlServer(fd));
}

void ControlServer::serve() {
    accepting_ = std::thread([this] { accept_all(); });
}

void ControlServer::abandon() {
    ::close(fd_);
    fd_ = -1;
}

ControlServer::~ControlServer() {
    if (fd_ < 0) return;
    ::shutdown(fd_, SHUT_RDWR);
    if (accepting_.joinable()) accepting_.join();
    std::unique_lock lock(mutex_);
    ending_ = true;
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    idle_.wait(lock, [this] { return open_.empty(); });
    ::close(fd_);
}

void ControlServer::accept_all() {
    for (;;) {
        const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0 && errno == EINTR) continue;
        if (fd < 0) return;
        const std::lock_guard lock(mutex_);
        open_.push_back(fd);
        std::thread([this, fd] { answer(fd); }).detach();
    }
}

void ControlServer::answer(int fd) {
    std::string line;
    char c = 0;
    while (line.size() < kLongestRequest && ::read(fd, &c, 1) == 1 && c != '\n') line += c;
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    ControlReply reply(fd);
    if (const auto handler = words.empty() ? handlers_.end() : handlers_.find(words[0]); handler != handlers_.end())
        handler->second(words, reply);
    const std::lock_guard lock(mutex_);
    ::close(fd);
    std::erase(open_, fd);
    idle_.notify_all();
}

bool send_descriptor(int socket, int fd) {
    char byte = '+';
    iovec data{&byte, 1};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

int receive_descriptor(int socket) {
    char byte = 0;
    iovec data{&byte, 1};
    int fd = -1;
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof fd))
        return -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}

host::Result<int> open_request(const std::filesystem::path& socket, const std::string& request) {
    sockaddr_un address;
    TRY_ASSIGN(const int fd, open_socket(socket, address));
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        ControlReply(fd).send(request + "\n"))
        return fd;
    const int why = errno;
    ::close(fd);
    return host::failure(ErrorCode::NotFound, "the board does not answer: {}", std::strerror(why));
}

host::Result<void> ask_board(const std::filesystem::path& socket, const std::string& request,
                             const std::function<void(std::string_view)>& received) {
    TRY_ASSIGN(const int fd, open_request(socket, request));
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) received({buffer, static_cast<std::size_t>(n)});
    ::close(fd);
    if (n < 0) return host::failure(ErrorCode::NotFound, "the board's answer broke off: {}", std::strerror(errno));
    return {};
}

host::Result<std::string> ask_board(const std::filesystem::path& socket, const std::string& request) {
    std::string text;
    TRY(ask_board(socket, request, [&](std::string_view piece) { text += piece; }));
    return text;
}

}  // namespace talpa::board
