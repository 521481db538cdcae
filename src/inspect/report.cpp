#include "inspect/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/host/file.h"
#include "inspect/delegate_report.h"
#include "inspect/plan_text.h"
#include "pte/host/file_hint.h"
#include "pte/metadata.h"

namespace talpa::inspect {
namespace {

// A port as the file has it, whether or not the method can be loaded.
runtime::host::PortInfo port(const pte::Program& program, const pte::MethodView& method, pte::IoSide side,
                             std::uint32_t i) {
    runtime::host::PortInfo info;
    const std::int32_t index = (side == pte::IoSide::Input ? method.inputs() : method.outputs())[i];
    info.kind = runtime::Value::Kind::Null;
    if (index < 0 || static_cast<std::uint32_t>(index) >= method.values().size()) return info;
    const pte::ValueView value = method.value(static_cast<std::uint32_t>(index));
    using Kind = runtime::Value::Kind;
    switch (value.type()) {
        case pte::ValueType::Int:
            info.kind = Kind::Int, info.integer = value.as_int();
            break;
        case pte::ValueType::Bool:
            info.kind = Kind::Bool, info.integer = value.as_bool() ? 1 : 0;
            break;
        case pte::ValueType::Double:
            info.kind = Kind::Double, info.real = value.as_double();
            break;
        case pte::ValueType::String:
            info.kind = Kind::String;
            break;
        case pte::ValueType::IntList:
            info.kind = Kind::IntList;
            break;
        case pte::ValueType::DoubleList:
            info.kind = Kind::DoubleList;
            break;
        case pte::ValueType::BoolList:
            info.kind = Kind::BoolList;
            break;
        case pte::ValueType::TensorList:
            info.kind = Kind::TensorList;
            break;
        case pte::ValueType::OptionalTensorList:
            info.kind = Kind::OptionalTensorList;
            break;
        case pte::ValueType::Tensor: {
            const pte::TensorView tensor = value.as_tensor();
            info.kind = Kind::Tensor;
            info.type = static_cast<runtime::ScalarType>(tensor.scalar_type());
            info.size_bytes = runtime::scalar_size(info.type);
            for (std::uint32_t d = 0; d < tensor.sizes().size(); ++d) {
                info.sizes.push_back(tensor.sizes()[d]);
                info.size_bytes *= static_cast<std::size_t>(std::max(0, tensor.sizes()[d]));
            }
            for (std::uint32_t d = 0; d < tensor.dim_order().size(); ++d)
                info.dim_order.push_back(tensor.dim_order()[d]);
            info.is_dynamic = tensor.dynamism() != pte::ShapeDynamism::Static;
            info.is_planned = tensor.is_planned();
            break;
        }
        default:
            break;
    }
    info.quantization = pte::io_quantization(program, method, side, i);
    return info;
}

MethodReport method_report(const pte::Program& program, const pte::MethodView& method,
                           std::span<const pte::DataFile> data_files, const Options& options) {
    MethodReport m;
    m.name = method.name();
    m.constant = pte::is_constant_method(method);
    if (m.constant) {
        std::vector<std::string> values;
        for (std::uint32_t i = 0; i < method.outputs().size(); ++i)
            values.push_back(value_text(method, method.outputs()[i]));
        m.constant_value = values.size() == 1 ? values[0] : fmt::format("[{}]", fmt::join(values, ", "));
    }
    for (std::uint32_t i = 0; i < method.inputs().size(); ++i)
        m.inputs.push_back(port(program, method, pte::IoSide::Input, i));
    for (std::uint32_t i = 0; i < method.outputs().size(); ++i)
        m.outputs.push_back(port(program, method, pte::IoSide::Output, i));
    m.value_count = method.values().size();
    for (std::uint32_t i = 0; i < method.arena_sizes().size(); ++i) m.arenas.push_back(method.arena_sizes()[i]);
    for (std::uint32_t c = 0; c < method.chain_count(); ++c)
        for (std::uint32_t i = 0; i < method.instructions(c).size(); ++i)
            m.plan.push_back(instruction_report(method, c, i, options.operators));
    for (std::uint32_t i = 0; i < method.delegate_count(); ++i)
        m.delegates.push_back(delegate_report(program, method, i, data_files, options));

    runtime::host::SessionOptions session;
    session.method = m.name;
    session.operators = options.operators;
    if (auto need = runtime::host::memory_need(program, session, data_files))
        m.memory = *need;
    else
        m.problem = need.error().message;
    return m;
}

}  // namespace

const MethodReport& Report::main_method() const {
    const auto forward = std::ranges::find(methods, "forward", &MethodReport::name);
    if (forward != methods.end()) return *forward;
    const auto runs = std::ranges::find(methods, false, &MethodReport::constant);
    return runs != methods.end() ? *runs : methods.front();
}

host::Result<Report> inspect_bytes(Bytes file, std::string name, const Options& options) {
    const auto& standard = npu_model::default_system_config();
    if (!options.system.empty() &&
        !npu_model::system_config(standard.npu.hardware->name, options.system, standard.mode))
        return host::failure(ErrorCode::InvalidArgument, "no system configuration is called '{}'", options.system);
    if (!options.memory_mode.empty() &&
        !npu_model::system_config(standard.npu.hardware->name, standard.profile, options.memory_mode))
        return host::failure(ErrorCode::InvalidArgument, "no memory mode is called '{}'", options.memory_mode);
    const auto opened = pte::Program::open(file);
    if (!opened) {
        host::Error error(opened.error());
        error.hint = pte::host::file_hint(file, error.message);
        return std::unexpected(std::move(error).with_context("reading " + name));
    }
    const pte::Program& program = *opened;
    std::vector<host::MappedFile> mappings;
    std::vector<pte::DataFile> data_files;
    for (const auto& path : options.data_files) {
        TRY_ASSIGN(host::MappedFile mapping, host::MappedFile::open(path));
        mappings.push_back(std::move(mapping));
        TRY_ASSIGN(const pte::DataFile data,
                   host::with_context(pte::DataFile::open(mappings.back().bytes()), "reading " + path.string()));
        data_files.push_back(data);
    }
    Report r;
    r.name = std::move(name);
    r.bytes = file.size();
    r.identifier.assign(reinterpret_cast<const char*>(file.data() + 4), 4);
    r.version = program.version();
    r.frame = program.frame();
    for (std::uint32_t i = 0; i < program.segment_count(); ++i)
        r.segments.emplace_back(program.segment(i).offset, program.segment(i).size);
    r.constants = program.constant_count() > 0 ? program.constant_count() - 1 : 0;
    for (std::uint32_t i = 0; i < program.named_data_count(); ++i) {
        const pte::NamedDataView named = program.named_data(i);
        r.named_data.emplace_back(
            named.key, named.segment_index < program.segment_count() ? program.segment(named.segment_index).size : 0);
    }
    for (std::uint32_t i = 0; i < program.method_count(); ++i)
        r.methods.push_back(method_report(program, program.method(i), data_files, options));
    if (r.methods.empty()) return host::failure(ErrorCode::InvalidProgram, "{}: the program has no method", r.name);
    return r;
}

host::Result<Report> inspect_file(const std::filesystem::path& path, const Options& options) {
    TRY_ASSIGN(const host::MappedFile file, host::MappedFile::open(path));
    return inspect_bytes(file.bytes(), path.string(), options);
}

}  // namespace talpa::inspect
