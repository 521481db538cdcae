#include "link/host/runner_client.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <random>

#include "link/control_block.h"
#include "link/crc32.h"

namespace talpa::link::host {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr auto kSlice = 50ms;          // how often a waiting client looks up
constexpr auto kTtyAppears = 1500ms;   // after a start of the firmware: startup delay of the driver and name service
constexpr auto kSilence = 3000ms;      // no line and no heartbeat for so long: the firmware is dead
constexpr auto kInfoTimeout = 1000ms;  // section 11.5
constexpr unsigned kInfoTries = 3;

std::uint32_t round16(std::size_t bytes) {
    return static_cast<std::uint32_t>((bytes + 15) / 16 * 16);
}

std::string_view state_name(std::uint32_t state) {
    static constexpr std::string_view kNames[] = {"boot", "idle", "loading", "running", "done", "error", "fault"};
    return state < std::size(kNames) ? kNames[state] : "unknown";
}

constexpr const char* kRestart = "restart it: echo stop, then echo start > /sys/class/remoteproc/remoteprocN/state";

/// A bus fault at the NPU's registers means that it has neither clock nor power (Armv8-M: BFARVALID is bit 15 of CFSR).
std::string fault_advice(std::uint32_t cfsr, std::uint32_t bfar) {
    const bool npu = (cfsr & 1u << 15) != 0 && bfar - kNpuRegisters.base < kNpuRegisters.size;
    if (!npu) return kRestart;
    return fmt::format(
        "the fault was an access to the NPU's registers: the NPU has no power or clock. Linux's driver gives it both: "
        "modprobe ethosu (is there a /dev/ethosu0?). Then {}",
        kRestart);
}

struct Unlock {
    RunnerTty& tty;
    ~Unlock() { tty.unlock(); }
};

/// What our own error codes say of the runner's.
ErrorCode code_of(RunnerError error) {
    switch (error) {
        case RunnerError::UnknownCommand:
        case RunnerError::BadArgument:
        case RunnerError::BadAddress:
        case RunnerError::InputMismatch:
            return ErrorCode::InvalidArgument;
        case RunnerError::Busy:
        case RunnerError::Aborted:
            return ErrorCode::InvalidState;
        case RunnerError::NoModel:
        case RunnerError::NpuAbsent:
            return ErrorCode::NotFound;
        case RunnerError::CrcMismatch:
        case RunnerError::RuntimeError:
            return ErrorCode::InvalidProgram;
        case RunnerError::Timeout:
            return ErrorCode::Timeout;
        case RunnerError::UnsupportedOperator:
            return ErrorCode::OperatorMissing;
        case RunnerError::Memory:
            return ErrorCode::MemoryAllocation;
        case RunnerError::NpuBusError:
            return ErrorCode::NpuFault;
        case RunnerError::NpuMismatch:
            return ErrorCode::DelegateIncompatible;
        default:
            return ErrorCode::AccessFailed;
    }
}

}  // namespace

std::string_view runner_error_advice(RunnerError error) {
    switch (error) {
        case RunnerError::CrcMismatch:
            return "something else wrote to the reserved memory at the same time: is another application using it?";
        case RunnerError::NoModel:
            return "the program did not reach the model region: do /dev/mem and the M33 see the same memory?";
        case RunnerError::Timeout:
            return "the NPU did not finish: is it powered and clocked? (cat /sys/kernel/debug/remoteproc/*/trace0)";
        case RunnerError::NpuAbsent:
            return "the NPU does not answer: is MLMIX powered, is the ethosu driver bound (ls /dev/ethosu0)?";
        case RunnerError::NpuBusError:
            return "the NPU reached memory that it may not touch: is ethosu_region@A8000000 reserved (128 MiB, "
                   "no-map)?";
        case RunnerError::NpuMismatch:
            return "the program was compiled for another NPU: compile it for ethos-u65-256";
        case RunnerError::UnsupportedOperator:
            return "the firmware carries few CPU operators: see `talpa inspect` for those that the program needs";
        case RunnerError::Memory:
            return "the program wants more memory than is reserved: see `talpa inspect` for what it needs";
        case RunnerError::Busy:
            return "its queue is full: another application keeps it busy";
        default:
            return {};
    }
}

