#include "remoteproc/shim/server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

#include "remoteproc/shim/shim_log.h"

namespace talpa::remoteproc::shim {
namespace {

constexpr std::size_t kMaxConnections = 256, kMaxBehind = 16 << 20;
constexpr int kNoFilesMs = 50;
constexpr std::string_view kServices[] = {"containerd.task.v2.Task", "containerd.task.v3.Task"};

bool same_user(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid() &&
           peer.gid == ::getegid();
}

}  // namespace

Server::Server(Loop& loop, TaskService& tasks, Fd listener)
    : loop_(loop), tasks_(tasks), listener_(std::move(listener)) {
    listen();
}

void Server::listen() {
    loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
}

void Server::stop_listening() {
    if (listener_) loop_.unwatch(listener_.get());
    listener_.reset();
}

void Server::accept() {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EMFILE || errno == ENFILE)) {
        // The caller stays in the queue, and the loop would turn for it without an end: looked at again a little later.
        loop_.unwatch(listener_.get());
        loop_.after(kNoFilesMs, [this] {
            if (listener_) listen();
        });
    }
    if (!socket) return;
    if (!same_user(socket.get()) || connections_.size() >= kMaxConnections) return;
    const int fd = socket.get();
    auto connection = std::make_shared<Connection>();
    connection->socket = std::move(socket);
    connections_[fd] = std::move(connection);
    loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t events) { ready(fd, events); });
}

void Server::close(int fd) {
    loop_.unwatch(fd);
    connections_.erase(fd);
}

void Server::ready(int fd, std::uint32_t events) {
    const auto found = connections_.find(fd);
    if (found == connections_.end()) return;
    const std::shared_ptr<Connection> connection = found->second;
    if ((events & EPOLLOUT) != 0) write(*connection);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    char buffer[16384];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return close(fd);
    connection->frames.feed({buffer, static_cast<std::size_t>(n)});
    while (const auto frame = connection->frames.next()) {
        handle(connection, *frame);
        if (!connections_.contains(fd)) return;
    }
}

void Server::handle(const std::shared_ptr<Connection>& connection, const Frame& frame) {
    const auto type = static_cast<FrameType>(frame.type);
    if (type == FrameType::Data) return;  // of streams, which this service has none of
    if (type != FrameType::Request) return close(connection->socket.get());
    const auto refuse = [&](Code code, std::string why) {
        answer(connection, frame.stream, std::unexpected(Status{code, std::move(why)}));
    };
    if (frame.stream % 2 == 0 || frame.stream <= connection->last_stream)
        return refuse(Code::InvalidArgument, fmt::format("stream id {} is even or was used before", frame.stream));
    connection->last_stream = frame.stream;
    if (frame.too_long)
        return refuse(Code::ResourceExhausted, fmt::format("message is longer than {} bytes", kMaxPayload));
    const auto request = parse_request(frame.payload);
    if (!request) return refuse(Code::InvalidArgument, "malformed request");
    bool known = false;
    for (const auto service : kServices) known = known || request->service == service;
    if (!known) return refuse(Code::Unimplemented, "service " + printable(request->service));
    shim_debug("call " + printable(request->method));
    tasks_.call(request->method, request->payload,
                [this, to = std::weak_ptr(connection), stream = frame.stream](const Reply& reply) {
                    answer(to, stream, reply);
                });
}

void Server::answer(const std::weak_ptr<Connection>& to, std::uint32_t stream, const Reply& reply) {
    const auto connection = to.lock();
    if (!connection || !connections_.contains(connection->socket.get())) return;  // the caller went away
    connection->out += frame(stream, FrameType::Response, response_bytes(reply));
    write(*connection);
}

void Server::write(Connection& connection) {
    const int fd = connection.socket.get();
    while (!connection.out.empty()) {
        const ssize_t n = ::send(fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN && connection.out.size() < kMaxBehind) break;
        if (n < 0) return close(fd);
        connection.out.erase(0, static_cast<std::size_t>(n));
    }
    loop_.change(fd, connection.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

bool Server::flushed() const {
    for (const auto& [fd, connection] : connections_)
        if (!connection->out.empty()) return false;
    return true;
}

}  // namespace talpa::remoteproc::shim
