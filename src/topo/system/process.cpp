#include "topo/system/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "topo/system/child.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Fd;
using Clock = std::chrono::steady_clock;

std::atomic<int> g_interrupts{0};
std::atomic<int> g_shields{0};      // how many live
std::atomic<int> g_shielded_at{0};  // interrupts when the first of them was made
int g_wake[2] = {-1, -1};           // a byte for every poll() that must notice the interrupt

void on_signal(int) {
    const int saved = errno;
    ++g_interrupts;
    if (g_wake[1] >= 0) [[maybe_unused]]
        const ssize_t n = ::write(g_wake[1], "x", 1);
    errno = saved;
}

/// What one round of poll() watches.
struct Watched {
    Fd* fd;
    short events;
    std::function<void()> ready;
};

enum class Ended { Closed, TimedOut, Interrupted };

// Serves the descriptors until all are closed.
Ended serve(std::vector<Watched>& all, Milliseconds timeout, const std::function<bool()>& stop_early = {}) {
    const auto end = Clock::now() + timeout;
    for (;;) {
        if (interrupted()) return Ended::Interrupted;
        if (stop_early && stop_early()) return Ended::Closed;
        std::vector<pollfd> fds;
        std::vector<Watched*> who;
        for (Watched& w : all)
            if (*w.fd) fds.push_back({w.fd->get(), w.events, 0}), who.push_back(&w);
        if (fds.empty()) return Ended::Closed;
        // Under a shield the pipe may be full of an interrupt that waits.
        if (g_shields == 0) fds.push_back({g_wake[0], POLLIN, 0});
        int wait_ms = -1;
        if (timeout.count() > 0) {
            const auto left = std::chrono::duration_cast<Milliseconds>(end - Clock::now()).count();
            if (left <= 0) return Ended::TimedOut;
            wait_ms = static_cast<int>(std::min<std::int64_t>(left, 60'000));
        }
        if (g_shields > 0) wait_ms = wait_ms < 0 ? 200 : std::min(wait_ms, 200);
        const int n = ::poll(fds.data(), fds.size(), wait_ms);
        if (n < 0 && errno != EINTR) return Ended::Closed;
        for (std::size_t i = 0; n > 0 && i < who.size(); ++i)
            if (fds[i].revents != 0) who[i]->ready();
    }
}

// Reads what is there; closes at the end.
void read_into(Fd& fd, std::string& text, std::size_t limit, bool& cut) {
    std::array<char, 65536> buffer;
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) return fd.reset();
    const std::size_t room = limit - std::min(limit, text.size());
    cut = cut || static_cast<std::size_t>(n) > room;
    text.append(buffer.data(), std::min(room, static_cast<std::size_t>(n)));
}

}  // namespace

