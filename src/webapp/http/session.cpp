#include "webapp/http/session.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <deque>

namespace talpa::webapp::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using beast::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kHeaderBytes = 16 << 10;
constexpr std::size_t kEventBytes = 256 << 10;  // that a slow reader may leave waiting
constexpr std::uint64_t kLeastBytesPerSecond = 4 << 10;
constexpr std::size_t kLingerBytes = 64 << 20;

class Session final : public Connection, public std::enable_shared_from_this<Session> {
  public:
    Session(Connections& connections, tcp::socket socket) : connections_(connections), stream_(std::move(socket)) {
        error_code error;
        const auto endpoint = stream_.socket().remote_endpoint(error);
        if (!error) peer_ = endpoint.address().to_string();
        stream_.socket().set_option(tcp::no_delay(true), error);
    }
    ~Session() override {
        connections_.unbook(booked_);
        connections_.forget(this);
    }

    void read_head() {
        parser_.emplace();
        parser_->header_limit(kHeaderBytes);
        parser_->body_limit(boost::none);  // decided when the head is known
        connections_.idle(this, true);
        stream_.expires_after(std::chrono::seconds(connections_.options.header_timeout_s));
        beast::http::async_read_header(stream_, buffer_, *parser_,
                                       [self = shared_from_this()](error_code error, std::size_t) {
                                           self->connections_.idle(self.get(), false);
                                           self->head_arrived(error);
                                       });
    }
    void close() override {
        error_code ignored;
        stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
        stream_.socket().close(ignored);
    }
    void respond(std::uint64_t id, Response response);
    void open_events(std::uint64_t id);
    void push(std::string text);
    void set_gone(std::uint64_t id, std::function<void()> callback) {
        if (id != exchange_ || left_ || half_)
            callback();
        else
            gone_ = std::move(callback);
    }
    [[nodiscard]] asio::io_context& io() { return connections_.io; }
    std::atomic<bool> closed_{false};  ///< of an event stream

  private:
    void head_arrived(error_code error);
    void read_body();
    void body_complete();
    void watch();
    void refuse(Response response);
    void write(Response response, bool last);
    void linger();
    void write_events();

    Connections& connections_;
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    std::optional<beast::http::request_parser<beast::http::string_body>> parser_;
    std::string peer_;
    Request request_;
    std::uint64_t booked_ = 0;
    std::uint64_t exchange_ = 0;  ///< number of the one that waits
    bool half_ = false;           ///< the client sends nothing any more; it may still read
    bool answered_ = true, left_ = false, head_only_ = false, keep_ = false;
    std::function<void()> gone_;
    Clock::time_point head_at_, body_at_;
    std::size_t lingered_ = 0;
    std::deque<std::string> events_;
    std::size_t events_bytes_ = 0;
    bool streaming_ = false, events_writing_ = false;
};

class SessionExchange final : public Exchange {
  public:
    SessionExchange(std::shared_ptr<Session> session, std::uint64_t id) : session_(std::move(session)), id_(id) {}
    ~SessionExchange() override {
        // Nobody answered: a fault of ours, but the client must not wait for ever.
        if (!done_.exchange(true))
            send({.status = 500,
                  .content_type = "text/plain",
                  .body = "not answered\n",
                  .fixed_body = {},
                  .headers = {}});
    }
    void respond(Response response) override {
        if (!done_.exchange(true)) send(std::move(response));
    }
    std::shared_ptr<EventStream> open_events() override;
    void on_gone(std::function<void()> callback) override {
        asio::post(session_->io(), [s = session_, id = id_, callback = std::move(callback)]() mutable {
            s->set_gone(id, std::move(callback));
        });
    }

  private:
    void send(Response response) {
        asio::post(session_->io(), [s = session_, id = id_, response = std::move(response)]() mutable {
            s->respond(id, std::move(response));
        });
    }
    std::shared_ptr<Session> session_;
    std::uint64_t id_;
    std::atomic<bool> done_{false};
};

class SessionEvents final : public EventStream {
  public:
    explicit SessionEvents(std::shared_ptr<Session> session) : session_(std::move(session)) {}
    void push(std::string text) override {
        if (closed()) return;
        asio::post(session_->io(), [s = session_, text = std::move(text)]() mutable { s->push(std::move(text)); });
    }
    bool closed() const override { return session_->closed_; }

  private:
    std::shared_ptr<Session> session_;
};

std::shared_ptr<EventStream> SessionExchange::open_events() {
    if (done_.exchange(true)) return nullptr;
    asio::post(session_->io(), [s = session_, id = id_] { s->open_events(id); });
    return std::make_shared<SessionEvents>(session_);
}

