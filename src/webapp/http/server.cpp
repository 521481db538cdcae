#include "webapp/http/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "webapp/http/connections.h"
#include "webapp/http/session.h"

namespace talpa::webapp::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class AsioServer final : public Server {
  public:
    AsioServer(const ServerOptions& options, std::unique_ptr<asio::io_context> io, tcp::acceptor acceptor)
        : connections_(options, *io), io_(std::move(io)), acceptor_(std::move(acceptor)), grace_(*io_) {}
    static host::Result<std::unique_ptr<Server>> make(const ServerOptions& options);

    std::uint16_t port() const override {
        error_code ignored;
        return acceptor_.local_endpoint(ignored).port();
    }
    void run(Handler& handler) override {
        connections_.handler = &handler;
        accept();
        connections_.io.run();
    }
    void stop() override;
    ServerCounts counts() const override {
        return {connections_.connected.load(), connections_.accepted.load(), connections_.dropped.load(),
                connections_.timeouts.load()};
    }

  private:
    void accept();

    // The order in which they must go, from the last: what is under way on the context holds connections.
    Connections connections_;
    std::unique_ptr<asio::io_context> io_;
    tcp::acceptor acceptor_;
    asio::steady_timer grace_;
};

void AsioServer::accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
        if (error == asio::error::operation_aborted || connections_.stopping) return;
        if (error) {
            // Out of descriptors, as a rule: whoever waits longest goes.
            connections_.close_longest_idle();
            grace_.expires_after(std::chrono::milliseconds(50));
            grace_.async_wait([this](error_code) { accept(); });
            return;
        }
        ++connections_.accepted;
        const std::size_t most = connections_.options.max_connections;
        if (connections_.size() >= most && connections_.close_longest_idle()) ++connections_.dropped;
        if (connections_.size() < most + 8)
            open_session(connections_, std::move(socket));
        else
            ++connections_.dropped;
        accept();
    });
}

void AsioServer::stop() {
    asio::post(connections_.io, [this] {
        if (connections_.stopping) return;
        connections_.stopping = true;
        error_code ignored;
        acceptor_.close(ignored);
        // What waits for a request goes now; answers that are being made or written get half a second.
        connections_.close_idle();
        grace_.expires_after(std::chrono::milliseconds(500));
        grace_.async_wait([this](error_code) { connections_.io.stop(); });
    });
}

host::Result<std::unique_ptr<Server>> AsioServer::make(const ServerOptions& options) {
    error_code error;
    const auto failed = [&](const char* doing) {
        return host::failure(ErrorCode::AccessFailed, "cannot {} {}:{}: {}", doing, options.address, options.port,
                             error.message());
    };
    const auto address = asio::ip::make_address(options.address, error);
    if (error) return failed("listen on");
    auto io = std::make_unique<asio::io_context>(1);
    tcp::acceptor acceptor(*io);
    const tcp::endpoint endpoint(address, options.port);
    acceptor.open(endpoint.protocol(), error);
    if (error) return failed("open");
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (address.is_v6()) acceptor.set_option(asio::ip::v6_only(false), error);
    acceptor.bind(endpoint, error);
    if (error) return failed("bind to");
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) return failed("listen on");
    return std::make_unique<AsioServer>(options, std::move(io), std::move(acceptor));
}

}  // namespace

host::Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options) {
    return AsioServer::make(options);
}

}  // namespace talpa::webapp::http