void handle_interrupts() {
    if (::pipe2(g_wake, O_CLOEXEC | O_NONBLOCK) != 0) g_wake[0] = g_wake[1] = -1;
    struct sigaction action{};
    action.sa_handler = on_signal;
    sigemptyset(&action.sa_mask);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(s, &action, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() {
    return g_shields > 0 ? g_interrupts > g_shielded_at : g_interrupts > 0;
}

InterruptShield::InterruptShield() {
    if (g_shields++ == 0) g_shielded_at = g_interrupts.load();
}

InterruptShield::~InterruptShield() {
    --g_shields;
}

host::Error interruption() {
    return {ErrorCode::InvalidState, "interrupted"};
}

std::optional<std::filesystem::path> find_program(const std::string& name) {
    const auto runs = [](const std::string& path) {
        std::error_code ignored;
        return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
    };
    if (name.empty()) return std::nullopt;
    if (name.find('/') != std::string::npos)
        return runs(name) ? std::optional<std::filesystem::path>(name) : std::nullopt;
    for (const std::string& folder : split(environment("PATH"), ":")) {
        const std::string path = (folder.empty() ? "." : folder) + "/" + name;
        if (runs(path)) return path;
    }
    return std::nullopt;
}

// Captures both outputs while `bytes` go in.
static host::Result<Outcome> capture_once(const Command& command, std::string_view bytes, std::size_t limit_bytes,
                                          const std::function<void(std::uint64_t)>& sent) {
    if (interrupted()) return std::unexpected(interruption());
    TRY_ASSIGN(PipeEnds in, make_pipe());
    TRY_ASSIGN(PipeEnds out, make_pipe());
    TRY_ASSIGN(PipeEnds err, make_pipe());
    const int input = bytes.empty() ? host::kNothing : in.read.get();
    TRY_ASSIGN(Child child,
               Child::start(command, {.in = input, .out = out.write.get(), .err = err.write.get()}, Group::Own));
    in.read.reset();
    out.write.reset();
    err.write.reset();
    if (bytes.empty()) in.write.reset();
    Outcome outcome;
    if (in.write) set_nonblocking(in.write.get());
    std::size_t written = 0;
    Fd held;
    std::vector<Watched> all = {
        {&in.write, POLLOUT,
         [&] {
             const ssize_t n = ::write(in.write.get(), bytes.data() + written, bytes.size() - written);
             if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
             if (n > 0) written += static_cast<std::size_t>(n);
             if (sent) sent(written);
             if (written == bytes.size() && command.input_stays_open) held = std::move(in.write);
             if (n < 0 || written == bytes.size()) in.write.reset();
         }},
        {&out.read, POLLIN, [&] { read_into(out.read, outcome.out, limit_bytes, outcome.cut); }},
        {&err.read, POLLIN, [&] { read_into(err.read, outcome.err, limit_bytes, outcome.cut); }},
    };
    const Ended ended = serve(all, command.timeout, [&] { return outcome.cut; });
    if (ended != Ended::Closed || outcome.cut) {
        outcome.timed_out = ended == Ended::TimedOut;
        outcome.status = child.stop();
        if (ended == Ended::Interrupted) return std::unexpected(interruption());
        return outcome;
    }
    outcome.status = child.wait();
    return outcome;
}

static host::Result<Outcome> capture_with(const Command& command, std::string_view bytes, std::size_t limit_bytes,
                                          const std::function<void(std::uint64_t)>& sent) {
    constexpr Milliseconds kPauses[] = {Milliseconds(200), Milliseconds(600), Milliseconds(1500), Milliseconds(3000),
                                        Milliseconds(6000)};
    // More than pipes and ssh hold before the other side reads: then the command had begun, whatever ssh's words are.
    constexpr std::uint64_t kHeldOnTheWay = 4 << 20;
    const auto started = Clock::now();
    for (const Milliseconds pause : kPauses) {
        std::uint64_t taken = 0;
        auto outcome = capture_once(command, bytes, limit_bytes, [&](std::uint64_t written) {
            taken = written;
            if (sent) sent(written);
        });
        if (!outcome || command.not_begun == nullptr || !command.not_begun(*outcome)) return outcome;
        if (taken > kHeldOnTheWay) return outcome;
        if (command.timeout.count() > 0 && Clock::now() - started + pause > command.timeout) return outcome;
        // Others that were refused at the same moment shall not come back at the same moment.
        std::this_thread::sleep_for(pause + Milliseconds(::getpid() % 200));
    }
    return capture_once(command, bytes, limit_bytes, sent);
}

host::Result<Outcome> capture(const Command& command, std::size_t limit_bytes) {
    return capture_with(command, command.input, limit_bytes, {});
}

host::Result<Outcome> pass_through(const Command& command, Output output) {
    if (interrupted()) return std::unexpected(interruption());
    Streams streams;
    if (output == Output::ErrorsToOutput) streams.err = 1;
    if (output == Output::ErrorsOnly) streams.out = 2;
    TRY_ASSIGN(PipeEnds in, make_pipe());
    if (!command.input.empty()) streams.in = in.read.get();
    TRY_ASSIGN(Child child, Child::start(command, streams, Group::Ours));
    in.read.reset();
    if (!command.input.empty()) {
        std::string_view rest = command.input;
        while (!rest.empty()) {
            const ssize_t n = ::write(in.write.get(), rest.data(), rest.size());
            if (n < 0 && errno == EINTR && !interrupted()) continue;
            if (n <= 0) break;
            rest.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    in.write.reset();
    Outcome outcome;
    const auto end = Clock::now() + command.timeout;
    for (;;) {
        if (const auto status = child.wait_for(Milliseconds(20))) {
            outcome.status = *status;
            break;
        }
        const bool late = command.timeout.count() > 0 && Clock::now() >= end;
        if (interrupted() || late) {
            outcome.timed_out = late;
            outcome.status = child.stop();
            break;
        }
    }
    if (interrupted()) return std::unexpected(interruption());
    return outcome;
}

host::Result<Outcome> stream_lines(const Command& command, const std::function<void(std::string_view)>& line) {
    if (interrupted()) return std::unexpected(interruption());
    TRY_ASSIGN(PipeEnds out, make_pipe());
    TRY_ASSIGN(PipeEnds in, make_pipe());
    const int input = command.input_stays_open ? in.read.get() : host::kNothing;
    TRY_ASSIGN(Child child,
               Child::start(command, {.in = input, .out = out.write.get(), .err = out.write.get()}, Group::Own));
    in.read.reset();
    out.write.reset();
    std::string pending;
    bool cut = false;
    std::vector<Watched> all = {{&out.read, POLLIN, [&] {
                                     read_into(out.read, pending, SIZE_MAX, cut);
                                     std::size_t start = 0;
                                     for (std::size_t at; (at = pending.find('\n', start)) != std::string::npos;
                                          start = at + 1)
                                         line(std::string_view(pending).substr(start, at - start));
                                     pending.erase(0, start);
                                     if (pending.size() > (1 << 20)) {  // a line without an end
                                         line(pending);
                                         pending.clear();
                                     }
                                 }}};
    const Ended ended = serve(all, command.timeout);
    if (!pending.empty()) line(pending);
    Outcome outcome;
    outcome.timed_out = ended == Ended::TimedOut;
    outcome.status = ended == Ended::Closed ? child.wait() : child.stop();
    if (ended == Ended::Interrupted) return std::unexpected(interruption());
    return outcome;
}

host::Result<Outcome> feed(const Command& command, std::string_view bytes,
                           const std::function<void(std::uint64_t)>& sent) {
    return capture_with(command, bytes, kMaxCaptured, sent);
}

host::Result<Piped> pipe(const Command& producer, const Command& consumer,
                         const std::function<void(std::uint64_t)>& progress) {
    if (interrupted()) return std::unexpected(interruption());
    TRY_ASSIGN(PipeEnds from, make_pipe());
    TRY_ASSIGN(PipeEnds to, make_pipe());
    TRY_ASSIGN(PipeEnds producer_err, make_pipe());
    TRY_ASSIGN(PipeEnds out, make_pipe());
    TRY_ASSIGN(PipeEnds err, make_pipe());
    TRY_ASSIGN(
        Child second,
        Child::start(consumer, {.in = to.read.get(), .out = out.write.get(), .err = err.write.get()}, Group::Own));
    TRY_ASSIGN(Child first,
               Child::start(producer, {.in = host::kNothing, .out = from.write.get(), .err = producer_err.write.get()},
                            Group::Own));
    for (Fd* fd : {&to.read, &from.write, &producer_err.write, &out.write, &err.write}) fd->reset();
    set_nonblocking(to.write.get());
    ::fcntl(from.read.get(), F_SETPIPE_SZ, 1 << 20);
    Piped piped;
    std::vector<char> buffer(1 << 18);
    std::size_t used = 0, done = 0;
    bool cut = false;
    auto told = Clock::now();
    Fd idle;  // what is polled instead of the source while the buffer is full, and the other way round
    std::vector<Watched> all(5);
    all[0] = {&from.read, POLLIN, {}};
    all[1] = {&idle, POLLOUT, {}};
    all[0].ready = [&] {
        const ssize_t n = ::read(from.read.get(), buffer.data(), buffer.size());
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (n <= 0) {
            from.read.reset();
            to.write.reset();
            return;
        }
        used = static_cast<std::size_t>(n);
        done = 0;
        all[0].fd = &idle;
        all[1].fd = &to.write;
    };
    all[1].ready = [&] {
        const ssize_t n = ::write(to.write.get(), buffer.data() + done, used - done);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (n < 0) {  // the consumer has gone: let the producer feel it
            to.write.reset();
            from.read.reset();
            return;
        }
        done += static_cast<std::size_t>(n);
        piped.bytes += static_cast<std::uint64_t>(n);
        if (progress && Clock::now() - told > Milliseconds(100)) {
            told = Clock::now();
            progress(piped.bytes);
        }
        if (done < used) return;
        all[0].fd = &from.read;
        all[1].fd = &idle;
    };
    all[2] = {&producer_err.read, POLLIN, [&] { read_into(producer_err.read, piped.producer.err, 1 << 20, cut); }};
    all[3] = {&out.read, POLLIN, [&] { read_into(out.read, piped.consumer.out, 1 << 20, cut); }};
    all[4] = {&err.read, POLLIN, [&] { read_into(err.read, piped.consumer.err, 1 << 20, cut); }};
    const Ended ended = serve(all, consumer.timeout);
    if (progress) progress(piped.bytes);
    piped.consumer.timed_out = ended == Ended::TimedOut;
    piped.producer.status = ended == Ended::Closed ? first.wait() : first.stop();
    piped.consumer.status = ended == Ended::Closed ? second.wait() : second.stop();
    if (ended == Ended::Interrupted) return std::unexpected(interruption());
    return piped;
}

}  // namespace talpa::topo
