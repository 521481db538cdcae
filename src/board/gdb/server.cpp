#include "board/gdb/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "board/gdb/packet.h"
#include "board/gdb/session.h"

namespace talpa::board::gdb {
namespace {

using namespace std::chrono_literals;

bool send_all(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

/// The conversation; `wake`: readable when it must end (-1: nothing).
void converse(Machine& machine, int socket, int wake) {
    // The one before may be on its way out.
    for (int tries = 0; !machine.debug_claim(); ++tries) {
        if (tries == 30) return;
        std::this_thread::sleep_for(10ms);
    }
    struct Release {
        Machine& machine;
        ~Release() { machine.debug_release(); }
    } const release{machine};
    Session session(machine);
    PacketReader reader;
    std::string last;
    bool acknowledging = true;
    const auto send = [&](std::string_view payload) {
        last = framed(payload);
        return send_all(socket, last);
    };
    for (;;) {
        if (const auto stop = session.stopped(0ms); stop && !send(*stop)) return;
        // While the core runs its stop is noticed within that time; while it stands only the debugger can act.
        std::array<pollfd, 2> fds{{{socket, POLLIN, 0}, {wake, POLLIN, 0}}};
        const int ready = ::poll(fds.data(), wake < 0 ? 1 : 2, session.running() ? 5 : -1);
        if (ready < 0 && errno != EINTR) return;
        if (fds[1].revents != 0) return;
        if (ready <= 0 || fds[0].revents == 0) continue;
        std::array<char, 4096> buffer;
        const ssize_t n = ::recv(socket, buffer.data(), buffer.size(), 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        for (const Event& event : reader.feed({buffer.data(), static_cast<std::size_t>(n)})) {
            if (event.kind == Event::Kind::Interrupt) {
                session.interrupt();
                continue;
            }
            if (event.kind == Event::Kind::Nack) {
                if (!send_all(socket, last)) return;
                continue;
            }
            const bool good = event.kind == Event::Kind::Packet;
            if (acknowledging && !send_all(socket, good ? "+" : "-")) return;
            if (!good) continue;
            // Only an interrupt makes sense while the core runs; what else comes finds it standing still.
            if (session.running()) {
                session.interrupt();
                if (const auto stop = session.stopped(1000ms); stop && !send(*stop)) return;
            }
            const Session::Answer answer = session.handle(event.payload);
            if (answer.payload && !send(*answer.payload)) return;
            if (answer.detached) return;
            if (answer.leave_acknowledging) acknowledging = false;
            if (const auto stop = session.stopped(2ms); stop && !send(*stop)) return;  // a step is over at once
        }
    }
}

host::Result<int> bound(int family, const sockaddr* address, socklen_t size, const std::string& what) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (socket >= 0 && family == AF_INET) ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (socket >= 0 && ::bind(socket, address, size) == 0 && ::listen(socket, 1) == 0) return socket;
    const int error = errno;
    if (socket >= 0) ::close(socket);
    return host::failure(ErrorCode::AccessFailed, "cannot listen on {}: {}", what, std::strerror(error));
}

}  // namespace

void serve(Machine& machine, int socket) {
    converse(machine, socket, -1);
}

host::Result<std::unique_ptr<Listener>> Listener::on_port(Machine& machine, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TRY_ASSIGN(const int socket, bound(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address,
                                       fmt::format("port {}", port)));
    socklen_t size = sizeof address;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    return std::unique_ptr<Listener>(new Listener(machine, socket, ntohs(address.sin_port), {}));
}

host::Result<std::unique_ptr<Listener>> Listener::on_path(Machine& machine, const std::filesystem::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.native().size() >= sizeof address.sun_path)
        return host::failure(ErrorCode::InvalidArgument, "{} is too long for a socket", path.string());
    std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
    ::unlink(path.c_str());
    TRY_ASSIGN(const int socket,
               bound(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address, path.string()));
    return std::unique_ptr<Listener>(new Listener(machine, socket, 0, path));
}

Listener::Listener(Machine& machine, int socket, std::uint16_t port, std::filesystem::path path)
    : machine_(machine),
      listening_(socket),
      wake_(::eventfd(0, EFD_CLOEXEC)),
      port_(port),
      path_(std::move(path)),
      thread_([this] { run(); }) {}

Listener::~Listener() {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_, &one, sizeof one));
    thread_.join();
    ::close(listening_);
    ::close(wake_);
    if (!path_.empty()) ::unlink(path_.c_str());
}

void Listener::run() {
    for (;;) {
        std::array<pollfd, 2> fds{{{listening_, POLLIN, 0}, {wake_, POLLIN, 0}}};
        if (::poll(fds.data(), 2, -1) < 0 && errno != EINTR) return;
        if (fds[1].revents != 0) return;
        if (fds[0].revents == 0) continue;
        const int socket = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
        if (socket < 0) continue;
        const int on = 1;
        ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        converse(machine_, socket, wake_);
        ::close(socket);
    }
}

}  // namespace talpa::board::gdb
