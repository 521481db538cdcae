// One RUN or LOAD: the staged ranges, the program, its memory, its inputs, the run, its outputs.
#include <algorithm>
#include <optional>

#include "firmware/runner.h"
#include "link/crc32.h"
#include "link/memory_map.h"
#include "pte/metadata.h"
#include "runtime/memory.h"

namespace talpa::firmware {

using link::RunnerCommand;
using link::RunnerError;
using link::RunnerState;

/// Memory handed out piece by piece from one range; null when it is full.
class Carver {
  public:
    Carver(RunnerPlatform& platform, const link::MemoryRange& range)
        : platform_(platform), next_(range.base), left_(range.size) {}
    [[nodiscard]] runtime::Pool take(std::size_t bytes) {
        bytes = runtime::round_up_to_pool(bytes);
        if (bytes > left_) return {};
        std::uint8_t* const at = platform_.memory(next_, static_cast<std::uint32_t>(bytes));
        if (at == nullptr) return {};
        next_ += static_cast<std::uint32_t>(bytes);
        left_ -= bytes;
        return {at, bytes};
    }

  private:
    RunnerPlatform& platform_;
    std::uint32_t next_;
    std::size_t left_;
};

namespace {

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
        case ErrorCode::Timeout:
            return RunnerError::Timeout;
        default:
            return RunnerError::RuntimeError;
    }
}

template <typename... Args>
std::unexpected<Failure> refuse(RunnerError code, ErrorCode error, const char* sentence, const Args&... args) {
    return std::unexpected(Failure{code, (fail)(error, sentence, args...).error()});
}
std::unexpected<Failure> failed(const Error& error) {
    return std::unexpected(Failure{code_of(error), error});
}

constexpr std::uint32_t kChunk = 64 * 1024;  // between two looks at the link

Outcome check_identifier(RunnerPlatform& platform, const std::uint8_t* bytes, const StagedInput& range) {
    if (range.length >= 8 && bytes[4] == 'E' && bytes[5] == 'T' && bytes[6] == '1' && bytes[7] == '2') return {};
    Text<100> line;
    line.add(TALPA_SENTENCE("Program identifier '"));
    for (std::uint32_t i = 4; i < 8 && i < range.length; ++i)
        if (bytes[i] > 0x20 && bytes[i] < 0x7F) line.put({reinterpret_cast<const char*>(&bytes[i]), 1});
    line.add(TALPA_SENTENCE("' != expected 'ET12'"));
    platform.trace(line.view());
    return refuse(RunnerError::NoModel, ErrorCode::NotFound, TALPA_SENTENCE("no ET12 at {}"), hex(range.address));
}

/// What the method needs, and room for the outputs that the program does not plan.
Outcome give_memory(RunnerPlatform& platform, runtime::Method& method, Carver& planned, Carver& npu) {
    const runtime::MemoryNeed& need = method.need();
    std::array<runtime::Pool, runtime::kMaxArenas> arenas{};
    for (std::uint32_t i = 0; i < need.arena_count; ++i) arenas[i] = planned.take(need.planned[i]);
    runtime::Pools pools;
    pools.planned = {arenas.data(), need.arena_count};
    pools.temporary = planned.take(need.temporary);
    pools.scratch = npu.take(need.scratch);
    if constexpr (kFastScratchInOcram) pools.fast_scratch = Carver(platform, link::kOcram).take(need.fast_scratch);
    if (pools.fast_scratch.empty()) pools.fast_scratch = npu.take(need.fast_scratch);
    if (const auto bound = method.bind(pools); !bound) return failed(bound.error());
    for (std::uint32_t i = 0; i < method.output_count(); ++i)
        if (method.output_is_unplanned(i)) {
            const runtime::Value& value = method.output(i);
            if (value.kind != runtime::Value::Kind::Tensor) continue;
            if (const auto given = method.set_output_memory(i, planned.take(value.tensor->size_bytes())); !given)
                return failed(given.error());
        }
    return {};
}

}  // namespace

