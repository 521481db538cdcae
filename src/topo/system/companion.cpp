#include "topo/system/companion.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "topo/system/child.h"

namespace talpa::topo {

struct Companion::Parts {
    Child child;
    host::Fd in, out, err;
    std::string line;
    bool gone = false;
};

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMostSaid = 1 << 16;

// Whether there was something to read, or the end.
void take(host::Fd& fd, std::string& text) {
    std::array<char, 4096> buffer;
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) return fd.reset();
    if (text.size() < kMostSaid) text.append(buffer.data(), static_cast<std::size_t>(n));
}

}  // namespace

Companion::Companion(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

host::Result<std::unique_ptr<Companion>> Companion::start(const Command& command, Outcome& failed) {
    if (interrupted()) return std::unexpected(interruption());
    TRY_ASSIGN(PipeEnds in, make_pipe());
    TRY_ASSIGN(PipeEnds out, make_pipe());
    TRY_ASSIGN(PipeEnds err, make_pipe());
    TRY_ASSIGN(Child child, Child::start(command, {.in = in.read.get(), .out = out.write.get(), .err = err.write.get()},
                                         Group::Own));
    auto parts = std::make_unique<Parts>(
        Parts{std::move(child), std::move(in.write), std::move(out.read), std::move(err.read), {}, false});
    in.read.reset();
    out.write.reset();
    err.write.reset();
    failed = {};
    const auto end = Clock::now() + command.timeout;
    std::size_t line_end = std::string::npos;
    while ((line_end = failed.out.find('\n')) == std::string::npos && (parts->out || parts->err)) {
        if (interrupted()) return std::unexpected(interruption());
        if (command.timeout.count() > 0 && Clock::now() >= end) {
            failed.timed_out = true;
            break;
        }
        // A pipe that has ended is -1, which poll() passes over. Interrupts are looked for five times a second.
        pollfd fds[2] = {{parts->out.get(), POLLIN, 0}, {parts->err.get(), POLLIN, 0}};
        if (::poll(fds, 2, 200) <= 0) continue;
        if (fds[0].revents != 0) take(parts->out, failed.out);
        if (fds[1].revents != 0) take(parts->err, failed.err);
    }
    if (line_end != std::string::npos) {
        parts->line = failed.out.substr(0, line_end);
        return std::unique_ptr<Companion>(new Companion(std::move(parts)));
    }
    const auto status = failed.timed_out ? std::nullopt : parts->child.wait_for(Milliseconds(3000));
    failed.status = status ? *status : parts->child.stop();
    return std::unique_ptr<Companion>();
}

Companion::~Companion() {
    parts_->in.reset();
    if (!ended() && !parts_->child.wait_for(Milliseconds(3000))) parts_->child.stop();
}

const std::string& Companion::first_line() const {
    return parts_->line;
}

bool Companion::say(std::string_view line) {
    const std::string text = std::string(line) + "\n";
    ssize_t n = 0;
    do {
        n = ::write(parts_->in.get(), text.data(), text.size());
    } while (n < 0 && errno == EINTR);
    return n == static_cast<ssize_t>(text.size());
}

bool Companion::ended() {
    if (!parts_->gone) parts_->gone = parts_->child.wait_for(Milliseconds(0)).has_value();
    return parts_->gone;
}

}  // namespace talpa::topo
