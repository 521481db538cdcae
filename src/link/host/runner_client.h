// The Linux client of the M33's runner: stages a program and its inputs in the reserved memory, says RUN, and brings
// back classes, outputs and times. Programs that use it on one board at the same time take turns by the lock on the
// tty; only lines with its own tag are taken for answers. One thread at a time. (imx93-remoteproc, sections 10 and 11)
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "link/control_block.h"
#include "link/host/device_memory.h"
#include "link/host/runner_reply.h"
#include "link/host/runner_tty.h"

namespace talpa::link::host {

/// What to run. The bytes must stay until the run has ended.
struct RunJob {
    Bytes program;
    std::uint32_t program_crc = 0;  ///< of `program`, which the caller knows and need not compute for each run
    std::span<const Bytes> inputs;
    unsigned top = 5;
    std::chrono::milliseconds timeout{10'000};  ///< from RUN to its last line
    std::chrono::milliseconds lock_timeout{60'000};
};

enum class RunPhase : std::uint8_t { Waiting, Staging, Running };

struct RunCallbacks {
    std::function<void(RunPhase)> phase = [](RunPhase) {};
    std::function<bool()> cancelled = [] { return false; };  ///< asked at least ten times a second
};

struct RunOutput {
    ReplyOutput told;
    std::vector<std::uint8_t> bytes;
};

struct RunAnswer {
    std::vector<ReplyTop> top;
    std::vector<RunOutput> outputs;
    ReplyTimes times;
    double wait_ms = 0;           ///< for the lock
    double stage_program_ms = 0;  ///< 0 when it lay there already
    double stage_inputs_ms = 0;
    double run_ms = 0;  ///< wall clock from writing RUN to its last line
};

struct FirmwareInfo {
    std::string version, protocol;
    std::string words;  ///< all key=value words of the INFO lines
};

/// Where a job's parts go: the program to the model region, or when it is too large to the upper one; likewise inputs.
struct Placement {
    std::uint32_t program = 0;
    std::array<std::uint32_t, kMaxInputs> inputs{};
};
[[nodiscard]] BoardResult<Placement> place(std::size_t program_bytes, std::span<const Bytes> inputs);

class RunnerClient {
  public:
    RunnerClient(BoardAccess& access, std::string remoteproc_name);

    /// Asks INFO, three times if need be, a second each. (section 11.5)
    [[nodiscard]] BoardResult<FirmwareInfo> info();
    [[nodiscard]] BoardResult<RunAnswer> run(const RunJob& job, const RunCallbacks& callbacks = {});

    /// Of the tty that is open now; empty when none is.
    [[nodiscard]] std::string tty_path() const { return tty_ ? tty_->path() : std::string(); }
    /// How often a program was written: it stays where it is while nobody changes it.
    [[nodiscard]] std::uint64_t programs_staged() const { return programs_staged_; }
    /// What is known about the board at this moment, a line each.
    [[nodiscard]] std::vector<std::string> what_is_known();

  private:
    struct Staged {
        std::uint32_t address, length, crc;
        bool operator==(const Staged&) const = default;
    };
    using Clock = RunnerTty::Clock;

    [[nodiscard]] BoardResult<void> ready();
    [[nodiscard]] BoardResult<void> stage(const RunJob& job, const Placement& placement, RunAnswer& answer,
                                          bool& check_program);
    [[nodiscard]] BoardResult<RunAnswer> exchange(const RunJob& job, const Placement& placement, RunAnswer answer,
                                                  bool check_program, const RunCallbacks& callbacks);
    [[nodiscard]] BoardResult<void> read_outputs(RunAnswer& answer);
    [[nodiscard]] std::string next_tag();
    [[nodiscard]] std::unexpected<BoardError> with_known(std::unexpected<BoardError> error);
    [[nodiscard]] std::unexpected<BoardError> runner_failure(const Reply& reply);
    [[nodiscard]] std::unexpected<BoardError> no_remoteproc(const RemoteprocLook& look) const;
    /// Nothing unless the control block says that the firmware has ended in a fault of its processor.
    [[nodiscard]] std::optional<std::unexpected<BoardError>> processor_fault();
    [[nodiscard]] bool block_is_ours() const;
    [[nodiscard]] std::uint32_t control(std::size_t offset) const;

    BoardAccess& access_;
    std::string remoteproc_name_;
    std::optional<DeviceMemory> memory_;
    std::optional<RunnerTty> tty_;
    std::optional<Staged> staged_;
    std::uint64_t programs_staged_ = 0;
    std::uint32_t tag_seed_ = 0, tag_counter_ = 0;
};

/// What to do about an error of the runner; empty when there is nothing to say.
[[nodiscard]] std::string_view runner_error_advice(RunnerError error);

}  // namespace talpa::link::host