/// Adds the time of each instruction to the phase that it belongs to, and keeps the link moving between two.
class StepTimer final : public runtime::Observer {
  public:
    StepTimer(Runner& runner, const pte::MethodView& method, Runner::Times& times)
        : runner_(runner), method_(method), times_(times) {}

    void before(const runtime::Step&) override {
        runner_.service();
        start_ = runner_.platform_.cycles();
    }
    void after(const runtime::Step& step) override {
        const std::uint32_t spent = runner_.platform_.cycles() - start_;
        const auto type = pte::InstructionView(method_.instructions(step.chain)[step.instruction]).type();
        if (type == pte::InstructionType::DelegateCall) {
            times_.npu += spent;
            delegated_ = true;
        } else {
            (delegated_ ? times_.dequantize : times_.quantize) += spent;
        }
    }

  private:
    Runner& runner_;
    const pte::MethodView& method_;
    Runner::Times& times_;
    std::uint32_t start_ = 0;
    bool delegated_ = false;
};

/// Time since the last lap, into the phase that has just ended.
class LapTimer {
  public:
    explicit LapTimer(RunnerPlatform& platform) : platform_(platform), mark_(platform.cycles()) {}
    void lap(std::uint32_t& phase) {
        const std::uint32_t now = platform_.cycles();
        phase += now - mark_;
        mark_ = now;
    }

  private:
    RunnerPlatform& platform_;
    std::uint32_t mark_;
};

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
        outcome = refuse(staging.error(), ErrorCode::InvalidArgument, "the staged ranges");

    if (outcome) {
        report(request, times, npu_cycles, platform_.cycles() - start);
        set_state(RunnerState::Done);
    } else {
        Failure failure = outcome.error();
        if (must_stop() == Stop::Aborted) failure.code = RunnerError::Aborted;
        std::array<char, 180> buffer{};
        const std::string_view detail = failure.error.render(buffer);
        Text<link::kMaxLine> text;
        if (failure.code == RunnerError::RuntimeError)
            text.add(TALPA_SENTENCE("et=")).hex(static_cast<std::uint32_t>(failure.error.code)).put(" ");
        text.put(detail);
        set_state(RunnerState::Error);
        reply_error(request.peer, request.tag_view(), failure.code, text.view());
    }
    running_ = false;
    abort_ = false;
}

Outcome Runner::go_on() {
    service();
    if (must_stop() == Stop::No) return {};
    return refuse(RunnerError::Timeout, ErrorCode::Timeout, TALPA_SENTENCE("before the NPU had anything to do"));
}

Outcome Runner::copy_checked(std::uint8_t* to, const std::uint8_t* from, const StagedInput& range, const char* what) {
    std::uint32_t found = 0;
    for (std::uint32_t at = 0; at < range.length; at += kChunk) {
        const std::uint32_t bytes = std::min(kChunk, range.length - at);
        // Linux may change its memory at any time: the check is of the copy, and it is the copy that is used.
        if (to != from) runtime::copy_bytes(to + at, from + at, bytes);
        found = link::crc32({to + at, bytes}, found);
        if (auto went = go_on(); !went) return went;
    }
    if (found == range.crc32) return {};
    return refuse(RunnerError::CrcMismatch, ErrorCode::InvalidProgram, TALPA_SENTENCE("{} has {}, expected {}"), what,
                  hex(found), hex(range.crc32));
}

