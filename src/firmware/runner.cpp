#include "firmware/runner.h"

#include <algorithm>

#include "link/crc32.h"
#include "link/memory_map.h"

namespace talpa::firmware {

using link::RunnerCommand;
using link::RunnerError;
using link::RunnerState;

namespace {

constexpr std::uint32_t kUnknownReplyEveryMs = 100;  // so that an echo of an answer cannot become a loop

}  // namespace

Runner::Runner(RunnerPlatform& platform, runtime::OperatorTable operators, std::string_view version)
    : platform_(platform), operators_(operators), version_(version) {}

volatile link::ControlBlock& Runner::control() {
    return *reinterpret_cast<volatile link::ControlBlock*>(
        platform_.memory(link::kControlBlock.base, sizeof(link::ControlBlock)));
}

void Runner::start() {
    volatile link::ControlBlock& c = control();
    if (c.magic != link::kControlMagic || c.version != link::kControlVersion) {
        auto* const words = reinterpret_cast<volatile std::uint32_t*>(&c);
        for (std::size_t i = 0; i < sizeof(link::ControlBlock) / 4; ++i) words[i] = 0;
    }
    last_request_ = c.request_sequence;
    c.firmware_build = link::crc32({reinterpret_cast<const std::uint8_t*>(version_.data()), version_.size()});
    c.last_error = 0;
    c.run_sequence = 0;
    c.output_count = 0;
    c.fault.kind = 0;
    c.version = link::kControlVersion;
    set_state(RunnerState::Idle);
    c.magic = link::kControlMagic;  // last: with it the rest is valid
}

void Runner::set_state(RunnerState state) {
    control().state = static_cast<std::uint32_t>(state);
}

Runner::Stop Runner::must_stop() const {
    if (!running_) return Stop::No;
    if (abort_) return Stop::Aborted;
    return static_cast<std::int32_t>(platform_.now_ms() - deadline_ms_) >= 0 ? Stop::TimedOut : Stop::No;
}

void Runner::service() {
    held_back_ = false;
    platform_.service_link();
    outbox_.flush([&](Peer peer, std::string_view text) { return platform_.send(peer, text); });
}

void Runner::poll() {
    service();
    if (queued_ == 0) return;
    current_ = queue_[first_];
    first_ = (first_ + 1) % queue_.size();
    --queued_;
    execute(current_);
    service();
}

void Runner::link_is_new() {
    outbox_.clear();
    queued_ = 0;
    for (Line& line : lines_) line = {};
    abort_ = running_;
    current_.peer.address = 0;
}

std::size_t Runner::received(Peer peer, std::string_view message) {
    Line* line = nullptr;
    for (Line& l : lines_)
        if (l.peer.endpoint == peer.endpoint || l.peer.endpoint == 0) {
            line = &l;
            break;
        }
    if (line == nullptr) return message.size();                       // an endpoint that was never announced
    if (line->peer.address != peer.address) line->assembler.clear();  // half a line of somebody who has gone
    line->peer = peer;
    const auto answer = [&](std::string_view text, bool too_long) {
        if (link::is_reply_line(text)) return;  // our own words, echoed by a cooked tty
        const std::string_view tag = link::line_tag(text);
        if (too_long) return reply_error(peer, tag, RunnerError::BadArgument, "line too long");
        const auto request = parse_request(text, peer);
        if (request) return handle(*request);
        if (request.error() == RunnerError::UnknownCommand) {
            const std::uint32_t now = platform_.now_ms();
            if (answered_unknown_ && now - last_unknown_ms_ < kUnknownReplyEveryMs) return;
            answered_unknown_ = true;
            last_unknown_ms_ = now;
        }
        reply_error(peer, tag, request.error(), {});
    };
    return line->assembler.feed(message, answer, [&] {
        held_back_ = outbox_.room() < kRoomForAnswer;
        return !held_back_;
    });
}

void Runner::reply(const Request& request, std::string_view line) {
    Text<kMaxReply> text;
    if (request.tag_size != 0) text.add(TALPA_SENTENCE("@{} "), request.tag_view());
    text.put(line.size() < link::kMaxLine ? line : std::string_view(line.data(), link::kMaxLine - 1)).put("\n");
    // A run waits for room, as long as there is a link. What is answered inside `received` must not wait, for the link
    // would have to move for it; it was not taken before there was room.
    while (request.peer.address != 0 && !outbox_.push(request.peer, text.view()) && platform_.link_up()) service();
}

void Runner::reply(const Request& request, const char* line) {
    reply(request, std::string_view(line));
}

void Runner::reply_error(Peer peer, std::string_view tag, RunnerError code, std::string_view detail) {
    Request to;
    to.peer = peer;
    to.tag_size = static_cast<std::uint8_t>(tag.size());
    std::copy(tag.begin(), tag.end(), to.tag.begin());
    last_error_ = code;
    control().last_error = static_cast<std::uint32_t>(code);
    Text<link::kMaxLine> line;
    line.add(TALPA_SENTENCE("ERR {} {}"), static_cast<unsigned>(code), link::runner_error_text(code));
    if (!detail.empty()) line.put(": ").put(detail);
    reply(to, line.view());
    platform_.trace(line.view());
}

void Runner::handle(const Request& request) {
    Text<link::kMaxLine> line;
    switch (request.command) {
        case RunnerCommand::Ping:
            return reply(request, line.add(TALPA_SENTENCE("PONG seq={}"), sequence_).view());
        case RunnerCommand::Info:
            return info(request);
        case RunnerCommand::Status:
            return status(request);
        case RunnerCommand::Abort:
            // Queued runs of the same peer end too: whoever says ABORT waits for nothing more.
            for (std::size_t i = 0; i < queued_;) {
                const std::size_t at = (first_ + i) % queue_.size();
                if (queue_[at].peer.address != request.peer.address) {
                    ++i;
                    continue;
                }
                const Request gone = queue_[at];
                for (std::size_t j = i; j + 1 < queued_; ++j)
                    queue_[(first_ + j) % queue_.size()] = queue_[(first_ + j + 1) % queue_.size()];
                --queued_;
                reply_error(gone.peer, gone.tag_view(), RunnerError::Aborted, {});
            }
            abort_ = running_;
            return reply(request, "OK ABORT");
        case RunnerCommand::Level:
            return reply(request, "OK LEVEL");
        case RunnerCommand::Run:
        case RunnerCommand::Load:
        case RunnerCommand::Crc:  // may take long: it waits its turn
        case RunnerCommand::Out:
            if (queued_ == queue_.size()) return reply_error(request.peer, request.tag_view(), RunnerError::Busy, {});
            queue_[(first_ + queued_++) % queue_.size()] = request;
            return;
    }
}

void Runner::crc(const Request& request) {
    constexpr std::uint32_t kChunk = 256 * 1024;  // between two looks at the link
    const std::uint32_t length = request.program.length;
    const auto address = staged_address(request.program.offset, length);
    const std::uint8_t* const bytes = address ? platform_.memory(*address, length) : nullptr;
    if (bytes == nullptr) return reply_error(request.peer, request.tag_view(), RunnerError::BadAddress, {});
    std::uint32_t found = 0;
    for (std::uint32_t at = 0; at < length; at += kChunk) {
        found = link::crc32({bytes + at, std::min(kChunk, length - at)}, found);
        service();
    }
    Text<link::kMaxLine> line;
    reply(request, line.add(TALPA_SENTENCE("CRC ")).hex(found).view());
}

}  // namespace talpa::firmware
