// What the running firmware shows of itself: its trace buffers, a tty that it announced, and the control block that the
// talpa runner keeps in shared memory.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "remoteproc/oci/output.h"
#include "remoteproc/sys/os_error.h"
#include "remoteproc/sysfs/trace_tail.h"

namespace talpa::remoteproc {

/// Copies what is new in the trace buffers of a core to the output.
class TraceReader {
  public:
    /// `which`: "auto" (all of them), "none" or "traceN".
    TraceReader(int debug_fd, std::string which) : debug_fd_(debug_fd), which_(std::move(which)) {}
    /// Whether there was something new.
    bool poll(Output& output);

  private:
    static constexpr std::size_t kTraces = 8;
    [[nodiscard]] std::optional<std::string> read(std::size_t index, const char* name);

    int debug_fd_;
    std::string which_;
    std::array<TraceTail, kTraces> tails_;
    std::array<Fd, kTraces> files_;  // kept open: a look-up each time costs more than the read
};

/// Joins an RPMsg tty to the container's output and input. It may appear late and go with the firmware.
class Console {
  public:
    explicit Console(std::string path) : path_(std::move(path)) {}
    bool poll(Output& output);

  private:
    std::string path_;
    Fd tty_;
    std::string to_tty_;
};

/// The runner's heartbeat and state (imx93-remoteproc, section 10). Trusted only once it has moved: the memory keeps
/// the block of an earlier firmware.
class Heartbeat {
  public:
    Heartbeat(int memory_fd, int limit_ms);
    ~Heartbeat();
    Heartbeat(const Heartbeat&) = delete;
    Heartbeat& operator=(const Heartbeat&) = delete;
    /// Why the firmware counts as dead, or nothing.
    [[nodiscard]] std::optional<std::string> complaint();

  private:
    using Clock = std::chrono::steady_clock;
    const volatile std::uint8_t* block_ = nullptr;
    int limit_ms_;
    std::uint32_t last_ = 0;
    bool first_ = true, moved_ = false;
    Clock::time_point since_;
};

}  // namespace talpa::remoteproc
