#include "remoteproc/shim/events.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "remoteproc/oci/settings.h"
#include "remoteproc/shim/shim_log.h"
#include "remoteproc/shim/wire.h"

namespace talpa::remoteproc::shim {
namespace {

constexpr std::size_t kMaxQueue = 2048;
constexpr int kMaxAttempts = 5, kAnswerMs = 5000, kFirstDelayMs = 200;

}  // namespace

EventPublisher::EventPublisher(Loop& loop, std::string address, std::string namespace_name)
    : loop_(loop), address_(std::move(address)), namespace_(std::move(namespace_name)) {
    if (address_.starts_with("unix://")) address_.erase(0, 7);
}

void EventPublisher::publish(std::string_view topic, std::string_view type, std::string_view event) {
    if (address_.empty()) return;
    WireWriter envelope;
    envelope.message(1, timestamp(unix_ns_now()));
    envelope.text(2, namespace_);
    envelope.text(3, topic);
    envelope.message(4, any(type, event));
    WireWriter forward;
    forward.message(1, envelope.bytes());
    // The first may be on its way, and its answer takes the first off the queue.
    if (queue_.size() >= kMaxQueue) queue_.erase(queue_.begin() + (awaited_ != 0 ? 1 : 0));
    Request request{"containerd.services.events.ttrpc.v1.Events", "Forward", forward.bytes(),
                    std::int64_t{kAnswerMs} * 1'000'000};
    queue_.push_back({request_bytes(request, namespace_), std::string(topic)});
    send_next();
}

bool EventPublisher::connect() {
    if (socket_) return true;
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    if (address_.size() >= sizeof where.sun_path) return false;
    std::memcpy(where.sun_path, address_.data(), address_.size());
    socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_ || ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) {
        socket_.reset();
        return false;
    }
    frames_ = FrameReader();
    next_stream_ = 1;
    loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { receive(); });
    return true;
}

void EventPublisher::send_next() {
    if (queue_.empty() || awaited_ != 0 || paused_) return;
    if (!connect()) return give_back(errno_text(errno));
    awaited_ = next_stream_;
    next_stream_ += 2;
    const std::string bytes = frame(awaited_, FrameType::Request, queue_.front().request);
    // An event is far smaller than a socket's buffer: what does not fit now means that containerd is stuck.
    if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
        return lost(errno_text(errno));
    loop_.after(kAnswerMs, [this, attempt = ++attempt_] {
        if (awaited_ != 0 && attempt == attempt_) lost("no answer");
    });
}

void EventPublisher::receive() {
    char buffer[4096];
    const ssize_t n = ::read(socket_.get(), buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return lost("connection closed");
    frames_.feed({buffer, static_cast<std::size_t>(n)});
    while (const auto answer = frames_.next()) {
        if (answer->stream != awaited_) continue;
        awaited_ = 0;
        const auto reply = parse_response(answer->payload);
        if (reply && *reply) {
            queue_.pop_front();
            send_next();
        } else {
            give_back(reply ? reply->error().message : "malformed answer");
        }
        return;
    }
}

void EventPublisher::lost(const std::string& why) {
    if (socket_) loop_.unwatch(socket_.get());
    socket_.reset();
    const bool waiting = awaited_ != 0;
    awaited_ = 0;
    if (waiting) give_back(why);
}

// A failed attempt: later again, and given up after the last, so that what comes behind it still arrives in order.
void EventPublisher::give_back(const std::string& why) {
    if (queue_.empty()) return;
    Waiting& first = queue_.front();
    if (++first.attempts >= kMaxAttempts) {
        shim_log(fmt::format("post event {}: {}; dropped", first.topic, why));
        queue_.pop_front();
        if (queue_.empty()) return;
    }
    paused_ = true;
    loop_.after(kFirstDelayMs << std::min(queue_.front().attempts, 5), [this] {
        paused_ = false;
        send_next();
    });
}

}  // namespace talpa::remoteproc::shim
