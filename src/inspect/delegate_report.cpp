#include "inspect/delegate_report.h"

#include <fmt/format.h>

#include "base/core/byte_reader.h"
#include "npu/hardware.h"
#include "runtime/ethos_u.h"

namespace talpa::inspect {
namespace {

// "--memory-mode=Shared_Sram" among the compiler's flags.
std::string flag(std::string_view flags, std::string_view name) {
    const std::string key = fmt::format("--{}=", name);
    const std::size_t at = flags.find(key);
    if (at == std::string_view::npos) return {};
    const std::size_t from = at + key.size();
    return std::string(flags.substr(from, flags.find(' ', from) - from));
}

// The blocks by their headers alone (pte-format, section 7.1), as far as they go: shown also where the payload is
// faulty.
std::vector<Block> blocks_of(Bytes payload) {
    constexpr std::size_t kHeader = 32, kName = 16, kAlign = 16;
    std::vector<Block> blocks;
    for (std::size_t at = 0; at + kHeader <= payload.size();) {
        const char* text = reinterpret_cast<const char*>(payload.data() + at);
        Block block{std::string(text, strnlen(text, kName)), load_le<std::uint32_t>(payload.data() + at + kName), {}};
        const bool external = payload[at + kName + 4] != 0;
        const std::size_t end = at + kHeader + block.bytes;
        if (end > payload.size()) break;
        if (external) block.external_key.assign(text + kHeader, block.bytes);
        const bool last = block.name == "vela_end_stream";
        blocks.push_back(std::move(block));
        if (last) break;
        at = (end + kAlign - 1) / kAlign * kAlign;
    }
    return blocks;
}

// What the user asks for, else what the program was compiled for, else the default.
npu_model::SystemConfig config_for(const DelegateReport& d, const Options& options) {
    const npu_model::NpuConfig* npu = npu_model::npu_config_of(d.config_word);
    const npu_model::SystemConfig& standard = npu_model::default_system_config();
    const std::string name = npu != nullptr ? npu->hardware->name : standard.npu.hardware->name;
    for (const std::string_view system :
         {std::string_view(options.system), std::string_view(d.system), standard.profile})
        for (const std::string_view mode :
             {std::string_view(options.memory_mode), std::string_view(d.memory_mode), standard.mode})
            if (const auto config = npu_model::system_config(name, system, mode)) return *config;
    return standard;
}

std::vector<pte::IoRecord> records(const pte::IoTable& table) {
    std::vector<pte::IoRecord> list;
    for (std::uint32_t i = 0; i < table.count(); ++i) list.push_back(table[i]);
    return list;
}

std::vector<Border> borders(const std::vector<pte::IoRecord>& list) {
    std::vector<Border> found;
    for (const pte::IoRecord& r : list)
        found.push_back({static_cast<std::uint8_t>(r.region & 7), r.offset, r.size_bytes});
    return found;
}

host::Result<void> read_stream(DelegateReport& d, const runtime::EthosUDelegate& delegate, const Options& options) {
    const npu::Hardware* hardware = npu::find_hardware(delegate.config());
    d.config_word = delegate.config();
    d.id_word = delegate.id();
    d.npu = hardware != nullptr ? hardware->name : "";
    d.stream_bytes = delegate.stream().size() * sizeof(std::uint32_t);
    d.constant_bytes = delegate.weights().size();
    d.scratch_bytes = delegate.scratch_bytes();
    d.fast_scratch_bytes = delegate.fast_scratch_bytes();
    d.fast_is_scratch = delegate.fast_scratch_is_scratch();
    d.inputs = records(delegate.inputs());
    d.outputs = records(delegate.outputs());
    d.config = config_for(d, options);
    if (options.machine) {
        TRY_ASSIGN(d.config, options.machine(d.npu, d.system, d.memory_mode));
    }
    TRY_ASSIGN(auto operations, npu_model::decode_all(delegate.stream()));
    if (options.debug_map != nullptr) {
        std::vector<std::uint32_t> offsets;
        for (const npu::Operation& op : operations) offsets.push_back(op.offset_bytes);
        d.nodes = options.debug_map->nodes_of(d.index, offsets);
    }
    auto cost = npu_model::network_cost(operations, d.config);
    d.network =
        analyse(std::move(operations), std::move(cost), borders(d.inputs), borders(d.outputs), d.fast_is_scratch);
    return {};
}

}  // namespace

DelegateReport delegate_report(const pte::Program& program, const pte::MethodView& method, std::uint32_t index,
                               std::span<const pte::DataFile> data_files, const Options& options) {
    const pte::DelegateView view = method.delegate(index);
    DelegateReport d;
    d.index = index;
    d.backend = view.id();
    d.location =
        fmt::format("{} {}", view.location() == pte::DataLocation::Inline ? "inline" : "segment", view.index());
    for (std::uint32_t i = 0; i < view.compile_spec_count(); ++i) {
        const pte::CompileSpecView spec = view.compile_spec(i);
        d.specs.emplace_back(spec.key, spec.text());
    }
    d.target = view.compile_spec("target");
    const std::string_view flags = view.compile_spec("compile_flags");
    d.memory_mode = flag(flags, "memory-mode");
    d.system = flag(flags, "system-config");
    if (d.target.empty()) d.target = flag(flags, "accelerator-config");
    d.config = npu_model::default_system_config();

    if (const auto payload = program.delegate_data(view)) {
        d.payload_bytes = payload->size();
        d.blocks = blocks_of(*payload);
    }
    const auto delegate = runtime::EthosUDelegate::load(program, view, index, data_files, nullptr);
    if (!delegate) {
        d.problem = host::Error(delegate.error()).describe();
        return d;
    }
    if (const auto read = read_stream(d, *delegate, options); !read) d.problem = read.error().describe();
    return d;
}

npu_model::SystemConfig compiled_for(const pte::DelegateView& delegate, std::uint32_t config_word,
                                     const Options& options) {
    const std::string_view flags = delegate.compile_spec("compile_flags");
    DelegateReport d;
    d.config_word = config_word;
    d.memory_mode = flag(flags, "memory-mode");
    d.system = flag(flags, "system-config");
    return config_for(d, options);
}

}  // namespace talpa::inspect
