#include "board/linux/tracer.h"

namespace talpa::board {

std::optional<std::string> Tracer::Listener::next(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, at_most, [this] { return !lines_.empty(); });
    if (lines_.empty()) return std::nullopt;
    std::string line;
    if (dropped_ > 0) line = fmt::format("({} lines were dropped)\n", dropped_);
    dropped_ = 0;
    line += lines_.front();
    lines_.pop_front();
    return line;
}

std::shared_ptr<Tracer::Listener> Tracer::listen(unsigned sources) {
    auto listener = std::make_shared<Listener>();
    listener->sources_ = sources;
    const std::lock_guard lock(mutex_);
    listeners_.push_back(listener);
    wanted_ |= sources;
    return listener;
}

void Tracer::put(TraceSource source, std::string_view text) {
    const auto number = static_cast<unsigned>(source);
    const std::lock_guard lock(mutex_);
    // Taken under the lock, so that times rise from line to line.
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const std::string line = fmt::format("[{:12.6f}] {:5} {}\n", seconds, kTraceSources[number], text);
    unsigned still = 0;
    std::erase_if(listeners_, [&](const std::weak_ptr<Listener>& weak) {
        const auto listener = weak.lock();
        if (!listener) return true;
        still |= listener->sources_;
        if ((listener->sources_ & (1u << number)) == 0) return false;
        const std::lock_guard its(listener->mutex_);
        if (listener->lines_.size() >= Listener::kMostLines) {
            listener->lines_.pop_front();
            ++listener->dropped_;
        }
        listener->lines_.push_back(line);
        listener->came_.notify_one();
        return false;
    });
    wanted_ = still;
}

std::string show_bytes(std::string_view bytes, std::size_t most) {
    std::string out = "\"";
    for (const char c : bytes.substr(0, most)) {
        if (c == '\n')
            out += "\\n";
        else if (c == '\r')
            out += "\\r";
        else if (c == '"' || c == '\\')
            out += {'\\', c};
        else if (c >= ' ' && c <= '~')
            out += c;
        else
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    return out + (bytes.size() > most ? "\"…" : "\"");
}

}  // namespace talpa::board
