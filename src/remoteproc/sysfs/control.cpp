#include "remoteproc/sysfs/control.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace talpa::remoteproc {
namespace {

constexpr int kMaxCountedStarts = 64;
constexpr int kLateStartMs = 100;  ///< until a file system in user space has taken up a dead process's write

void pause_ms(int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// The old firmware's name with the new file behind it, for the length of one recovery.
class StandIn {
  public:
    StandIn(const std::string& folder, const std::string& name, const std::string& substitute) {
        if (substitute.empty() || name.empty() || name.find('/') != std::string::npos || name == "unknown") return;
        const std::string path = folder + "/" + name;
        if (::access(path.c_str(), F_OK) == 0) return;
        const Fd from(::open(substitute.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
        const Fd to(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!to) return;
        path_ = path;
        char buffer[65536];
        ssize_t n;
        while (from && (n = ::read(from.get(), buffer, sizeof buffer)) > 0)
            if (!write_all(to.get(), std::string_view(buffer, static_cast<std::size_t>(n)))) break;
    }
    ~StandIn() {
        if (!path_.empty()) ::unlink(path_.c_str());
    }
    StandIn(const StandIn&) = delete;
    StandIn& operator=(const StandIn&) = delete;

  private:
    std::string path_;
};

}  // namespace

Result<void> stop_core(const Device& device, int timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
    int stops = 0, error = 0;
    for (;;) {
        TRY_ASSIGN(const CoreState state, read_state(device));
        if (!is_live(state)) return {};
        if (stops >= kMaxCountedStarts || (error != 0 && Clock::now() >= until))
            return std::unexpected(os_error("write", device.attribute("state"), error != 0 ? error : EBUSY)
                                       .with_context(fmt::format("remote processor {} still {} after {} stops",
                                                                 device.label(), state_word(state), stops)));
        const auto stopped = write_attribute(device, "state", "stop");
        error = stopped ? 0 : stopped.error();
        if (stopped) ++stops;
        if (error == EACCES || error == EPERM || is_gone(error))
            return os_failure("write", device.attribute("state"), error);
        if (error != 0) pause_ms(20);
    }
}

Result<void> stop_booting_core(const Device& device) {
    // Waits for the lock that the boot holds; EINVAL where there was no boot.
    (void)write_attribute(device, "state", "stop");
    for (int waited = 0; waited < kLateStartMs; waited += 20) {
        TRY_ASSIGN(const CoreState state, read_state(device));
        if (is_live(state)) return stop_core(device);
        pause_ms(20);
    }
    return {};
}

Result<void> recover_and_stop(const Device& device, const std::string& firmware_folder, const std::string& substitute) {
    const StandIn stand_in(firmware_folder, read_attribute(device, "firmware").value_or(""), substitute);
    const auto recovered = write_attribute(device, "recovery", "recover");
    // The kernel may be at it by itself, so the state decides and not the errno of the write.
    for (int waited = 0; waited < 5000; waited += 20) {
        TRY_ASSIGN(const CoreState state, read_state(device));
        if (state == CoreState::Offline) return {};
        if (is_live(state)) return stop_core(device);
        if (state == CoreState::Crashed && !recovered && waited >= 200) break;
        pause_ms(20);
    }
    host::Error error = os_error("write", device.attribute("recovery"), recovered ? ETIMEDOUT : recovered.error());
    error.hint = fmt::format(
        "the processor crashed and its driver cannot bring it back; unbind and bind the driver: "
        "ls -l {}/device/driver",
        device.folder);
    return std::unexpected(std::move(error).with_context("failed to recover the crashed remote processor"));
}

Result<void> bring_offline(const Device& device, const std::string& firmware_folder, const std::string& substitute) {
    TRY_ASSIGN(const CoreState state, read_state(device));
    switch (state) {
        case CoreState::Offline:
            return {};
        case CoreState::Running:
        case CoreState::Attached:
            return stop_core(device);
        case CoreState::Crashed:
            return recover_and_stop(device, firmware_folder, substitute);
        default:
            return host::failure(ErrorCode::InvalidState, "remote processor {} is {}", device.label(),
                                 state_word(state));
    }
}

}  // namespace talpa::remoteproc
