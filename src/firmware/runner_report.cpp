// What the runner says: the answers to INFO, STATUS and OUT, and the lines of a run that succeeded.
#include <algorithm>

#include "firmware/runner.h"
#include "firmware/scores.h"
#include "link/memory_map.h"

namespace talpa::firmware {

using link::RunnerCommand;
using link::RunnerError;

void Runner::info(const Request& request) {
    static_assert(link::kModelRegion.base == 0xC0000000 && link::kModelRegion.size == 0x400000 &&
                  link::kEthosuRegion.base == 0xA8000000 && link::kEthosuRegion.size == 0x8000000 &&
                  link::kBigPrograms.base == 0xAC000000 && link::kBigPrograms.size == 0x4000000);
    static_assert(link::kControlBlock.base == 0xC036C000 && link::kInputTensor.base == 0xC036D000 &&
                  link::kInputTensor.size == 602112 && link::kProgram.size == 3588096);
    Text<link::kMaxLine> line;
    line.add(TALPA_SENTENCE(
                 "INFO proto={} fw={} model=0xC0000000,0x400000 npu=0xA8000000,0x8000000 big=0xAC000000,0x4000000"),
             link::kProtocolName, version_);
    reply(request, line.view());
    line.clear();
    line.add(TALPA_SENTENCE("INFO pte_max=3588096 ctrl=0x36C000 in=0x36D000,602112 et=ET12 mac=256 ops={}"),
             operators_.size());
    reply(request, line.view());
    reply(request, "OK INFO");
}

void Runner::status(const Request& request) {
    Text<link::kMaxLine> line;
    line.add(TALPA_SENTENCE("STATUS state={} run={} err={} up_ms={} heap=0 npu={} queued={}"),
             running_ ? "running" : "idle", sequence_, static_cast<unsigned>(last_error_), platform_.now_ms(),
             platform_.npu_state(), queued_);
    reply(request, line.view());
    reply(request, "OK STATUS");
}

void Runner::out(const Request& request) {
    if (request.index >= output_count_)
        return reply_error(request.peer, request.tag_view(), RunnerError::BadArgument, "no such output");
    const Output& output = outputs_[request.index];
    const std::size_t n = output.tensor.numel();
    const std::size_t element_bytes = runtime::scalar_size(output.tensor.type);
    Text<link::kMaxLine> line;
    line.add(TALPA_SENTENCE("OUT i={} from={} v="), request.index, request.from);
    for (std::uint32_t i = 0; i < request.count && std::size_t{request.from} + i < n; ++i) {
        if (line.view().size() + 24 > link::kMaxLine - link::kMaxTag) break;  // the reader asks again from there
        const std::size_t at = std::size_t{request.from} + i;
        if (i > 0) line.put(",");
        if (request.hex) {
            std::uint32_t word = 0;
            for (std::size_t b = std::min<std::size_t>(element_bytes, 4); b-- > 0;)
                word = (word << 8) | output.tensor.data[at * element_bytes + b];
            line.hex(word);
        } else if (output.tensor.type == runtime::ScalarType::Float32) {
            line.fixed(output.tensor.as<const float>()[at], 6);
        } else {
            line.add("{}", static_cast<long long>(integer_element(output.tensor, at)));
        }
    }
    reply(request, line.view());
    reply(request, "OK OUT");
}

/// TOP lines of the first output; the class with the highest score.
std::uint32_t Runner::report_top(const Request& request) {
    if (output_count_ == 0) return 0;
    std::array<Score, kMaxTop> top{};
    const std::size_t wanted = std::max<std::size_t>(1, request.top);
    const std::size_t found =
        best_scores(outputs_[0].tensor, {output_scale_, output_zero_point_}, std::span(top).first(wanted));
    Text<link::kMaxLine> line;
    for (std::size_t i = 0; i < found && i < request.top; ++i) {
        line.clear();
        line.add(TALPA_SENTENCE("TOP {} class={} score="), i + 1, top[i].index).fixed(top[i].probability, 6);
        line.add(TALPA_SENTENCE(" logit=")).fixed(top[i].logit, 6);
        reply(request, line.view());
    }
    return top[0].index;
}

void Runner::report_outputs(const Request& request, std::uint32_t argmax) {
    Text<link::kMaxLine> line;
    for (std::uint32_t i = 0; i < output_count_; ++i) {
        const Output& output = outputs_[i];
        line.clear();
        line.add(TALPA_SENTENCE("OUT shape="));
        for (std::uint8_t d = 0; d < output.tensor.rank; ++d)
            line.add(TALPA_SENTENCE("{}{}"), d > 0 ? "x" : "", output.tensor.sizes[d]);
        const bool is_float = output.tensor.type == runtime::ScalarType::Float32;
        line.add(TALPA_SENTENCE(" dtype={} bytes={} addr="),
                 is_float ? "f32" : runtime::scalar_name(output.tensor.type), output.bytes)
            .hex(output.address);
        if (i == 0) line.add(TALPA_SENTENCE(" argmax={}"), argmax);
        reply(request, line.view());
    }
}

void Runner::report(const Request& request, const Times& times, std::uint64_t npu_cycles, std::uint32_t total_cycles) {
    const std::uint32_t per_us = platform_.cycles_per_us();
    Text<link::kMaxLine> line;
    if (request.command == RunnerCommand::Load) {
        line.add(TALPA_SENTENCE("OK LOAD planned={} scratch={} load_us={}"), planned_bytes_, scratch_bytes_,
                 times.load / per_us);
        return reply(request, line.view());
    }
    report_outputs(request, report_top(request));
    ++sequence_;
    control().run_sequence = sequence_;
    trace_run();
    line.add(TALPA_SENTENCE("TIME crc_us={} load_us={} input_us={} quantize_us={} npu_us={}"), times.crc / per_us,
             times.load / per_us, times.input / per_us, times.quantize / per_us, times.npu / per_us)
        .add(TALPA_SENTENCE(" dequantize_us={} run_us={} npu_cycles={} cpu_cycles={}"), times.dequantize / per_us,
             times.run / per_us, static_cast<unsigned long long>(npu_cycles), total_cycles);
    reply(request, line.view());
    line.clear();
    reply(request, line.add(TALPA_SENTENCE("OK RUN seq={}"), sequence_).view());
}

/// The words that users of the original runner look for.
void Runner::trace_run() {
    constexpr std::size_t kShown = 32;
    Text<120> line;
    const auto say = [&] {
        platform_.trace(line.view());
        line.clear();
    };
    for (std::uint32_t o = 0; o < output_count_; ++o) {
        const runtime::Tensor& t = outputs_[o].tensor;
        const std::size_t n = t.numel();
        line.add(TALPA_SENTENCE("Output[{}]: dtype={}, numel={}, nbytes={}"), o, static_cast<int>(t.type), n,
                 outputs_[o].bytes);
        say();
        for (std::size_t i = 0; i < n && i < kShown && t.type == runtime::ScalarType::Float32; ++i) {
            line.add(TALPA_SENTENCE("    [{}]={} (float raw)"), i, t.as<const std::int32_t>()[i]);
            say();
        }
        if (n > kShown) {
            line.add(TALPA_SENTENCE("    ... ({} more elements)"), n - kShown);
            say();
        }
    }
    line.add(TALPA_SENTENCE("{} inferences finished"), sequence_);
    say();
    platform_.trace("Model run: 1");
}

}  // namespace talpa::firmware
