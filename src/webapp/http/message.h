// What the server and the application say to each other: a request that has been read whole, a response, and the
// exchange that may be answered later and from any thread. Nothing of the HTTP library shows here.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace talpa::webapp::http {

/// A request's head, which decides whether its body is read at all.
struct Head {
    std::string method;
    std::string path;                            ///< percent-decoded, without the query
    std::map<std::string, std::string> query;    ///< decoded; the last of a name
    std::map<std::string, std::string> headers;  ///< names in lower case; the last of a name
    std::string peer;                            ///< address of the client

    [[nodiscard]] std::string header(const std::string& lower_name) const {
        const auto at = headers.find(lower_name);
        return at == headers.end() ? std::string() : at->second;
    }
    [[nodiscard]] std::string query_value(const std::string& name) const {
        const auto at = query.find(name);
        return at == query.end() ? std::string() : at->second;
    }
};

struct Request : Head {
    std::string body;
    double receive_ms = 0;  ///< from the head's arrival to the body's end
};

struct Response {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
    std::string_view fixed_body;  ///< instead of `body`, where it is text that lives for ever
    std::vector<std::pair<std::string, std::string>> headers;
};

/// A stream of server-sent events. Any thread; what a slow reader does not take is dropped with the connection.
class EventStream {
  public:
    virtual ~EventStream() = default;
    virtual void push(std::string text) = 0;
    [[nodiscard]] virtual bool closed() const = 0;
};

/// One request that waits for its answer. Any thread.
class Exchange {
  public:
    virtual ~Exchange() = default;
    /// The first call counts.
    virtual void respond(Response response) = 0;
    /// Answers with an event stream instead.
    [[nodiscard]] virtual std::shared_ptr<EventStream> open_events() = 0;
    /// `callback` is called once, on the server's thread, if the client leaves before it was answered.
    virtual void on_gone(std::function<void()> callback) = 0;
};

/// "%41+b" -> "A+b" ("+" is a space when `plus_is_space`). Malformed escapes stay as they are.
[[nodiscard]] std::string percent_decoded(std::string_view text, bool plus_is_space);
/// Splits a request target into path and query; false when it is no absolute path.
[[nodiscard]] bool parse_target(std::string_view target, Head& head);

}  // namespace talpa::webapp::http
