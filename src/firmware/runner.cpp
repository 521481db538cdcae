#include "firmware/runner.h"

#include <algorithm>

#include "firmware/scores.h"
#include "link/crc32.h"
#include "link/memory_map.h"
#include "runtime/memory.h"

namespace talpa::firmware {

using link::RunnerCommand;
using link::RunnerError;
using link::RunnerState;

namespace {

using ReplyText = Text<link::kMaxLine + link::kMaxTag + 2>;

constexpr std::uint32_t kUnknownReplyEveryMs = 100;  // so that an echo of an answer cannot become a loop
constexpr std::size_t kMaxTop = 20;

/// The runner's code for an error of the runtime.
RunnerError code_of(const Error& error) {
    switch (error.code) {
        case ErrorCode::OperatorMissing:
            return RunnerError::UnsupportedOperator;
        case ErrorCode::MemoryAllocation:
        case ErrorCode::DelegateAllocation:
            return RunnerError::Memory;
        case ErrorCode::DelegateIncompatible:
        case ErrorCode::CommandStream:
        case ErrorCode::WeightStream:
            return RunnerError::NpuMismatch;
        case ErrorCode::NpuFault:
        case ErrorCode::OutOfBounds:
            return RunnerError::NpuBusError;
        case ErrorCode::NotFound:
            return RunnerError::NpuAbsent;
        case ErrorCode::Timeout:
            return RunnerError::Timeout;
        default:
            return RunnerError::RuntimeError;
    }
}

/// Memory handed out piece by piece from one range; null when it is full.
class Carver {
  public:
    Carver(RunnerPlatform& platform, const link::MemoryRange& range) : platform_(platform), range_(range) {}
    [[nodiscard]] runtime::Pool take(std::size_t bytes) {
        bytes = runtime::round_up_to_pool(bytes);
        if (bytes > range_.size - used_) return {};
        std::uint8_t* const at =
            platform_.memory(range_.base + static_cast<std::uint32_t>(used_), static_cast<std::uint32_t>(bytes));
        if (at == nullptr) return {};
        used_ += bytes;
        return {at, bytes};
    }

  private:
    RunnerPlatform& platform_;
    const link::MemoryRange& range_;
    std::size_t used_ = 0;
};

}  // namespace

/// Adds the time of each instruction to the phase that it belongs to.
class StepTimer final : public runtime::Observer {
  public:
    StepTimer(RunnerPlatform& platform, const pte::MethodView& method, Runner::Times& times)
        : platform_(platform), method_(method), times_(times) {}

    void before(const runtime::Step&) override { start_ = platform_.cycles(); }
    void after(const runtime::Step& step) override {
        const std::uint32_t spent = platform_.cycles() - start_;
        const auto type = pte::InstructionView(method_.instructions(step.chain)[step.instruction]).type();
        if (type == pte::InstructionType::DelegateCall) {
            times_.npu += spent;
            delegated_ = true;
        } else {
            (delegated_ ? times_.dequantize : times_.quantize) += spent;
        }
    }

  private:
    RunnerPlatform& platform_;
    const pte::MethodView& method_;
    Runner::Times& times_;
    std::uint32_t start_ = 0;
    bool delegated_ = false;
};

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
    platform_.service_link();
    outbox_.flush([&](Peer peer, std::string_view text) { return platform_.send(peer, text); });
}

void Runner::poll() {
    service();
    if (queued_ == 0) return;
    const Request request = queue_[first_];
    first_ = (first_ + 1) % queue_.size();
    --queued_;
    execute(request);
    service();
}

void Runner::received(Peer peer, std::string_view message) {
    Line* line = nullptr;
    for (Line& l : lines_)
        if (l.peer.endpoint == peer.endpoint || l.peer.endpoint == 0) {
            line = &l;
            break;
        }
    if (line == nullptr) return;                                      // an endpoint that was never announced
    if (line->peer.address != peer.address) line->assembler.clear();  // half a line of somebody who has gone
    line->peer = peer;
    line->assembler.feed(message, [&](std::string_view text, bool too_long) {
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
    });
}

