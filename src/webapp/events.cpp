#include "webapp/events.h"

#include <fmt/format.h>

namespace talpa::webapp {
namespace {

std::string frame(std::string_view event, const host::Json& data) {
    return fmt::format("event: {}\ndata: {}\n\n", event,
                       data.dump(-1, ' ', false, host::Json::error_handler_t::replace));
}

}  // namespace

bool EventHub::add(std::shared_ptr<http::EventStream> stream, const host::Json& greeting) {
    stream->push("retry: 1000\n" + frame("hello", greeting));
    const std::scoped_lock lock(mutex_);
    std::erase_if(streams_, [](const auto& s) { return s->closed(); });
    if (streams_.size() >= kMaxListeners) return false;
    streams_.push_back(std::move(stream));
    return true;
}

void EventHub::send(std::string_view event, const host::Json& data) {
    const std::scoped_lock lock(mutex_);
    if (streams_.empty()) return;
    const std::string text = frame(event, data);
    std::erase_if(streams_, [](const auto& s) { return s->closed(); });
    for (const auto& stream : streams_) stream->push(text);
}

void EventHub::beat() {
    const std::scoped_lock lock(mutex_);
    std::erase_if(streams_, [](const auto& s) { return s->closed(); });
    for (const auto& stream : streams_) stream->push(": still here\n\n");
}

std::size_t EventHub::listeners() {
    const std::scoped_lock lock(mutex_);
    std::erase_if(streams_, [](const auto& s) { return s->closed(); });
    return streams_.size();
}

}  // namespace talpa::webapp