/// What came is no HTTP, as against nothing more coming.
bool is_malformed(error_code error) {
    return error && error.category() == make_error_code(beast::http::error::bad_version).category() &&
           error != beast::http::error::end_of_stream && error != beast::http::error::partial_message;
}

void Session::head_arrived(error_code error) {
    if (error == beast::error::timeout) ++connections_.timeouts;
    if (error == beast::http::error::header_limit)
        return refuse(connections_.handler->trouble(431, "the head is too long"));
    if (is_malformed(error)) return refuse(connections_.handler->trouble(400, error.message()));
    if (error) return close();
    head_at_ = Clock::now();
    const auto& message = parser_->get();
    request_ = {};
    request_.method = std::string(message.method_string());
    request_.peer = peer_;
    for (const auto& field : message) {
        std::string name(field.name_string());
        for (char& c : name)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
        request_.headers[name] = std::string(field.value());
    }
    head_only_ = request_.method == "HEAD";
    const auto target = message.target();
    if (!parse_target({target.data(), target.size()}, request_))
        return refuse(connections_.handler->trouble(400, "the request target is no path"));

    const Admission admission = connections_.handler->admit(request_);
    if (admission.refusal) return refuse(*admission.refusal);
    const auto length = parser_->content_length();
    const bool has_body = !parser_->is_done();
    if (length && *length > admission.body_limit)
        return refuse(connections_.handler->trouble(
            413, fmt::format("{} bytes, more than the limit of {}", *length, admission.body_limit)));
    if (has_body) {
        const std::uint64_t bytes = length ? *length : admission.body_limit;
        if (!connections_.book(bytes))
            return refuse(connections_.handler->trouble(503, "too many uploads at the same time"));
        booked_ += bytes;
        parser_->body_limit(admission.body_limit);
        if (length) parser_->get().body().reserve(*length);
        if (beast::iequals(request_.header("expect"), "100-continue")) {
            static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
            asio::async_write(stream_, asio::buffer(kContinue),
                              [self = shared_from_this()](error_code failed, std::size_t) {
                                  if (failed) return self->close();
                                  self->body_at_ = Clock::now();
                                  self->read_body();
                              });
            return;
        }
    }
    body_at_ = Clock::now();
    read_body();
}

void Session::read_body() {
    if (parser_->is_done()) return body_complete();
    stream_.expires_after(std::chrono::seconds(connections_.options.stall_timeout_s));
    beast::http::async_read_some(
        stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
            if (error == beast::http::error::body_limit)
                return self->refuse(self->connections_.handler->trouble(413, "the body is larger than the limit"));
            if (error == beast::error::timeout) ++self->connections_.timeouts;
            if (is_malformed(error)) return self->refuse(self->connections_.handler->trouble(400, error.message()));
            if (error) return self->close();
            // A trickle is a stall too.
            const auto seconds =
                std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - self->body_at_).count();
            const auto grace = static_cast<long>(self->connections_.options.stall_timeout_s);
            if (seconds > grace && self->parser_->get().body().size() <
                                       static_cast<std::uint64_t>(seconds - grace) * kLeastBytesPerSecond) {
                ++self->connections_.timeouts;
                return self->close();
            }
            self->read_body();
        });
}

void Session::body_complete() {
    stream_.expires_never();
    keep_ = parser_->keep_alive();
    request_.body = std::move(parser_->get().body());
    request_.receive_ms = std::chrono::duration<double, std::milli>(Clock::now() - head_at_).count();
    ++exchange_;
    answered_ = false;
    left_ = half_ = false;
    watch();
    connections_.handler->handle(std::move(request_), std::make_shared<SessionExchange>(shared_from_this(), exchange_));
}

/// Notices that the client has left while it waits. One that only closes its half looks the same: what it waits for in
/// the queue is dropped, an answer that comes at once it gets.
void Session::watch() {
    stream_.socket().async_wait(tcp::socket::wait_read, [self = shared_from_this(), id = exchange_](error_code error) {
        if (error || id != self->exchange_ || (self->answered_ && !self->streaming_)) return;
        char byte = 0;
        const ssize_t n = ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;  // the next request: it can wait
        if (n == 0 && !self->streaming_) {
            self->half_ = true;
            if (const auto gone = std::exchange(self->gone_, nullptr)) gone();
            return;
        }
        self->left_ = true;
        self->closed_ = true;
        if (const auto gone = std::exchange(self->gone_, nullptr)) gone();
        self->close();
    });
}