BoardResult<Placement> place(std::size_t program_bytes, std::span<const Bytes> inputs) {
    Placement placement;
    const auto no_room = [&](std::string_view what, std::size_t bytes) {
        return board_failure(BoardFault::DoesNotFit,
                             "{} of {} bytes does not fit the reserved memory: programs and inputs together have {} "
                             "bytes there at most",
                             what, bytes, kBigPrograms.size);
    };
    if (inputs.empty() || inputs.size() > kMaxInputs)
        return board_failure(BoardFault::DoesNotFit, "the program has {} inputs; the firmware takes 1 to {}",
                             inputs.size(), kMaxInputs);
    std::uint64_t upper = kBigPrograms.base;
    const auto take_upper = [&](std::size_t bytes) -> std::optional<std::uint32_t> {
        if (!kBigPrograms.contains(upper, bytes)) return std::nullopt;
        const auto at = static_cast<std::uint32_t>(upper);
        upper += (std::uint64_t{bytes} + 15) / 16 * 16;
        return at;
    };
    if (program_bytes <= kProgram.size) {
        placement.program = kProgram.base;
    } else {
        const auto at = take_upper(program_bytes);
        if (!at) return no_room("a program", program_bytes);
        placement.program = *at;
    }
    std::uint64_t lower = kInputTensor.base;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (kInputTensor.contains(lower, inputs[i].size())) {
            placement.inputs[i] = static_cast<std::uint32_t>(lower);
            lower += round16(inputs[i].size());
            continue;
        }
        const auto at = take_upper(inputs[i].size());
        if (!at) return no_room(fmt::format("input {}", i), inputs[i].size());
        placement.inputs[i] = *at;
    }
    return placement;
}

RunnerClient::RunnerClient(BoardAccess& access, std::string remoteproc_name)
    : access_(access),
      remoteproc_name_(std::move(remoteproc_name)),
      tag_seed_(std::random_device{}() % (36u * 36 * 36)) {}

std::uint32_t RunnerClient::control(std::size_t offset) const {
    return memory_->word(kControlBlock.base + static_cast<std::uint32_t>(offset));
}

bool RunnerClient::block_is_ours() const {
    return control(offsetof(ControlBlock, magic)) == kControlMagic &&
           control(offsetof(ControlBlock, version)) == kControlVersion;
}

/// Three characters of this process and four that count, so that two clients do not take each other's answers.
std::string RunnerClient::next_tag() {
    std::string tag(7, '0');
    std::uint32_t n = tag_seed_;
    for (std::size_t i = 0; i < 7; ++i) {
        if (i == 3) n = tag_counter_;
        tag[i] = "0123456789abcdefghijklmnopqrstuvwxyz"[n % 36];
        n /= 36;
    }
    ++tag_counter_;
    return tag;
}