void Runner::reply(const Request& request, std::string_view line) {
    ReplyText text;
    if (request.tag_size != 0) text.put("@").put(request.tag_view()).put(" ");
    text.put(line.substr(0, link::kMaxLine - 1)).put("\n");
    // A run may wait for room; what is answered inside `received` may not, for the link would have to move for it.
    const std::uint32_t start = platform_.now_ms();
    while (!outbox_.push(request.peer, text.view())) {
        if (!running_ || !platform_.link_up() || platform_.now_ms() - start > 2000) return;
        service();
    }
}

void Runner::reply_error(Peer peer, std::string_view tag, RunnerError code, std::string_view detail) {
    Request to;
    to.peer = peer;
    to.tag_size = static_cast<std::uint8_t>(tag.size());
    std::copy(tag.begin(), tag.end(), to.tag.begin());
    last_error_ = code;
    control().last_error = static_cast<std::uint32_t>(code);
    Text<link::kMaxLine> line;
    line.put("ERR ").number(static_cast<unsigned>(code)).put(" ").put(link::runner_error_text(code));
    if (!detail.empty()) line.put(": ").put(detail);
    reply(to, line.view());
    platform_.trace(line.view());
}

void Runner::handle(const Request& request) {
    Text<link::kMaxLine> line;
    switch (request.command) {
        case RunnerCommand::Ping:
            return reply(request, line.put("PONG seq=").number(sequence_).view());
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
            level_ = request.level;
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

void Runner::info(const Request& request) {
    const auto range = [](Text<link::kMaxLine>& text, std::string_view key, const link::MemoryRange& r) {
        text.put(key).hex(r.base).put(",0x");
    };
    Text<link::kMaxLine> line;
    line.put("INFO proto=").put(link::kProtocolName).put(" fw=").put(version_);
    range(line, " model=", link::kModelRegion);
    line.put("400000");
    range(line, " npu=", link::kEthosuRegion);
    line.put("8000000");
    range(line, " big=", link::kBigPrograms);
    line.put("4000000");
    static_assert(link::kModelRegion.size == 0x400000 && link::kEthosuRegion.size == 0x8000000 &&
                  link::kBigPrograms.size == 0x4000000);
    reply(request, line.view());
    line.clear();
    line.put("INFO pte_max=")
        .number(link::kProgram.size)
        .put(" ctrl=0x36C000 in=0x36D000,")
        .number(link::kInputTensor.size)
        .put(" et=ET12 mac=256 ops=")
        .number(operators_.size());
    reply(request, line.view());
    reply(request, "OK INFO");
}

void Runner::status(const Request& request) {
    Text<link::kMaxLine> line;
    line.put("STATUS state=")
        .put(running_ ? "running" : "idle")
        .put(" run=")
        .number(sequence_)
        .put(" err=")
        .number(static_cast<unsigned>(last_error_));
    line.put(" up_ms=")
        .number(platform_.now_ms())
        .put(" heap=0 npu=")
        .put(platform_.npu_state())
        .put(" queued=")
        .number(queued_);
    reply(request, line.view());
    reply(request, "OK STATUS");
}

void Runner::crc(const Request& request) {
    const auto address = staged_address(request.program.offset, request.program.length);
    const std::uint8_t* const bytes = address ? platform_.memory(*address, request.program.length) : nullptr;
    if (bytes == nullptr) return reply_error(request.peer, request.tag_view(), RunnerError::BadAddress, {});
    Text<link::kMaxLine> line;
    reply(request, line.put("CRC ").hex(link::crc32({bytes, request.program.length})).view());
}

void Runner::out(const Request& request) {
    if (request.index >= output_count_)
        return reply_error(request.peer, request.tag_view(), RunnerError::BadArgument, "no such output");
    const Output& output = outputs_[request.index];
    const std::size_t n = output.tensor.numel();
    Text<link::kMaxLine> line;
    line.put("OUT i=").number(request.index).put(" from=").number(request.from).put(" v=");
    const std::size_t element_bytes = runtime::scalar_size(output.tensor.type);
    for (std::uint32_t i = 0; i < request.count && std::size_t{request.from} + i < n; ++i) {
        if (line.view().size() + 24 > link::kMaxLine - link::kMaxTag) break;  // the reader asks again from there
        if (i > 0) line.put(",");
        if (request.hex) {
            const std::uint8_t* const bytes = output.tensor.data + (request.from + i) * element_bytes;
            std::uint32_t word = 0;
            for (std::size_t b = std::min<std::size_t>(element_bytes, 4); b-- > 0;) word = (word << 8) | bytes[b];
            line.hex(word);
        } else if (output.tensor.type == runtime::ScalarType::Float32) {
            line.fixed(output.tensor.as<const float>()[request.from + i], 6);
        } else {
            line.signed_number(static_cast<std::int64_t>(element(output.tensor, request.from + i, {})));
        }
    }
    reply(request, line.view());
    reply(request, "OK OUT");
}

void Runner::execute(const Request& request) {
    if (request.command == RunnerCommand::Crc) return crc(request);
    if (request.command == RunnerCommand::Out) return out(request);

    running_ = true;
    abort_ = false;
    deadline_ms_ = platform_.now_ms() + request.timeout_ms;
    const std::uint32_t start = platform_.cycles();
    platform_.trace_restart();
    set_state(RunnerState::Loading);
    if (request.command == RunnerCommand::Run) reply(request, "STATUS loading");

    Times times;
    std::uint64_t npu_cycles = 0;
    Outcome outcome;
    const auto staging = resolve_staging(request, control(), last_request_);
    if (staging)
        outcome = run(request, *staging, times, npu_cycles);
    else
        outcome = std::unexpected(Failure{staging.error(), Error(ErrorCode::InvalidArgument, "the staged ranges")});

    if (outcome) {
        report(request, times, npu_cycles, platform_.cycles() - start);
        set_state(RunnerState::Done);
    } else {
        Failure failure = outcome.error();
        if (must_stop() == Stop::Aborted) failure.code = RunnerError::Aborted;
        if (must_stop() == Stop::TimedOut && failure.error.code == ErrorCode::Timeout)
            failure.code = RunnerError::Timeout;
        std::array<char, 180> buffer{};
        const std::string_view detail = failure.error.render(buffer);
        Text<link::kMaxLine> text;
        if (failure.code == RunnerError::RuntimeError)
            text.put("et=").hex(static_cast<std::uint32_t>(failure.error.code)).put(" ");
        text.put(detail);
        set_state(RunnerState::Error);
        reply_error(request.peer, request.tag_view(), failure.code, text.view());
    }
    running_ = false;
    abort_ = false;
}

Runner::Outcome Runner::check_crc(const StagedInput& range, const char* what) {
    if (!range.check_crc) return {};
    const std::uint8_t* const bytes = platform_.memory(range.address, range.length);
    if (bytes == nullptr)
        return std::unexpected(Failure{RunnerError::BadAddress, Error(ErrorCode::OutOfBounds, "{}", what)});
    const std::uint32_t found = link::crc32({bytes, range.length});
    if (found == range.crc32) return {};
    return std::unexpected(Failure{RunnerError::CrcMismatch, Error(ErrorCode::InvalidProgram, "{} has {}, expected {}",
                                                                   what, hex(found), hex(range.crc32))});
}

Runner::Outcome Runner::run(const Request& request, const Staging& staging, Times& times, std::uint64_t& npu_cycles) {
    const auto failed = [](const Error& error) { return std::unexpected(Failure{code_of(error), error}); };
    std::uint32_t mark = platform_.cycles();
    const auto lap = [&](std::uint32_t& phase) {
        const std::uint32_t now = platform_.cycles();
        phase += now - mark;
        mark = now;
    };

    const std::uint8_t* const bytes = platform_.memory(staging.program.address, staging.program.length);
    if (bytes == nullptr)
        return std::unexpected(Failure{RunnerError::BadAddress, Error(ErrorCode::OutOfBounds, "the program's range")});
    if (staging.program.length < 8 || bytes[4] != 'E' || bytes[5] != 'T' || bytes[6] != '1' || bytes[7] != '2') {
        Text<100> line;
        line.put("Program identifier '");
        for (std::uint32_t i = 4; i < 8 && i < staging.program.length; ++i)
            if (bytes[i] > 0x20 && bytes[i] < 0x7F) line.put({reinterpret_cast<const char*>(&bytes[i]), 1});
        line.put("' != expected 'ET12'");
        platform_.trace(line.view());
        return std::unexpected(
            Failure{RunnerError::NoModel, Error(ErrorCode::NotFound, "no ET12 at {}", hex(staging.program.address))});
    }
    if (auto checked = check_crc(staging.program, "program"); !checked) return checked;
    lap(times.crc);

    const auto program = pte::Program::open({bytes, staging.program.length});
    if (!program) return failed(program.error());
    if (program->method_count() == 0) return failed(Error(ErrorCode::InvalidProgram, "the program has no method"));
    const bool has_forward = program->find_method("forward").has_value();
    const std::string_view name = has_forward ? "forward" : program->method(0).name();
    const auto view = program->find_method(name);
    if (!view) return failed(view.error());

    Carver planned(platform_, link::kPlannedBuffers);
    Carver npu(platform_, link::kNpuScratch);
    const auto pool_bytes = runtime::Method::pool_bytes(*view);
    if (!pool_bytes) return failed(pool_bytes.error());
    StepTimer timer(platform_, *view, times);
    runtime::LoadOptions options;
    options.operators = operators_;
    if (view->delegate_count() > 0) {
        const auto device = platform_.npu();
        if (!device) return std::unexpected(Failure{RunnerError::NpuAbsent, device.error()});
        options.device = *device;
    }
    options.observer = &timer;
    auto method = runtime::Method::load(*program, name, planned.take(*pool_bytes), options);
    if (!method) return failed(method.error());

    const runtime::MemoryNeed& need = method->need();
    std::array<runtime::Pool, runtime::kMaxArenas> arenas{};
    for (std::uint32_t i = 0; i < need.arena_count; ++i) arenas[i] = planned.take(need.planned[i]);
    runtime::Pools pools;
    pools.planned = {arenas.data(), need.arena_count};
    pools.temporary = planned.take(need.temporary);
    pools.scratch = npu.take(need.scratch);
    pools.fast_scratch = npu.take(need.fast_scratch);
    planned_bytes_ = need.planned_total();
    scratch_bytes_ = need.scratch + need.fast_scratch;
    if (const auto bound = method->bind(pools); !bound) return failed(bound.error());
    for (std::uint32_t i = 0; i < method->output_count(); ++i)
        if (method->output_is_unplanned(i)) {
            const runtime::Value& value = method->output(i);
            if (value.kind != runtime::Value::Kind::Tensor) continue;
            if (const auto given = method->set_output_memory(i, planned.take(value.tensor->size_bytes())); !given)
                return failed(given.error());
        }
    lap(times.load);
    if (request.command == RunnerCommand::Load) {
        output_count_ = 0;
        return {};
    }

    reply(request, "STATUS running");
    set_state(RunnerState::Running);
    service();
    if (auto set = set_inputs(*method, request, staging, times); !set) return set;
    lap(times.input);
    if (const auto ran = method->execute(); !ran) return failed(ran.error());
    lap(times.run);
    npu_cycles = method->npu_cycles();
    find_scales(*program);
    return copy_outputs(*method, request);
}

Runner::Outcome Runner::set_inputs(runtime::Method& method, const Request&, const Staging& staging, Times& times) {
    std::uint32_t given = 0;
    std::uint32_t next_address = staging.inputs[0].address;
    for (std::uint32_t i = 0; i < method.input_count(); ++i) {
        const runtime::Value& value = method.input(i);
        if (value.kind != runtime::Value::Kind::Tensor) continue;  // fixed when the program was exported
        const auto wanted = static_cast<std::uint32_t>(value.tensor->size_bytes());
        StagedInput range;
        if (staging.input_count == 0) {
            const auto address = staged_address(next_address, wanted);
            if (!address)
                return std::unexpected(
                    Failure{RunnerError::InputMismatch,
                            Error(ErrorCode::InvalidArgument, "input {} of {} bytes has no default place", i, wanted)});
            range = {*address, wanted, 0, false};
            next_address = *address + static_cast<std::uint32_t>(runtime::round_up_to_pool(wanted));
        } else {
            if (given == staging.input_count)
                return std::unexpected(
                    Failure{RunnerError::InputMismatch,
                            Error(ErrorCode::InvalidArgument, "{} inputs staged, input {} is missing", given, i)});
            range = staging.inputs[given];
        }
        ++given;
        if (range.length != wanted)
            return std::unexpected(
                Failure{RunnerError::InputMismatch,
                        Error(ErrorCode::InvalidArgument, "input {} has {} bytes, the program wants {}", i,
                              range.length, wanted)});
        const std::uint8_t* const bytes = platform_.memory(range.address, range.length);
        if (bytes == nullptr)
            return std::unexpected(Failure{RunnerError::BadAddress, Error(ErrorCode::OutOfBounds, "input {}", i)});
        const std::uint32_t start = platform_.cycles();
        if (auto checked = check_crc(range, "input"); !checked) return checked;
        times.crc += platform_.cycles() - start;
        if (const auto set = method.set_input(i, {bytes, range.length}); !set)
            return std::unexpected(Failure{RunnerError::InputMismatch, set.error()});
    }
    if (staging.input_count != 0 && given != staging.input_count)
        return std::unexpected(Failure{
            RunnerError::InputMismatch,
            Error(ErrorCode::InvalidArgument, "{} inputs staged, the program wants {}", staging.input_count, given)});
    return {};
}

/// Scale and zero point of an integer output, where the program carries them as methods without instructions.
void Runner::find_scales(const pte::Program& program) {
    output_scale_ = 0;
    output_zero_point_ = 0;
    const auto constant = [&](std::string_view name) -> std::optional<pte::ValueView> {
        const auto method = program.find_method(name);
        if (!method || method->outputs().size() != 1) return std::nullopt;
        const std::int32_t index = method->outputs()[0];
        if (index < 0 || static_cast<std::uint32_t>(index) >= method->values().size()) return std::nullopt;
        return method->value(static_cast<std::uint32_t>(index));
    };
    if (const auto scale = constant("output0_scale"); scale && scale->type() == pte::ValueType::Double)
        output_scale_ = static_cast<float>(scale->as_double());
    if (const auto zero = constant("output0_zp"); zero && zero->type() == pte::ValueType::Int)
        output_zero_point_ = static_cast<std::int32_t>(zero->as_int());
}

Runner::Outcome Runner::copy_outputs(runtime::Method& method, const Request& request) {
    volatile link::ControlBlock& c = control();
    output_count_ = 0;
    c.output_count = 0;
    std::uint32_t address = link::kOutputCopies.base;
    if (request.output_given) {
        address = request.output_offset;
        if (!link::kOutputCopies.contains(address, 1) || address % 16 != 0)
            return std::unexpected(
                Failure{RunnerError::BadAddress, Error(ErrorCode::OutOfBounds, "out={}", hex(address))});
    }
    for (std::uint32_t i = 0; i < method.output_count() && output_count_ < outputs_.size(); ++i) {
        if (method.output(i).kind != runtime::Value::Kind::Tensor) continue;
        const auto tensor = method.output_tensor(i);
        if (!tensor) return std::unexpected(Failure{code_of(tensor.error()), tensor.error()});
        const auto bytes = static_cast<std::uint32_t>((*tensor)->size_bytes());
        if (!link::kOutputCopies.contains(address, bytes))
            return std::unexpected(
                Failure{RunnerError::Memory, Error(ErrorCode::OutOfResources, "output {} of {} bytes", i, bytes)});
        std::uint8_t* const to = platform_.memory(address, bytes);
        runtime::copy_bytes(to, (*tensor)->data, bytes);
        Output& output = outputs_[output_count_];
        output = {address, bytes, **tensor};
        output.tensor.data = to;
        c.outputs[output_count_].address = address;
        c.outputs[output_count_].length = bytes;
        ++output_count_;
        address += static_cast<std::uint32_t>(runtime::round_up_to_pool(bytes));
    }
    c.output_count = output_count_;
    return {};
}

void Runner::report(const Request& request, const Times& times, std::uint64_t npu_cycles, std::uint32_t total_cycles) {
    const std::uint32_t per_us = platform_.cycles_per_us();
    Text<link::kMaxLine> line;
    if (request.command == RunnerCommand::Load) {
        line.put("OK LOAD planned=")
            .number(planned_bytes_)
            .put(" scratch=")
            .number(scratch_bytes_)
            .put(" load_us=")
            .number(times.load / per_us);
        return reply(request, line.view());
    }
    std::uint32_t argmax = 0;
    if (output_count_ > 0) {
        std::array<Score, kMaxTop> top{};
        const std::size_t wanted = std::max<std::size_t>(1, request.top);
        const std::size_t found =
            best_scores(outputs_[0].tensor, {output_scale_, output_zero_point_}, std::span(top).first(wanted));
        argmax = top[0].index;
        for (std::size_t i = 0; i < found && i < request.top; ++i) {
            line.clear();
            line.put("TOP ")
                .number(i + 1)
                .put(" class=")
                .number(top[i].index)
                .put(" score=")
                .fixed(top[i].probability, 6)
                .put(" logit=")
                .fixed(top[i].logit, 6);
            reply(request, line.view());
        }
    }
    for (std::uint32_t i = 0; i < output_count_; ++i) {
        const Output& output = outputs_[i];
        line.clear();
        line.put("OUT shape=");
        for (std::uint8_t d = 0; d < output.tensor.rank; ++d)
            line.put(d > 0 ? "x" : "").number(static_cast<std::uint32_t>(output.tensor.sizes[d]));
        line.put(" dtype=").put(
            output.tensor.type == runtime::ScalarType::Float32 ? "f32" : runtime::scalar_name(output.tensor.type));
        line.put(" bytes=").number(output.bytes).put(" addr=").hex(output.address);
        if (i == 0) line.put(" argmax=").number(argmax);
        reply(request, line.view());
    }
    trace_outputs();
    ++sequence_;
    control().run_sequence = sequence_;
    line.clear();
    line.put("TIME crc_us=")
        .number(times.crc / per_us)
        .put(" load_us=")
        .number(times.load / per_us)
        .put(" input_us=")
        .number(times.input / per_us);
    line.put(" quantize_us=")
        .number(times.quantize / per_us)
        .put(" npu_us=")
        .number(times.npu / per_us)
        .put(" dequantize_us=")
        .number(times.dequantize / per_us);
    line.put(" run_us=")
        .number(times.run / per_us)
        .put(" npu_cycles=")
        .number(npu_cycles)
        .put(" cpu_cycles=")
        .number(total_cycles);
    reply(request, line.view());
    line.clear();
    reply(request, line.put("OK RUN seq=").number(sequence_).view());
}

/// The words that users of the original runner look for.
void Runner::trace_outputs() {
    constexpr std::size_t kShown = 32;
    Text<120> line;
    for (std::uint32_t o = 0; o < output_count_; ++o) {
        const runtime::Tensor& t = outputs_[o].tensor;
        const std::size_t n = t.numel();
        line.clear();
        line.put("Output[")
            .number(o)
            .put("]: dtype=")
            .signed_number(static_cast<int>(t.type))
            .put(", numel=")
            .number(n)
            .put(", nbytes=")
            .number(outputs_[o].bytes);
        platform_.trace(line.view());
        for (std::size_t i = 0; i < n && i < kShown && t.type == runtime::ScalarType::Float32; ++i) {
            line.clear();
            line.put("    [").number(i).put("]=").signed_number(t.as<const std::int32_t>()[i]).put(" (float raw)");
            platform_.trace(line.view());
        }
        line.clear();
        if (n > kShown) platform_.trace(line.put("    ... (").number(n - kShown).put(" more elements)").view());
    }
    line.clear();
    platform_.trace(line.number(sequence_ + 1).put(" inferences finished").view());
    platform_.trace("Model run: 1");
}

}  // namespace talpa::firmware
