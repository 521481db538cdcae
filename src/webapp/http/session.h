// One connection, from its first request to its last answer or the end of its event stream.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "webapp/http/connections.h"

namespace talpa::webapp::http {

/// Serves requests from it until it is closed; it lives as long as something on it is under way.
void open_session(Connections& connections, boost::asio::ip::tcp::socket socket);

}  // namespace talpa::webapp::http