std::vector<std::string> RunnerClient::what_is_known() {
    std::vector<std::string> known;
    const RemoteprocLook look = access_.look();
    if (look.folder.empty())
        known.push_back(fmt::format("remoteproc: none is named {}{}", remoteproc_name_,
                                    look.other_names.empty() ? "" : " (there is " + look.other_names + ")"));
    else
        known.push_back(fmt::format("{} ({}): {}, firmware {}", look.folder, look.name,
                                    look.state.empty() ? "state unreadable" : look.state, look.firmware));
    if (tty_) known.push_back("tty: " + tty_->path());
    if (memory_ && block_is_ours()) {
        known.push_back(
            fmt::format("control block: state {}, heartbeat {}, last error {}, run {}",
                        state_name(control(offsetof(ControlBlock, state))), control(offsetof(ControlBlock, heartbeat)),
                        control(offsetof(ControlBlock, last_error)), control(offsetof(ControlBlock, run_sequence))));
        const auto fault = [&](std::size_t member) { return control(offsetof(ControlBlock, fault) + member); };
        if (fault(offsetof(FaultRecord, kind)) != 0)
            known.push_back(fmt::format("fault: pc 0x{:08X} lr 0x{:08X} cfsr 0x{:08X} hfsr 0x{:08X} bfar 0x{:08X}",
                                        fault(offsetof(FaultRecord, pc)), fault(offsetof(FaultRecord, lr)),
                                        fault(offsetof(FaultRecord, cfsr)), fault(offsetof(FaultRecord, hfsr)),
                                        fault(offsetof(FaultRecord, bfar))));
    } else if (memory_) {
        known.push_back("control block: not there, so no firmware with this protocol has started");
    }
    for (const std::string& line : last_lines(look.trace_lines, 8)) known.push_back("trace0: " + line);
    return known;
}

std::unexpected<BoardError> RunnerClient::with_known(std::unexpected<BoardError> error) {
    error.error().known = what_is_known();
    return error;
}

std::unexpected<BoardError> RunnerClient::no_remoteproc(const RemoteprocLook& look) const {
    auto failed = board_failure(BoardFault::NoRemoteproc, "Linux has no remote processor named {}{}", remoteproc_name_,
                                look.other_names.empty() ? "" : fmt::format(" (only {})", look.other_names));
    failed.error().error.hint = fmt::format(
        "{}in a container: is /sys bound (-v /sys:/sys)? on the board: CONFIG_IMX_REMOTEPROC and the node "
        "remoteproc-cm33 in the device tree",
        look.other_names.empty() ? "" : "is it one of those (--remoteproc NAME)? ");
    return failed;
}

std::optional<std::unexpected<BoardError>> RunnerClient::processor_fault() {
    if (!block_is_ours() || control(offsetof(ControlBlock, state)) != static_cast<std::uint32_t>(RunnerState::Fault))
        return std::nullopt;
    auto failed =
        board_failure(BoardFault::FirmwareFault, "the firmware ended in a processor fault; Linux does not see that");
    failed.error().error.hint = fault_advice(control(offsetof(ControlBlock, fault) + offsetof(FaultRecord, cfsr)),
                                             control(offsetof(ControlBlock, fault) + offsetof(FaultRecord, bfar)));
    return with_known(std::move(failed));
}

/// Memory mapped, tty open.
BoardResult<void> RunnerClient::ready() {
    if (!memory_) {
        // A tty that answers says nothing about whose it is.
        if (const RemoteprocLook look = access_.look(); look.folder.empty() && !look.other_names.empty())
            return no_remoteproc(look);
        TRY_ASSIGN(const Fd fd, access_.open_memory());
        TRY_ASSIGN(DeviceMemory mapped, DeviceMemory::map(fd));
        memory_.emplace(std::move(mapped));
    }
    if (tty_ && !tty_->hung_up()) return {};
    tty_.reset();
    const auto until = Clock::now() + kTtyAppears;
    for (;;) {
        auto opened = access_.open_tty();
        if (opened) {
            tty_.emplace(*std::move(opened));
            return {};
        }
        if (!opened.error().error.hint.empty())
            return std::unexpected(std::move(opened.error()));  // waiting will not help
        const RemoteprocLook look = access_.look();
        if (look.folder.empty()) return no_remoteproc(look);
        if (!look.runs()) {
            auto failed = board_failure(BoardFault::FirmwareNotRunning, "the firmware is not running: {} ({}) is {}",
                                        look.folder, look.name, look.state);
            failed.error().error.hint =
                fmt::format("start it: echo start > /sys/class/remoteproc/{}/state", look.folder);
            return failed;
        }
        if (Clock::now() >= until) {
            opened.error().error.hint = fmt::format(
                "{} is {}, but its firmware announced no channel that a driver takes: see its trace (cat "
                "/sys/kernel/debug/remoteproc/{}/trace0), modprobe rpmsg_tty",
                look.folder, look.state, look.folder);
            return with_known(std::unexpected(std::move(opened.error())));
        }
        ::poll(nullptr, 0, static_cast<int>(kSlice / 1ms));
    }
}