Outcome Runner::run(const Request& request, const Staging& staging, Times& times, std::uint64_t& npu_cycles) {
    LapTimer timer(platform_);
    std::uint8_t* bytes = platform_.memory(staging.program.address, staging.program.length);
    if (bytes == nullptr)
        return refuse(RunnerError::BadAddress, ErrorCode::OutOfBounds, TALPA_SENTENCE("the program's range"));
    if (auto known = check_identifier(platform_, bytes, staging.program); !known) return known;
    Carver planned(platform_, link::kPlannedBuffers);
    Carver npu(platform_, link::kNpuScratch);
    if (staging.program.check_crc) {
        // One that is larger than the memory for copies is checked, and used, where it lies.
        const runtime::Pool copy = planned.take(staging.program.length);
        std::uint8_t* const to = copy.empty() ? bytes : copy.data();
        if (auto checked = copy_checked(to, bytes, staging.program, "program"); !checked) return checked;
        bytes = to;
    }
    timer.lap(times.crc);

    const auto program = pte::Program::open({bytes, staging.program.length});
    if (!program) return failed(program.error());
    if (program->method_count() == 0)
        return refuse(RunnerError::RuntimeError, ErrorCode::InvalidProgram,
                      TALPA_SENTENCE("the program has no method"));
    const bool has_forward = program->find_method("forward").has_value();
    const std::string_view name = has_forward ? "forward" : program->method(0).name();
    const auto view = program->find_method(name);
    if (!view) return failed(view.error());
    const auto pool_bytes = runtime::Method::pool_bytes(*view);
    if (!pool_bytes) return failed(pool_bytes.error());

    StepTimer steps(*this, *view, times);
    runtime::LoadOptions options;
    options.operators = operators_;
    const bool uses_npu = view->delegate_count() > 0;
    if (uses_npu) {
        const auto device = platform_.npu();
        if (!device) return std::unexpected(Failure{RunnerError::NpuAbsent, device.error()});
        options.device = *device;
    }
    options.observer = &steps;
    auto method = runtime::Method::load(*program, name, planned.take(*pool_bytes), options);
    if (!method) return failed(method.error());

    planned_bytes_ = method->need().planned_total();
    scratch_bytes_ = method->need().scratch + method->need().fast_scratch;
    if (auto bound = give_memory(platform_, *method, planned, npu); !bound) return bound;
    timer.lap(times.load);
    if (request.command == RunnerCommand::Load) {
        output_count_ = 0;
        return {};
    }

    reply(request, "STATUS running");
    set_state(RunnerState::Running);
    const std::uint32_t crc_before = times.crc;
    if (auto read = read_inputs(*method, staging, planned, times); !read) return read;
    timer.lap(times.input);
    times.input -= times.crc - crc_before;
    if (auto went = go_on(); !went) return went;

    if (const auto ran = method->execute(); !ran) return failed(ran.error());
    timer.lap(times.run);
    if (must_stop() == Stop::Aborted)
        return refuse(RunnerError::Aborted, ErrorCode::Timeout, TALPA_SENTENCE("after the last instruction"));
    if (uses_npu) {
        Text<100> line;
        line.add(TALPA_SENTENCE("NPU config match, NPU arch match; cmd_end_reached 0x1, bus_status_error 0x0"));
        platform_.trace(line.view());
    }
    npu_cycles = method->npu_cycles();
    const auto scale = pte::io_quantization(*program, *view, pte::IoSide::Output, 0);
    output_scale_ = scale ? static_cast<float>(scale->scale) : 0;
    output_zero_point_ = scale ? static_cast<std::int32_t>(scale->zero_point) : 0;
    return copy_outputs(*method, request);
}

Outcome Runner::read_inputs(runtime::Method& method, const Staging& staging, Carver& copies, Times& times) {
    std::uint32_t given = 0, next = staging.inputs[0].address;
    for (std::uint32_t i = 0; i < method.input_count(); ++i) {
        if (method.input(i).kind != runtime::Value::Kind::Tensor) continue;  // fixed when the program was exported
        const auto range = input_range(method, staging, i, given++, next);
        if (!range) return std::unexpected(range.error());
        runtime::Pool copy;
        if (range->check_crc && method.input_is_unplanned(i)) {
            copy = copies.take(range->length);
            if (copy.empty())
                return refuse(RunnerError::Memory, ErrorCode::MemoryAllocation, TALPA_SENTENCE("a copy of input {}"),
                              i);
        }
        if (auto set = set_input(method, i, *range, copy, times); !set) return set;
    }
    if (staging.input_count != 0 && given != staging.input_count)
        return refuse(RunnerError::InputMismatch, ErrorCode::InvalidArgument,
                      TALPA_SENTENCE("{} inputs staged, the program wants {}"), staging.input_count, given);
    return {};
}

