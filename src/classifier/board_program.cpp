#include "classifier/board_program.h"

#include <fmt/format.h>

#include <array>

#include "classifier/feature_input.h"
#include "classifier/ports.h"
#include "image/decode.h"
#include "image/preprocess.h"
#include "link/crc32.h"
#include "link/memory_map.h"
#include "runtime/operators/all.h"
#include "runtime/operators/quantize.h"

namespace talpa::classifier {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

/// Where the time went, in order. What the M33 says is by its own clock; the rest of the wall time of RUN is RPMsg's.
void put_phases(RunResult& result, const PreparedPicture& picture, const link::host::RunAnswer& answer) {
    const auto ms = [](std::uint64_t us) { return static_cast<double>(us) / 1000; };
    const auto& t = answer.times;
    // run_us holds quantize, NPU and dequantize; newer firmware gives them apart.
    const double inside = ms(t.crc_us + t.load_us + t.input_us + t.run_us);
    result.phases_ms = {{"decode", picture.decode_ms},
                        {"resize", picture.resize_ms},
                        {"wait", answer.wait_ms},
                        {"stage_program", answer.stage_program_ms},
                        {"stage", answer.stage_inputs_ms},
                        {"rpmsg", std::max(0.0, answer.run_ms - inside)},
                        {"crc", ms(t.crc_us)},
                        {"load", ms(t.load_us)},
                        {"input", ms(t.input_us)},
                        {"quantize", ms(t.quantize_us)},
                        {"npu", ms(t.npu_us)},
                        {"dequantize", ms(t.dequantize_us)},
                        {"run", answer.run_ms}};
}

}  // namespace

host::Result<BoardProgram> BoardProgram::open(const std::filesystem::path& path, const NormalisationFlags& flags) {
    BoardProgram program;
    TRY_ASSIGN(program.mapped_, host::MappedFile::open(path));
    program.name = path.string();
    TRY(program.read(flags));
    return program;
}

host::Result<BoardProgram> BoardProgram::of_bytes(std::vector<std::uint8_t> bytes, std::string name,
                                                  const NormalisationFlags& flags) {
    BoardProgram program;
    program.owned_ = std::move(bytes);
    program.name = std::move(name);
    TRY(program.read(flags));
    return program;
}

host::Result<void> BoardProgram::read(const NormalisationFlags& flags) {
    runtime::host::SessionOptions options;
    options.operators = runtime::all_operators();
    // Before anything of the size that the file asks for is allocated: does the board have it?
    const auto opened = pte::Program::open(bytes());
    if (!opened) return std::unexpected(host::Error(opened.error()).with_context(name));
    TRY_ASSIGN(const auto need, host::with_context(runtime::host::memory_need(*opened, options), name));
    const auto at_most = [&](std::size_t wanted, const link::MemoryRange& range) -> host::Result<void> {
        if (wanted <= range.size) return {};
        return host::failure(ErrorCode::OutOfResources, "{}: the program wants {} bytes of {}, the board has {}", name,
                             wanted, range.name, range.size);
    };
    TRY(at_most(need.method + need.planned_total() + need.temporary, link::kPlannedBuffers));
    TRY(at_most(need.scratch + need.fast_scratch, link::kNpuScratch));

    runtime::host::SessionOptions on_board = options;
    on_board.operators = runtime::operators::kQuantizeOperators;
    if (const auto there = runtime::host::memory_need(*opened, on_board);
        !there && there.error().code == ErrorCode::OperatorMissing)
        firmware_lacks = there.error().message;

    // The firmware runs `forward`, as this does by default.
    TRY_ASSIGN(const auto session, runtime::host::Session::open(bytes(), name, options));
    TRY_ASSIGN(const std::uint32_t port, host::with_context(picture_port(session), name));
    input_port = session.input(port);
    auto picture = picture_input(session.program(), options.method, port, input_port, flags);
    takes_pictures = picture.has_value();
    if (picture)
        input = *std::move(picture);
    else if (picture.error().code != ErrorCode::InvalidType)
        return std::unexpected(std::move(picture.error()).with_context(name));
    else
        input.note = fmt::format("it takes features, no pictures: .npy arrays for {}", input_port.describe());
    for (std::uint32_t i = 0; i < session.output_count(); ++i) {
        runtime::host::PortInfo output = session.output(i);
        if (output.kind != runtime::Value::Kind::Tensor) continue;
        if (classes == 0) {
            const std::vector<std::uint8_t> zeros(output.size_bytes);
            if (is_classification({.type = output.type, .shape = output.sizes, .bytes = zeros, .quantization = {}}))
                classes = output.size_bytes / scalar_size(output.type);
        }
        outputs.push_back(std::move(output));
    }
    crc = link::crc32(bytes());
    return {};
}

