#include "board/host/forward.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace talpa::board {
namespace {

/// One direction of a connection.
struct Stream {
    int from, to;
    std::array<char, 65536> buffer{};
    std::size_t begin = 0, end = 0;
    bool at_end = false;  ///< nothing more comes
    bool done = false;    ///< … and all of it went

    [[nodiscard]] bool wants_read() const { return !at_end && begin == end; }
    [[nodiscard]] bool wants_write() const { return begin < end; }
    void read() {
        const ssize_t n = ::read(from, buffer.data(), buffer.size());
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (n <= 0) {
            at_end = true;
            finish();
            return;
        }
        begin = 0;
        end = static_cast<std::size_t>(n);
    }
    void write() {
        const ssize_t n = ::write(to, buffer.data() + begin, end - begin);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (n < 0) {  // nobody takes it any more
            at_end = done = true;
            begin = end;
            return;
        }
        begin += static_cast<std::size_t>(n);
        if (begin == end && at_end) finish();
    }
    void finish() {
        done = true;
        ::shutdown(to, SHUT_WR);  // means nothing to what is no socket
    }
};

host::Result<std::uint16_t> parse_port(const std::string& text, const std::string& whole) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > 65535)
        return host::failure(ErrorCode::InvalidArgument, "'{}' is no port: PORT or PORT:BOARDPORT, up to 65535", whole);
    return static_cast<std::uint16_t>(value);
}

void set_nonblocking(int fd) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

host::Result<PublishedPort> parse_published(const std::string& text) {
    const auto colon = text.find(':');
    PublishedPort port;
    TRY_ASSIGN(port.outside, parse_port(text.substr(0, colon), text));
    port.inside = port.outside;
    if (colon != std::string::npos) {
        TRY_ASSIGN(port.inside, parse_port(text.substr(colon + 1), text));
    }
    if (port.inside == 0)
        return host::failure(ErrorCode::InvalidArgument, "'{}': the board's port must be given (0:BOARDPORT)", text);
    return port;
}

int connect_local(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int error = errno;
        ::close(fd);
        return -error;
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

void relay(int in, int out, int socket, int stop) {
    for (const int fd : {in, out, socket}) set_nonblocking(fd);
    auto there = std::make_unique<Stream>(Stream{in, socket}), back = std::make_unique<Stream>(Stream{socket, out});
    while (!there->done || !back->done) {
        std::array<pollfd, 4> fds{};
        Stream* readers[4] = {};
        Stream* writers[4] = {};
        nfds_t count = 0;
        fds[count++] = {stop, POLLIN, 0};  // poll ignores -1
        const auto add = [&](int fd, Stream* reads, Stream* writes) {
            short events = 0;
            if (reads != nullptr && reads->wants_read()) events |= POLLIN;
            if (writes != nullptr && writes->wants_write()) events |= POLLOUT;
            if (events == 0) return;  // asked for nothing, it would still report its end, again and again
            readers[count] = reads;
            writers[count] = writes;
            fds[count++] = {fd, events, 0};
        };
        add(in, there.get(), in == out ? back.get() : nullptr);
        if (in != out) add(out, nullptr, back.get());
        add(socket, back.get(), there.get());
        if (::poll(fds.data(), count, -1) < 0 && errno != EINTR) return;
        if (fds[0].revents != 0) return;
        for (nfds_t i = 1; i < count; ++i) {
            if (fds[i].revents == 0) continue;
            if (readers[i] != nullptr && readers[i]->wants_read()) readers[i]->read();
            if (writers[i] != nullptr && writers[i]->wants_write()) writers[i]->write();
        }
        if (back->done) return;  // the server has said its last word: nobody reads what else would be sent
    }
}

/// Shared with the threads of connections.
struct Forwarder::State {
    int listener = -1;
    int stop = -1;
    PublishedPort port;
    std::mutex mutex;
    std::condition_variable idle;
    unsigned connections = 0;
    Connect connect;
    std::thread accepting;

    void accept_all();
    void connection(int client) const;
};

Forwarder::Forwarder(std::shared_ptr<State> state) : state_(std::move(state)) {}

host::Result<std::unique_ptr<Forwarder>> Forwarder::listen(const std::string& address, PublishedPort port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port.outside);
    if (::inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1)
        return host::failure(ErrorCode::InvalidArgument, "'{}' is no IPv4 address", address);
    auto state = std::make_shared<State>();
    std::unique_ptr<Forwarder> forwarder(new Forwarder(state));
    state->listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    state->stop = ::eventfd(0, EFD_CLOEXEC);
    const int on = 1;
    ::setsockopt(state->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socklen_t size = sizeof at;
    if (state->listener < 0 || ::bind(state->listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
        ::listen(state->listener, 64) != 0 ||
        ::getsockname(state->listener, reinterpret_cast<sockaddr*>(&at), &size) != 0)
        return host::failure(ErrorCode::AccessFailed, "cannot listen at {}:{}: {}", address, port.outside,
                             std::strerror(errno));
    state->port = {ntohs(at.sin_port), port.inside};
    return forwarder;
}

std::unique_ptr<Forwarder> Forwarder::adopt(int listener, PublishedPort port) {
    auto state = std::make_shared<State>();
    state->listener = listener;
    state->stop = ::eventfd(0, EFD_CLOEXEC);
    state->port = port;
    return std::unique_ptr<Forwarder>(new Forwarder(std::move(state)));
}

int Forwarder::listener() const {
    return state_->listener;
}

PublishedPort Forwarder::port() const {
    return state_->port;
}

void Forwarder::serve() {
    serve([port = state_->port.inside] { return connect_local(port); });
}

void Forwarder::serve(Connect connect) {
    state_->connect = std::move(connect);
    state_->accepting = std::thread([state = state_.get()] { state->accept_all(); });
}

void Forwarder::abandon() {
    ::close(state_->listener);
    state_->listener = -1;
}

Forwarder::~Forwarder() {
    const std::uint64_t one = 1;
    if (state_->stop >= 0) (void)!::write(state_->stop, &one, sizeof one);
    if (state_->accepting.joinable()) state_->accepting.join();
    {
        std::unique_lock lock(state_->mutex);
        state_->idle.wait(lock, [this] { return state_->connections == 0; });
    }
    for (const int fd : {state_->listener, state_->stop})
        if (fd >= 0) ::close(fd);
}

void Forwarder::State::accept_all() {
    for (;;) {
        pollfd fds[] = {{listener, POLLIN, 0}, {stop, POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
        if (fds[1].revents != 0) return;
        if (fds[0].revents == 0) continue;
        const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) continue;
        {
            const std::lock_guard lock(mutex);
            ++connections;
        }
        std::thread([this, client] {
            connection(client);
            const std::lock_guard lock(mutex);
            if (--connections == 0) idle.notify_all();
        }).detach();
    }
}

void Forwarder::State::connection(int client) const {
    const int server = connect();
    if (server < 0) {
        const linger reset{1, 0};  // what a client of a closed port sees
        ::setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    } else {
        const int on = 1;
        ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        relay(client, client, server, stop);
        ::close(server);
    }
    ::close(client);
}

}  // namespace talpa::board
