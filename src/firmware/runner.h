// The runner: waits for commands, loads the staged program, runs it, answers with the classes. Knows nothing of the
// chip but what RunnerPlatform says, so that the host tests run what the M33 runs. Every failure is one line with a
// stable code, and the next RUN works. (imx93-remoteproc, sections 10 and 11)
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/core/error.h"
#include "firmware/outbox.h"
#include "firmware/request.h"
#include "firmware/staging.h"
#include "firmware/text.h"
#include "link/control_block.h"
#include "link/rpmsg.h"
#include "link/runner_protocol.h"
#include "npu/device.h"
#include "pte/program.h"
#include "runtime/method.h"

namespace talpa::firmware {

/// With the build option the NPU's fast scratch (region 2) lies in on-chip RAM when it fits there.
#ifdef TALPA_OCRAM
inline constexpr bool kFastScratchInOcram = true;
#else
inline constexpr bool kFastScratchInOcram = false;
#endif

/// Why a command failed: the code of the protocol, and the details.
struct Failure {
    link::RunnerError code;
    Error error;
};
using Outcome = std::expected<void, Failure>;

class RunnerPlatform {
  public:
    /// Memory at a physical address of the memory map's DDR ranges.
    [[nodiscard]] virtual std::uint8_t* memory(std::uint32_t address, std::uint32_t size) = 0;
    /// The NPU, ready for a job; touched for the first time here, since an unpowered one hangs the bus. While it runs
    /// it calls Runner::service now and then, and gives up with Timeout when Runner::must_stop says so.
    [[nodiscard]] virtual Result<npu::Device*> npu() = 0;
    /// "ok", "untried" or "absent", for STATUS; touches nothing.
    [[nodiscard]] virtual std::string_view npu_state() const = 0;
    [[nodiscard]] virtual std::uint32_t now_ms() const = 0;
    [[nodiscard]] virtual std::uint32_t cycles() const = 0;
    [[nodiscard]] virtual std::uint32_t cycles_per_us() const = 0;
    /// Sends one RPMsg message; false: no free buffer or no link.
    [[nodiscard]] virtual bool send(Peer to, std::string_view text) = 0;
    [[nodiscard]] virtual bool link_up() const = 0;
    /// Moves what waits on the link: incoming messages reach Runner::received, and what that does not take waits on.
    virtual void service_link() = 0;
    virtual void trace(std::string_view line) = 0;
    virtual void trace_restart() = 0;

  protected:
    ~RunnerPlatform() = default;
};

class Carver;

class Runner {
  public:
    /// `operators`: what the firmware carries. `version`: shown by INFO.
    Runner(RunnerPlatform& platform, runtime::OperatorTable operators, std::string_view version);

    /// Makes the control block ours; what Linux staged before is kept, but not taken for a request.
    void start();
    /// A message from Linux. Commands that can be answered at once are, during a run too; RUN and LOAD queue. Returns
    /// how many bytes it took: no line before there is room for its answer. The rest is to come again.
    [[nodiscard]] std::size_t received(Peer peer, std::string_view message);
    /// The link is another one: nobody waits for what the last one's peers asked, and the run that goes on ends.
    void link_is_new();
    /// Runs one queued command, if there is one, and moves the link.
    void poll();
    /// Moves the link and the outbox; what the NPU's wait calls.
    void service();

    enum class Stop : std::uint8_t { No, Aborted, TimedOut };
    /// Must the command that runs now end?
    [[nodiscard]] Stop must_stop() const;
    [[nodiscard]] bool idle() const { return queued_ == 0 && outbox_.empty() && !held_back_; }

  private:
    friend class StepTimer;
    struct Output {
        std::uint32_t address = 0, bytes = 0;
        runtime::Tensor tensor;  ///< its data is the copy
    };
    struct Times {
        std::uint32_t crc = 0, load = 0, input = 0, quantize = 0, npu = 0, dequantize = 0, run = 0;
    };

    void handle(const Request& request);
    void reply(const Request& request, std::string_view line);
    [[gnu::noinline]] void reply(const Request& request, const char* line);  ///< half the code where it is called
    void reply_error(Peer peer, std::string_view tag, link::RunnerError code, std::string_view detail);
    void info(const Request& request);
    void status(const Request& request);
    void crc(const Request& request);
    void out(const Request& request);

    void execute(const Request& request);
    [[nodiscard]] Outcome run(const Request& request, const Staging& staging, Times& times, std::uint64_t& npu_cycles);
    /// Moves the link; the Failure of a run that must end now.
    [[nodiscard]] Outcome go_on();
    /// Copies a range and compares the CRC of the copy; both places may be one.
    [[nodiscard]] Outcome copy_checked(std::uint8_t* to, const std::uint8_t* from, const StagedInput& range,
                                       const char* what);
    /// Where the method's `input`, the `given`th tensor among them, is staged; `next` is the next default place.
    [[nodiscard]] Outcome read_inputs(runtime::Method& method, const Staging& staging, Carver& copies, Times& times);
    [[nodiscard]] std::expected<StagedInput, Failure> input_range(const runtime::Method& method, const Staging& staging,
                                                                  std::uint32_t input, std::uint32_t given,
                                                                  std::uint32_t& next);
    [[nodiscard]] Outcome set_input(runtime::Method& method, std::uint32_t input, const StagedInput& range,
                                    runtime::Pool copy, Times& times);
    [[nodiscard]] Outcome copy_outputs(runtime::Method& method, const Request& request);
    void report(const Request& request, const Times& times, std::uint64_t npu_cycles, std::uint32_t total_cycles);
    [[nodiscard]] std::uint32_t report_top(const Request& request);
    void report_outputs(const Request& request, std::uint32_t argmax);
    void trace_run();
    void set_state(link::RunnerState state);
    [[nodiscard]] volatile link::ControlBlock& control();

    RunnerPlatform& platform_;
    runtime::OperatorTable operators_;
    std::string_view version_;

    /// The most that one line is answered with at once (INFO's three lines; ABORT's five are short).
    static constexpr std::size_t kMaxReply = link::kMaxLine + link::kMaxTag + 3;
    static constexpr std::size_t kRoomForAnswer = 3 * (Outbox::kHeader + kMaxReply);

    Request current_;  ///< what runs; its address is 0, which is nobody's, when that peer has gone
    std::array<Request, link::kRunQueueDepth> queue_{};
    std::size_t first_ = 0, queued_ = 0;
    static constexpr std::size_t kMaxPeers = 2;
    struct Line {
        Peer peer;
        link::LineAssembler assembler;
    };
    std::array<Line, kMaxPeers> lines_{};  ///< one an endpoint
    Outbox outbox_;
    std::uint32_t last_unknown_ms_ = 0;
    bool answered_unknown_ = false;

    bool running_ = false, abort_ = false;
    bool held_back_ = false;  ///< a line waits for room in the outbox
    std::uint32_t deadline_ms_ = 0;
    std::uint32_t last_request_ = 0;
    std::uint32_t sequence_ = 0;
    link::RunnerError last_error_ = link::RunnerError::None;

    std::array<Output, link::kMaxOutputs> outputs_{};
    std::uint32_t output_count_ = 0;
    float output_scale_ = 0;
    std::int32_t output_zero_point_ = 0;
    std::size_t planned_bytes_ = 0, scratch_bytes_ = 0;
};

}  // namespace talpa::firmware