BoardResult<FirmwareInfo> RunnerClient::info() {
    TRY(ready());
    const auto deadline = Clock::now() + kInfoTries * kInfoTimeout;
    if (!tty_->lock([&] { return Clock::now() >= deadline; })) {
        if (tty_->hung_up()) return board_failure(BoardFault::FirmwareStopped, "{} has gone", tty_->path());
        return board_failure(BoardFault::Busy, "another program holds {}", tty_->path());
    }
    const Unlock unlock{*tty_};
    FirmwareInfo info;
    for (unsigned attempt = 0; attempt < kInfoTries; ++attempt) {
        const std::string tag = next_tag();
        if (!tty_->send(fmt::format("@{} INFO", tag)))
            return with_known(board_failure(BoardFault::FirmwareStopped, "{} has gone", tty_->path()));
        const auto until = Clock::now() + kInfoTimeout;
        std::string line;
        for (;;) {
            const auto got = tty_->receive(line, until);
            if (got == RunnerTty::Got::HungUp)
                return with_known(board_failure(BoardFault::FirmwareStopped, "{} was hung up", tty_->path()));
            if (got == RunnerTty::Got::Nothing) break;
            const Reply reply = parse_reply(line);
            if (reply.tag != tag) continue;
            if (reply.kind == Reply::Kind::Info)
                info.words += (info.words.empty() ? "" : " ") + std::string(reply.text);
            if (!reply.ends()) continue;
            if (reply.kind == Reply::Kind::Error) return runner_failure(reply);
            info.version = word_value(info.words, "fw").value_or("");
            info.protocol = word_value(info.words, "proto").value_or("");
            return info;
        }
        if (auto fault = processor_fault()) return *std::move(fault);
    }
    return with_known(board_failure(BoardFault::NoAnswer, "the firmware did not answer INFO on {}", tty_->path()));
}

BoardResult<void> RunnerClient::stage(const RunJob& job, const Placement& placement, RunAnswer& answer,
                                      bool& check_program) {
    const auto set = [&](std::size_t offset, std::uint32_t value) {
        memory_->set_word(kControlBlock.base + static_cast<std::uint32_t>(offset), value);
    };
    const auto set_range = [&](std::size_t offset, std::uint32_t address, std::size_t length, std::uint32_t crc) {
        set(offset, address);
        set(offset + 4, static_cast<std::uint32_t>(length));
        set(offset + 8, crc);
    };
    auto start = Clock::now();
    const auto lap = [&] {
        const auto now = Clock::now();
        const Milliseconds spent = now - start;
        start = now;
        return spent.count();
    };
    const Staged wanted{placement.program, static_cast<std::uint32_t>(job.program.size()), job.program_crc};
    const Staged noted{control(offsetof(ControlBlock, program)), control(offsetof(ControlBlock, program) + 4),
                       control(offsetof(ControlBlock, program) + 8)};
    check_program = false;
    TRY(memory_->have_room(placement.program, job.program.size()));
    for (std::size_t i = 0; i < job.inputs.size(); ++i)
        TRY(memory_->have_room(placement.inputs[i], job.inputs[i].size()));
    // Another program may have staged its own since, by the control block or without it.
    if (staged_ != wanted || noted != wanted || !memory_->looks_like(placement.program, job.program)) {
        staged_.reset();
        if (!memory_->write(placement.program, job.program))
            return board_failure(BoardFault::DoesNotFit, "0x{:X} and {} bytes are not mapped", placement.program,
                                 job.program.size());
        set_range(offsetof(ControlBlock, program), wanted.address, wanted.length, wanted.crc);
        staged_ = wanted;
        ++programs_staged_;
        check_program = true;
        answer.stage_program_ms = lap();
    }
    set(offsetof(ControlBlock, input_count), static_cast<std::uint32_t>(job.inputs.size()));
    for (std::size_t i = 0; i < job.inputs.size(); ++i) {
        if (!memory_->write(placement.inputs[i], job.inputs[i]))
            return board_failure(BoardFault::DoesNotFit, "0x{:X} and {} bytes are not mapped", placement.inputs[i],
                                 job.inputs[i].size());
        set_range(offsetof(ControlBlock, inputs) + i * sizeof(StagedRange), placement.inputs[i], job.inputs[i].size(),
                  crc32(job.inputs[i]));
    }
    // The block is taken when this changes; 0 is what fresh memory may hold.
    const std::uint32_t sequence = control(offsetof(ControlBlock, request_sequence)) + 1;
    set(offsetof(ControlBlock, request_sequence), sequence == 0 ? 1 : sequence);
    DeviceMemory::barrier();
    answer.stage_inputs_ms = lap();
    return {};
}