std::expected<StagedInput, Failure> Runner::input_range(const runtime::Method& method, const Staging& staging,
                                                        std::uint32_t input, std::uint32_t given, std::uint32_t& next) {
    const auto wanted = static_cast<std::uint32_t>(method.input(input).tensor->size_bytes());
    if (staging.input_count == 0) {
        const auto address = staged_address(next, wanted);
        if (!address)
            return refuse(RunnerError::InputMismatch, ErrorCode::InvalidArgument,
                          TALPA_SENTENCE("input {} of {} bytes has no default place"), input, wanted);
        next = *address + static_cast<std::uint32_t>(runtime::round_up_to_pool(wanted));
        return StagedInput{*address, wanted, 0, false};
    }
    if (given == staging.input_count)
        return refuse(RunnerError::InputMismatch, ErrorCode::InvalidArgument,
                      TALPA_SENTENCE("{} inputs staged, input {} is missing"), given, input);
    const StagedInput& range = staging.inputs[given];
    if (range.length != wanted)
        return refuse(RunnerError::InputMismatch, ErrorCode::InvalidArgument,
                      TALPA_SENTENCE("input {} has {} bytes, the program wants {}"), input, range.length, wanted);
    return range;
}

Outcome Runner::set_input(runtime::Method& method, std::uint32_t input, const StagedInput& range, runtime::Pool copy,
                          Times& times) {
    const std::uint8_t* bytes = platform_.memory(range.address, range.length);
    if (bytes == nullptr)
        return refuse(RunnerError::BadAddress, ErrorCode::OutOfBounds, TALPA_SENTENCE("input {}"), input);
    const auto checked = [&](std::uint8_t* to, const std::uint8_t* from) {
        LapTimer timer(platform_);
        auto outcome = copy_checked(to, from, range, "input");
        timer.lap(times.crc);
        return outcome;
    };
    if (!copy.empty()) {
        if (auto good = checked(copy.data(), bytes); !good) return good;
        bytes = copy.data();
    }
    if (const auto set = method.set_input(input, {bytes, range.length}); !set)
        return std::unexpected(Failure{RunnerError::InputMismatch, set.error()});
    if (!range.check_crc || !copy.empty()) return {};
    std::uint8_t* const taken = method.input(input).tensor->data;  // the planned copy
    return checked(taken, taken);
}

Outcome Runner::copy_outputs(runtime::Method& method, const Request& request) {
    volatile link::ControlBlock& c = control();
    output_count_ = 0;
    c.output_count = 0;
    std::uint32_t address = link::kOutputCopies.base;
    if (request.output_given) {
        address = request.output_offset;
        if (!link::kOutputCopies.contains(address, 1) || address % 16 != 0)
            return refuse(RunnerError::BadAddress, ErrorCode::OutOfBounds, TALPA_SENTENCE("out={}"), hex(address));
    }
    for (std::uint32_t i = 0; i < method.output_count() && output_count_ < outputs_.size(); ++i) {
        if (method.output(i).kind != runtime::Value::Kind::Tensor) continue;
        const auto tensor = method.output_tensor(i);
        if (!tensor) return failed(tensor.error());
        const auto bytes = static_cast<std::uint32_t>((*tensor)->size_bytes());
        std::uint8_t* const to =
            link::kOutputCopies.contains(address, bytes) ? platform_.memory(address, bytes) : nullptr;
        if (to == nullptr)
            return refuse(RunnerError::Memory, ErrorCode::OutOfResources, TALPA_SENTENCE("output {} of {} bytes"), i,
                          bytes);
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

}  // namespace talpa::firmware
