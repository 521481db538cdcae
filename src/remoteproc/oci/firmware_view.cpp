#include "remoteproc/oci/firmware_view.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <termios.h>

#include <cerrno>
#include <cstddef>

#include "link/control_block.h"
#include "link/memory_map.h"

namespace talpa::remoteproc {
namespace {

constexpr std::size_t kTraceLimit = 256 * 1024, kConsoleTurn = 64 * 1024;

std::uint32_t word_at(const volatile std::uint8_t* base, std::size_t offset) {
    return *reinterpret_cast<const volatile std::uint32_t*>(base + offset);
}

}  // namespace

// A file of a boot before answers with an error or with nothing: then, and at first, it is opened anew.
std::optional<std::string> TraceReader::read(std::size_t index, const char* name) {
    if (files_[index])
        if (auto text = read_fd(files_[index].get(), kTraceLimit); text && !text->empty()) return std::move(*text);
    files_[index] = Fd(::openat(debug_fd_, name, O_RDONLY | O_CLOEXEC));
    if (!files_[index]) return std::nullopt;
    auto text = read_fd(files_[index].get(), kTraceLimit);
    return text ? std::optional(std::move(*text)) : std::nullopt;
}

bool TraceReader::poll(Output& output) {
    if (debug_fd_ < 0 || which_ == "none") return false;
    bool fresh = false;
    for (std::size_t i = 0; i < kTraces; ++i) {
        const char name[] = {'t', 'r', 'a', 'c', 'e', static_cast<char>('0' + i), '\0'};
        if (which_ != "auto" && which_ != name) continue;
        auto text = read(i, name);
        if (!files_[i] && which_ == "auto") break;  // they are numbered without gaps
        // The kernel's own complaint about a buffer that it cannot map is no text of the firmware.
        if (!text || (text->starts_with("Trace ") && text->ends_with(" not available\n"))) continue;
        const std::string news = tails_[i].update(std::move(*text));
        if (news.empty()) continue;
        output.write(news);
        fresh = true;
    }
    return fresh;
}

bool Console::poll(Output& output) {
    if (path_.empty()) return false;
    if (!tty_) {
        tty_ = Fd(::openat(AT_FDCWD, path_.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
        struct stat info;
        if (!tty_ || ::fstat(tty_.get(), &info) != 0 || !S_ISCHR(info.st_mode)) {
            tty_.reset();
            return false;
        }
        termios raw;
        if (::tcgetattr(tty_.get(), &raw) == 0) {
            ::cfmakeraw(&raw);  // no echo: what the firmware says must not come back to it
            ::tcsetattr(tty_.get(), TCSANOW, &raw);
        }
    }
    char buffer[1024];
    bool fresh = false;
    // A firmware that talks faster than this reads must not keep its stop from being served.
    for (std::size_t taken = 0; taken < kConsoleTurn; taken += sizeof buffer) {
        const ssize_t n = ::read(tty_.get(), buffer, sizeof buffer);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
        if (n <= 0) {  // hung up: the firmware stopped or recovers
            tty_.reset();
            return fresh;
        }
        output.write(std::string_view(buffer, static_cast<std::size_t>(n)));
        fresh = true;
    }
    if (to_tty_.empty()) {
        const int flags = ::fcntl(0, F_GETFL);
        if (flags >= 0 && (flags & O_NONBLOCK) != 0) {
            const ssize_t n = ::read(0, buffer, sizeof buffer);
            if (n > 0) to_tty_.assign(buffer, static_cast<std::size_t>(n));
        }
    }
    if (!to_tty_.empty()) {
        const ssize_t n = ::write(tty_.get(), to_tty_.data(), to_tty_.size());
        if (n > 0) to_tty_.erase(0, static_cast<std::size_t>(n));
        fresh = true;
    }
    return fresh;
}

Heartbeat::Heartbeat(int memory_fd, int limit_ms) : limit_ms_(limit_ms), since_(Clock::now()) {
    if (memory_fd < 0 || limit_ms <= 0) return;
    void* mapped =
        ::mmap(nullptr, link::kControlBlock.size, PROT_READ, MAP_SHARED, memory_fd, link::kControlBlock.base);
    if (mapped != MAP_FAILED) block_ = static_cast<const volatile std::uint8_t*>(mapped);
}

Heartbeat::~Heartbeat() {
    if (block_ != nullptr) ::munmap(const_cast<std::uint8_t*>(block_), link::kControlBlock.size);
}

std::optional<std::string> Heartbeat::complaint() {
    if (block_ == nullptr) return std::nullopt;
    const auto now = Clock::now();
    const std::uint32_t beat = word_at(block_, offsetof(link::ControlBlock, heartbeat));
    if (first_ || beat != last_) {
        moved_ = moved_ || !first_;
        first_ = false;
        last_ = beat;
        since_ = now;
    }
    if (!moved_ || word_at(block_, offsetof(link::ControlBlock, magic)) != link::kControlMagic) return std::nullopt;
    if (word_at(block_, offsetof(link::ControlBlock, state)) == static_cast<std::uint32_t>(link::RunnerState::Fault)) {
        const auto fault = [&](std::size_t offset) { return word_at(block_, offset); };
        return fmt::format("the firmware reports a fault: kind {}, pc {:#010x}, lr {:#010x}, cfsr {:#010x}",
                           fault(offsetof(link::ControlBlock, fault) + offsetof(link::FaultRecord, kind)),
                           fault(offsetof(link::ControlBlock, fault) + offsetof(link::FaultRecord, pc)),
                           fault(offsetof(link::ControlBlock, fault) + offsetof(link::FaultRecord, lr)),
                           fault(offsetof(link::ControlBlock, fault) + offsetof(link::FaultRecord, cfsr)));
    }
    const auto still = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_).count();
    if (still > limit_ms_) return fmt::format("the firmware's heartbeat stands still for {} ms", still);
    return std::nullopt;
}

}  // namespace talpa::remoteproc