std::unexpected<BoardError> RunnerClient::runner_failure(const Reply& reply) {
    const auto code = reply.number <= static_cast<std::uint32_t>(RunnerError::Version)
                          ? static_cast<RunnerError>(reply.number)
                          : RunnerError::None;
    auto failed = board_failure(BoardFault::Runner, "the runner answered ERR {} {}", reply.number, reply.text);
    failed.error().runner = code;
    failed.error().error.code = code_of(code);
    failed.error().error.hint = reply.text.find("before the NPU") == std::string_view::npos
                                    ? runner_error_advice(code)
                                    : "the time was over before it came to the run itself: give it more (--timeout)";
    return with_known(std::move(failed));
}

BoardResult<RunAnswer> RunnerClient::exchange(const RunJob& job, const Placement& placement, RunAnswer answer,
                                              bool check_program, const RunCallbacks& callbacks) {
    const std::string tag = next_tag();
    // Without a control block of its own the firmware would not look at ours: then everything goes into the line, and
    // with a program that was checked before, its range does, for the block's entry would be checked again.
    std::string command = fmt::format("@{} RUN", tag);
    const bool by_block = block_is_ours();
    if (!by_block || !check_program) command += fmt::format(" pte=0x{:X},{}", placement.program, job.program.size());
    if (!by_block) {
        command += " in=";
        for (std::size_t i = 0; i < job.inputs.size(); ++i)
            command += fmt::format("{}0x{:X},{}", i == 0 ? "" : ",", placement.inputs[i], job.inputs[i].size());
        if (check_program) {
            command += fmt::format(" crc=0x{:X}", job.program_crc);
            for (const Bytes input : job.inputs) command += fmt::format(",0x{:X}", crc32(input));
        }
    }
    // The runner gives up earlier than we do, so that its reason reaches us, by a clock that may be slower than ours.
    const auto runner_timeout = std::max<std::chrono::milliseconds>(1ms, job.timeout - job.timeout / 3);
    command += fmt::format(" top={} timeout={}", std::min(job.top, 20u), runner_timeout.count());

    callbacks.phase(RunPhase::Running);
    const auto start = Clock::now();
    const auto deadline = start + job.timeout;
    if (!tty_->send(command))
        return with_known(board_failure(BoardFault::FirmwareStopped, "{} has gone", tty_->path()));
    std::uint32_t heartbeat = control(offsetof(ControlBlock, heartbeat));
    auto alive = start;
    bool aborting = false;
    std::string line;
    for (;;) {
        const auto now = Clock::now();
        const auto got = tty_->receive(line, std::min(deadline, now + kSlice));
        if (got == RunnerTty::Got::HungUp) {
            staged_.reset();
            auto failed =
                board_failure(BoardFault::FirmwareStopped,
                              "the firmware was stopped or restarted while it ran ({} was hung up)", tty_->path());
            // A kernel that hears of the crash starts the firmware again, and its fault record is gone by then.
            failed.error().error.hint =
                "if nobody stopped it, it crashed and Linux started it again: dmesg | grep remoteproc says \"crash "
                "detected\" then; most often the NPU's power or clock is missing (the board checks name it)";
            return with_known(std::move(failed));
        }
        if (got == RunnerTty::Got::Line) {
            const Reply reply = parse_reply(line);
            if (reply.tag != tag) continue;
            alive = Clock::now();
            if (reply.kind == Reply::Kind::Top) answer.top.push_back(reply.top);
            if (reply.kind == Reply::Kind::Output && answer.outputs.size() < kMaxOutputs)
                answer.outputs.push_back({reply.output, {}});
            if (reply.kind == Reply::Kind::Time) answer.times = reply.times;
            if (!reply.ends()) continue;
            answer.run_ms = Milliseconds(Clock::now() - start).count();
            if (reply.kind == Reply::Kind::Ok) return answer;
            if (aborting) return board_failure(BoardFault::Cancelled, "the run was cancelled");
            staged_.reset();  // whatever it was, the next run stages and checks afresh
            return runner_failure(reply);
        }
        if (!aborting && callbacks.cancelled()) {
            aborting = true;
            // Untagged: its own OK must not end our wait for the run's last line.
            if (!tty_->send("ABORT")) return board_failure(BoardFault::FirmwareStopped, "{} has gone", tty_->path());
        }
        if (auto fault = processor_fault()) {
            staged_.reset();
            return *std::move(fault);
        }
        if (const std::uint32_t beat = control(offsetof(ControlBlock, heartbeat)); beat != heartbeat) {
            heartbeat = beat;
            alive = now;
        }
        const bool dead = block_is_ours() && now - alive >= kSilence;
        if (now < deadline && !dead) continue;
        staged_.reset();
        (void)tty_->send("ABORT");
        auto failed = board_failure(BoardFault::NoAnswer, "no answer to RUN within {} ms{}", (now - start) / 1ms,
                                    dead ? ": the firmware's heartbeat stands still" : "");
        if (dead) failed.error().error.hint = kRestart;
        return with_known(std::move(failed));
    }
}