host::Result<PreparedPicture> prepare_picture(Bytes file, const image::PreprocessSpec& spec,
                                              const image::Limits& limits) {
    PreparedPicture prepared;
    const auto start = Clock::now();
    TRY_ASSIGN(const image::Picture picture, image::decode(file, limits));
    const auto decoded = Clock::now();
    prepared.width = picture.width;
    prepared.height = picture.height;
    TRY_ASSIGN(prepared.fitted, image::fit(picture, spec));
    TRY_ASSIGN(prepared.tensor, image::tensor_of_fitted(prepared.fitted, spec));
    prepared.decode_ms = Milliseconds(decoded - start).count();
    prepared.resize_ms = Milliseconds(Clock::now() - decoded).count();
    return prepared;
}

host::Result<PreparedPicture> prepare_input(Bytes file, const BoardProgram& program, const image::Limits& limits) {
    if (is_features(file, program.input_port)) {
        PreparedPicture prepared;
        const auto start = Clock::now();
        TRY_ASSIGN(prepared.tensor, features(file, program.input_port));
        prepared.decode_ms = Milliseconds(Clock::now() - start).count();
        return prepared;
    }
    if (!program.takes_pictures)
        return std::unexpected(host::Error(
            ErrorCode::InvalidPicture,
            fmt::format("the network takes no pictures: its input is {}", program.input_port.describe()),
            fmt::format("send a .npy array of that shape, or its {} bytes themselves", program.input_port.size_bytes)));
    return prepare_picture(file, program.input.spec, limits);
}

link::host::BoardResult<RunResult> run_on_board(link::host::RunnerClient& client, const BoardProgram& program,
                                                const PreparedPicture& picture, const Labels& labels,
                                                const BoardRunOptions& options,
                                                const link::host::RunCallbacks& callbacks) {
    const std::array<Bytes, 1> inputs{picture.tensor};
    link::host::RunJob job{
        .program = program.bytes(), .program_crc = program.crc, .inputs = inputs, .top = 1, .timeout = options.timeout};
    TRY_ASSIGN(const link::host::RunAnswer answer, client.run(job, callbacks));
    if (answer.outputs.size() != program.outputs.size())
        return link::host::board_failure(link::host::BoardFault::BadReply, "the runner has {} outputs, the program {}",
                                         answer.outputs.size(), program.outputs.size());
    RunResult result;
    for (std::size_t i = 0; i < answer.outputs.size(); ++i) {
        // The shape that the runner tells is the run's; types and scales only the program knows.
        runtime::host::PortInfo port = program.outputs[i];
        port.sizes = answer.outputs[i].told.shape;
        const Bytes bytes = answer.outputs[i].bytes;
        if (bytes.size() > port.size_bytes || (!port.is_dynamic && bytes.size() != port.size_bytes))
            return link::host::board_failure(link::host::BoardFault::BadReply,
                                             "the runner's output {} has {} bytes, the program's {}", i, bytes.size(),
                                             port.size_bytes);
        TRY(add_output(result, port, bytes, options.top, labels));
    }
    TRY(finish_outputs(result, options.output_folder));
    result.runs_ms = {answer.run_ms};
    result.npu_cycles = answer.times.npu_cycles;
    result.cycles_measured = true;
    put_phases(result, picture, answer);
    return result;
}

}  // namespace talpa::classifier