void Session::respond(std::uint64_t id, Response response) {
    if (id != exchange_ || answered_) return;
    answered_ = true;
    gone_ = nullptr;
    error_code ignored;
    stream_.socket().cancel(ignored);  // the watch
    connections_.unbook(booked_);
    booked_ = 0;
    if (left_) return;
    write(std::move(response), !keep_ || half_ || connections_.stopping);
}

void Session::refuse(Response response) {
    keep_ = false;
    write(std::move(response), true);
}

template <typename Body>
void put_head(beast::http::response<Body>& message, const Response& response, bool last) {
    message.version(11);
    message.result(static_cast<unsigned>(response.status));
    message.set(beast::http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(!last);
}

void Session::write(Response response, bool last) {
    stream_.expires_after(std::chrono::seconds(connections_.options.stall_timeout_s));
    const auto written = [self = shared_from_this(), last](error_code error) {
        if (error) return self->close();
        if (last || self->connections_.stopping) return self->linger();
        self->read_head();
    };
    const std::string_view text = response.fixed_body.empty() ? std::string_view(response.body) : response.fixed_body;
    if (head_only_) {
        auto message = std::make_shared<beast::http::response<beast::http::string_body>>();
        put_head(*message, response, last);
        message->content_length(text.size());
        auto serializer = std::make_shared<beast::http::response_serializer<beast::http::string_body>>(*message);
        beast::http::async_write_header(stream_, *serializer,
                                        [message, serializer, written](error_code error, std::size_t) {
                                            written(error == beast::http::error::need_buffer ? error_code() : error);
                                        });
        return;
    }
    // The body is written from where it lies; the response lives until that is done.
    auto kept = std::make_shared<Response>(std::move(response));
    const std::string_view body = kept->fixed_body.empty() ? std::string_view(kept->body) : kept->fixed_body;
    auto message = std::make_shared<beast::http::response<beast::http::span_body<const char>>>();
    put_head(*message, *kept, last);
    message->body() = beast::span<const char>(body.data(), body.size());
    message->prepare_payload();
    beast::http::async_write(stream_, *message,
                             [message, kept, written](error_code error, std::size_t) { written(error); });
}

/// Closes so that the client sees the answer even if it is still sending what was not read.
void Session::linger() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    if (lingered_ == 0) stream_.expires_after(std::chrono::seconds(2));  // in all
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(64 << 10), [self = shared_from_this()](error_code error, std::size_t n) {
        self->lingered_ += n + 1;
        if (error || self->lingered_ > kLingerBytes || self->connections_.stopping) return self->close();
        self->linger();
    });
}

void Session::open_events(std::uint64_t id) {
    if (id != exchange_ || answered_ || left_ || half_) {
        closed_ = true;
        return;
    }
    answered_ = true;
    streaming_ = true;
    connections_.unbook(booked_);
    booked_ = 0;
    push(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n"
        "X-Content-Type-Options: nosniff\r\nX-Accel-Buffering: no\r\n\r\n");
}

void Session::push(std::string text) {
    if (closed_) return;
    events_bytes_ += text.size();
    events_.push_back(std::move(text));
    if (events_bytes_ > kEventBytes) {
        closed_ = true;
        ++connections_.dropped;
        return close();
    }
    if (!events_writing_) write_events();
}

void Session::write_events() {
    if (events_.empty()) return;
    events_writing_ = true;
    stream_.expires_after(std::chrono::seconds(connections_.options.stall_timeout_s));
    asio::async_write(stream_, asio::buffer(events_.front()),
                      [self = shared_from_this()](error_code error, std::size_t) {
                          self->events_writing_ = false;
                          self->stream_.expires_never();
                          if (error) {
                              self->closed_ = true;
                              return self->close();
                          }
                          self->events_bytes_ -= self->events_.front().size();
                          self->events_.pop_front();
                          self->write_events();
                      });
}

}  // namespace

void open_session(Connections& connections, tcp::socket socket) {
    // A worker or a stream of events may be the last that holds it, but only this thread may touch what it belongs to;
    // when it serves no more, one after another may.
    const auto retire = [&connections](Session* session) {
        std::unique_ptr<Session> last(session);
        if (!connections.io.stopped()) return asio::dispatch(connections.io, [last = std::move(last)] {});
        const std::scoped_lock lock(connections.after_the_end);
        last.reset();
    };
    const std::shared_ptr<Session> session(new Session(connections, std::move(socket)), retire);
    connections.add(session.get());
    session->read_head();
}

}  // namespace talpa::webapp::http