BoardResult<void> RunnerClient::read_outputs(RunAnswer& answer) {
    for (RunOutput& output : answer.outputs) {
        const ReplyOutput& told = output.told;
        if (!kOutputCopies.contains(told.address, told.bytes))
            return board_failure(BoardFault::BadReply, "the runner says that an output of {} bytes lies at 0x{:X}",
                                 told.bytes, told.address);
        output.bytes.resize(told.bytes);
        if (!memory_->read(told.address, output.bytes))
            return board_failure(BoardFault::BadReply, "an output at 0x{:X} cannot be read", told.address);
    }
    return {};
}

BoardResult<RunAnswer> RunnerClient::run(const RunJob& job, const RunCallbacks& callbacks) {
    TRY_ASSIGN(const Placement placement, place(job.program.size(), job.inputs));
    TRY(ready());
    RunAnswer answer;
    callbacks.phase(RunPhase::Waiting);
    const auto start = Clock::now();
    bool cancelled = false;
    if (!tty_->lock([&] {
            cancelled = callbacks.cancelled();
            return cancelled || Clock::now() - start >= job.lock_timeout;
        })) {
        if (cancelled) return board_failure(BoardFault::Cancelled, "the run was cancelled");
        return board_failure(BoardFault::Busy, "another program holds {} for {} s", tty_->path(),
                             (Clock::now() - start) / 1s);
    }
    const Unlock unlock{*tty_};
    answer.wait_ms = Milliseconds(Clock::now() - start).count();
    callbacks.phase(RunPhase::Staging);
    bool check_program = false;
    TRY(stage(job, placement, answer, check_program));
    TRY_ASSIGN(answer, exchange(job, placement, std::move(answer), check_program, callbacks));
    TRY(read_outputs(answer));
    return answer;
}

}  // namespace talpa::link::host
