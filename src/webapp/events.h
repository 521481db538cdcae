// Who listens to /api/events, and what they are told. (WHATWG HTML, section 9.2: server-sent events)
#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/host/json.h"
#include "webapp/http/message.h"

namespace talpa::webapp {

class EventHub {
  public:
    /// Takes a listener in and greets it; false when there are too many.
    bool add(std::shared_ptr<http::EventStream> stream, const host::Json& greeting);
    void send(std::string_view event, const host::Json& data);
    /// A comment, so that proxies and browsers know that the connection lives.
    void beat();
    [[nodiscard]] std::size_t listeners();
    [[nodiscard]] bool full() { return listeners() >= kMaxListeners; }

  private:
    static constexpr std::size_t kMaxListeners = 128;
    std::mutex mutex_;
    std::vector<std::shared_ptr<http::EventStream>> streams_;
};

}  // namespace talpa::webapp
