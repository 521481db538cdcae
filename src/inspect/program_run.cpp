#include "inspect/program_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "runtime/host/c_order.h"
#include "runtime/operators/all.h"

namespace talpa::inspect {
namespace {

namespace rt = runtime::host;
constexpr unsigned kMostThreadsUnasked = 8;

std::vector<std::uint32_t> tensor_inputs(const rt::Session& session) {
    std::vector<std::uint32_t> tensors;
    for (std::uint32_t i = 0; i < session.input_count(); ++i)
        if (session.input(i).kind == runtime::Value::Kind::Tensor) tensors.push_back(i);
    return tensors;
}

/// "is it float32 data? the program wants int8" where the size says so.
std::string size_hint(const rt::PortInfo& port, std::size_t bytes) {
    const std::size_t element = scalar_size(port.type);
    if (element == 0 || port.size_bytes == 0) return {};
    if (element != 4 && bytes == port.size_bytes / element * 4)
        return fmt::format("is it float32 data? The program wants {}", runtime::scalar_name(port.type));
    if (element == 4 && bytes == port.size_bytes / 4)
        return fmt::format("is it int8 data? The program wants {}", runtime::scalar_name(port.type));
    return "inputs are raw little-endian data in the program's own types; of pictures, talpa run --image makes them";
}

/// Size of the leading dimension of a dynamic input that `bytes` fill; nothing if they fill none.
std::optional<std::vector<std::int32_t>> dynamic_sizes(const rt::PortInfo& port, std::size_t bytes) {
    if (!port.is_dynamic || bytes == 0 || bytes > port.size_bytes) return std::nullopt;
    // The first dimension that shrinks to fit; outer ones go first, as a batch or a sequence does.
    for (std::size_t d = 0; d < port.sizes.size(); ++d) {
        const std::size_t step = port.size_bytes / static_cast<std::size_t>(std::max(port.sizes[d], 1));
        if (step == 0 || bytes % step != 0) continue;
        auto sizes = port.sizes;
        sizes[d] = static_cast<std::int32_t>(bytes / step);
        return sizes;
    }
    return std::nullopt;
}

}  // namespace

host::Result<OpenProgram> open_program(const ProgramOptions& options, Tracer* tracer) {
    OpenProgram program;
    npu_model::ModelOptions model;
    model.threads = options.threads != 0 ? options.threads
                                         : std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreadsUnasked);
    if (options.strict) {
        model.kernels = npu_model::Kernels::Reference;
        model.checks = npu_model::DataChecks::Strict;
    }
    if (tracer != nullptr)
        model.after_operation = [tracer](const npu::Operation& op, const npu::Job& job) { tracer->operation(op, job); };
    else if (options.on_operation)
        model.after_operation = [tell = options.on_operation](const npu::Operation&, const npu::Job&) { tell(); };
    program.device = std::make_unique<CostedDevice>(model);
    if (options.strict) program.strict = std::make_unique<StrictObserver>(program.device->model());

    rt::SessionOptions session;
    session.method = options.method;
    session.data_files.assign(options.data.begin(), options.data.end());
    session.operators = runtime::all_operators();
    session.device = program.device.get();
    session.observer = program.strict ? static_cast<runtime::Observer*>(program.strict.get()) : tracer;
    TRY_ASSIGN(auto opened, rt::Session::open(options.path, session));
    program.session = std::make_unique<rt::Session>(std::move(opened));
    TRY(program.device->estimate(program.session->method()));
    if (program.strict) {
        program.strict->watch(program.session->method());
        TRY(host::with_context(check_hazards(program.session->method()), options.path));
    }
    if (tracer != nullptr) tracer->watch(program.session->method());
    return program;
}

host::Result<InputFiles> InputFiles::open(const rt::Session& session, const std::vector<std::string>& paths) {
    const auto tensors = tensor_inputs(session);
    if (paths.size() != tensors.size()) {
        std::string wanted;
        for (std::size_t i = 0; i < tensors.size(); ++i)
            wanted += fmt::format("{}{}", i == 0 ? "" : ", ", session.input(tensors[i]).describe());
        const char* given = paths.size() == 1 ? "file was" : "files were";
        if (tensors.empty())
            return host::failure(ErrorCode::InvalidArgument, "the program has no tensor inputs, {} {} given",
                                 paths.size(), given);
        return std::unexpected(
            host::Error(ErrorCode::InvalidArgument,
                        fmt::format("the program has {} tensor input{} ({}), {} {} given", tensors.size(),
                                    tensors.size() == 1 ? "" : "s", wanted, paths.size(), given),
                        "give --input FILE.bin once for each, in order"));
    }
    InputFiles inputs;
    for (std::size_t i = 0; i < paths.size(); ++i) {
        TRY_ASSIGN(auto file, host::with_context(host::MappedFile::open(paths[i]), fmt::format("input {}", i)));
        const auto port = session.input(tensors[i]);
        const std::size_t bytes = file.bytes().size();
        if (bytes != port.size_bytes && !dynamic_sizes(port, bytes))
            return std::unexpected(
                host::Error(ErrorCode::InvalidArgument,
                            fmt::format("{} has {} bytes; input {} is {}, {}{} bytes", paths[i], bytes, i,
                                        port.describe(), port.is_dynamic ? "at most " : "", port.size_bytes),
                            size_hint(port, bytes)));
        const auto used = bytes == port.size_bytes ? port.sizes : *dynamic_sizes(port, bytes);
        inputs.stored.push_back(rt::is_c_order(port.dim_order, used)
                                    ? std::vector<std::uint8_t>()
                                    : rt::from_c_order(file.bytes(), scalar_size(port.type), port.dim_order, used));
        inputs.files.push_back(std::move(file));
    }
    return inputs;
}

host::Result<void> InputFiles::set(rt::Session& session) const {
    const auto tensors = tensor_inputs(session);
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto port = session.input(tensors[i]);
        const Bytes bytes = files[i].bytes();
        const auto sizes = bytes.size() == port.size_bytes ? std::nullopt : dynamic_sizes(port, bytes.size());
        TRY(session.set_input(tensors[i], stored[i].empty() ? bytes : Bytes(stored[i]),
                              sizes ? std::span<const std::int32_t>(*sizes) : std::span<const std::int32_t>{}));
    }
    return {};
}

host::Result<std::vector<std::uint8_t>> output_in_c_order(const rt::Session& session, std::uint32_t i) {
    TRY_ASSIGN(const Bytes stored, session.output_bytes(i));
    const rt::PortInfo port = session.output(i);
    return rt::to_c_order(stored, scalar_size(port.type), port.dim_order, port.sizes);
}

}  // namespace talpa::inspect
