#include "inspect/report_json.h"

#include <fmt/format.h>

#include "npu/block.h"
#include "pte/metadata.h"
#include "runtime/tensor.h"

namespace talpa::inspect {
namespace {

using host::Json;
using npu_model::MemoryArea;

template <typename Enum>
auto number(Enum e) {
    return static_cast<std::underlying_type_t<Enum>>(e);
}

Json port_json(const runtime::host::PortInfo& p) {
    Json j;
    if (p.kind != runtime::Value::Kind::Tensor) {
        j["kind"] = runtime::value_kind_name(p.kind);
        j["value"] = p.kind == runtime::Value::Kind::Double ? Json(p.real) : Json(p.integer);
        return j;
    }
    j["dtype"] = runtime::scalar_name(p.type);
    j["shape"] = p.sizes;
    j["dim_order"] = p.dim_order;
    j["bytes"] = p.size_bytes;
    j["planned"] = p.is_planned;
    j["dynamic"] = p.is_dynamic;
    if (p.quantization) {
        j["scale"] = p.quantization->scale;
        j["zero_point"] = p.quantization->zero_point;
    }
    return j;
}

Json memory_json(const MethodReport& m) {
    Json j;
    if (!m.memory) {
        j["problem"] = m.problem;
        return j;
    }
    const runtime::MemoryNeed& n = *m.memory;
    j["method"] = n.method;
    j["planned"] = Json::array();
    for (std::uint32_t i = 0; i < n.arena_count; ++i) j["planned"].push_back(n.planned[i]);
    j["temporary"] = n.temporary;
    j["scratch"] = n.scratch;
    j["fast_scratch"] = n.fast_scratch;
    j["total"] = n.method + n.planned_total() + n.temporary + n.scratch + n.fast_scratch;
    return j;
}

Json map_json(const npu::FeatureMap& fm) {
    return {{"shape", {fm.height, fm.width, fm.depth}},
            {"type", fmt::format("{}int{}", fm.type.is_signed ? "" : "u", fm.type.bytes * 8)},
            {"layout", fm.layout == npu::Layout::Nhwc ? "NHWC" : "NHCWB16"},
            {"region", fm.region},
            {"offset", fm.base[0]},
            {"zero_point", fm.zero_point}};
}

Json traffic_json(const std::array<npu_model::Traffic, npu_model::kMemoryAreas>& traffic) {
    Json j;
    for (const MemoryArea area : {MemoryArea::Sram, MemoryArea::Dram}) {
        const npu_model::Traffic& t = traffic[npu_model::index(area)];
        j[area == MemoryArea::Sram ? "sram" : "dram"] = {
            {"read", t.read_bytes}, {"write", t.write_bytes}, {"bus", t.bus_bytes()}, {"bursts", t.bursts}};
    }
    return j;
}

std::uint64_t range_bytes(const std::array<npu::Range, npu::kMaxCores>& ranges) {
    std::uint64_t sum = 0;
    for (const npu::Range& r : ranges) sum += r.size;
    return sum;
}

const char* activation_name(const npu::Activation& a) {
    static constexpr const char* kNames[] = {"none", "tanh", "sigmoid", "table"};
    return kNames[number(a.function)];
}

void kernel_json(Json& j, const npu::Operation& op, const npu_model::ScheduledCost& s,
                 const npu_model::SystemConfig& config) {
    j["ifm"] = map_json(op.ifm);
    if (npu::has_ifm2(op.kind)) {
        if (op.ifm2_is_scalar)
            j["ifm2"] = {{"scalar", op.ifm2_scalar}};
        else
            j["ifm2"] = map_json(op.ifm2);
    }
    j["ofm"] = map_json(op.ofm);
    if (!npu::is_elementwise(op.kind)) {
        j["kernel"] = {op.kernel.height, op.kernel.width};
        j["stride"] = {op.kernel.stride_y, op.kernel.stride_x};
        j["dilation"] = {op.kernel.dilation_y, op.kernel.dilation_x};
        j["padding"] = {op.padding.top, op.padding.left, op.padding.bottom, op.padding.right};
        if (op.upscale != npu::Upscale::None) j["upscale"] = op.upscale == npu::Upscale::Nearest ? "nearest" : "zeros";
    }
    if (npu::has_weights(op.kind)) {
        j["traversal"] = op.kind == npu::OpKind::Depthwise ? "depthwise"
                         : op.kernel.part_kernel_first     ? "part_kernel"
                                                           : "depth_first";
        j["weights"] = {
            {"region", op.weight_region}, {"bytes", range_bytes(op.weights)}, {"raw_bytes", raw_weight_bytes(op)}};
        if (!op.ofm_global_scale) j["scales"] = {{"region", op.scale_region}, {"bytes", range_bytes(op.scales)}};
    }
    j["activation"] = activation_name(op.activation);
    j["block"] = {op.block_height, op.block_width, op.block_depth};
    const npu::ShramLayout shram = npu::shram_layout(op, *config.npu.hardware);
    j["shram_banks"] = {
        {"ifm", shram.ifm_banks}, {"accumulators", shram.acc_banks}, {"ib_end", op.ib_end}, {"ab_start", op.ab_start}};
    j["blockdep"] = op.blockdep;
    j["macs"] = s.cost.macs;
    j["utilisation"] = s.cost.utilisation(config);
    j["cycles_parts"] = {
        {"mac", s.cost.mac_cycles},         {"weights", s.cost.weight_cycles}, {"output", s.cost.output_cycles},
        {"command", s.cost.command_cycles}, {"fill", s.cost.fill_cycles},      {"drain", s.cost.drain_cycles},
        {"npu", s.cost.npu_cycles},         {"sram", s.cost.memory_cycles[0]}, {"dram", s.cost.memory_cycles[1]}};
}

void dma_json(Json& j, const npu::Dma& dma, const npu_model::OperationCost& cost) {
    j["bytes"] = copied_bytes(cost);
    const auto side = [](bool internal, std::uint8_t region, std::uint64_t offset) {
        Json s;
        if (internal)
            s["shram"] = offset;
        else
            s = {{"region", region}, {"offset", offset}};
        return s;
    };
    j["source"] = side(dma.src_internal, dma.src_region, dma.src);
    j["destination"] = side(dma.dst_internal, dma.dst_region, dma.dst);
}

Json operations_json(const Network& n, const npu_model::SystemConfig& config, const std::vector<std::string>& nodes) {
    Json list = Json::array();
    Json waits = Json::array();
    for (std::size_t i = 0; i < n.operations.size(); ++i) {
        const npu::Operation& op = n.operations[i];
        const npu_model::ScheduledCost& s = n.cost.operations[i];
        if (op.kind == npu::OpKind::DmaWait || op.kind == npu::OpKind::KernelWait) {
            waits.push_back({{op.kind == npu::OpKind::DmaWait ? "dma" : "kernel", op.parameter & 0xF}});
            continue;
        }
        const bool kernel = npu::is_kernel(op.kind);
        if (!kernel && op.kind != npu::OpKind::Dma) continue;
        Json j;
        j["index"] = i;
        j["offset"] = op.offset_bytes;
        j["kind"] = npu::op_kind_name(op.kind);
        j["title"] = operation_title(op);
        j["layer"] = n.layer_of[i];
        if (i < nodes.size() && !nodes[i].empty()) j["node"] = nodes[i];
        j["cycles"] = s.end - s.start;
        j["start"] = s.start;
        j["end"] = s.end;
        if (kernel) j["stall"] = s.stall;
        j["bound"] = npu_model::bound_name(s.cost.bound);
        if (kernel)
            kernel_json(j, op, s, config);
        else
            dma_json(j, op.dma, s.cost);
        j["traffic"] = traffic_json(s.cost.traffic);
        if (!waits.empty()) j["waits"] = std::exchange(waits, Json::array());
        list.push_back(std::move(j));
    }
    return list;
}

Json layers_json(const Network& n, const std::vector<std::string>& nodes) {
    Json list = Json::array();
    for (const Layer& l : n.layers) {
        Json j{{"name", l.name},
               {"operations", l.operations},
               {"kernels", l.kernels},
               {"ifm", {l.ifm_height, l.ifm_width, l.ifm_depth}},
               {"ofm", {l.ofm_height, l.ofm_width, l.ofm_depth}},
               {"cycles", l.cycles},
               {"start", l.start},
               {"end", l.end},
               {"macs", l.macs},
               {"weight_bytes", l.weight_bytes},
               {"raw_weight_bytes", l.raw_weight_bytes},
               {"bound", npu_model::bound_name(l.bound)},
               {"traffic", traffic_json(l.traffic)}};
        Json inputs = Json::array();
        for (const int from : l.inputs) inputs.push_back(from >= 0 ? Json(from) : Json{{"input", -2 - from}});
        j["inputs"] = std::move(inputs);
        // That of its last operation: what came before serves it.
        if (!l.operations.empty() && l.operations.back() < nodes.size() && !nodes[l.operations.back()].empty())
            j["node"] = nodes[l.operations.back()];
        list.push_back(std::move(j));
    }
    return list;
}

Json ranges_json(const Network& n) {
    Json list = Json::array();
    for (const TensorRange& r : n.ranges) {
        Json j{{"kind", range_kind_name(r.kind)},
               {"region", r.region == kShram ? Json("shram") : Json(r.region)},
               {"begin", r.begin},
               {"end", r.end},
               {"from", r.from_cycle},
               {"to", r.to_cycle}};
        if (r.layer != kNone) j["layer"] = r.layer;
        if (r.input != kNone) j["input"] = r.input;
        if (r.output != kNone) j["output"] = r.output;
        list.push_back(std::move(j));
    }
    return list;
}

Json records_json(const std::vector<pte::IoRecord>& records) {
    Json list = Json::array();
    for (const pte::IoRecord& r : records)
        list.push_back({{"shape", r.shape},
                        {"element_size", r.element_size},
                        {"region", r.region},
                        {"offset", r.offset},
                        {"bytes", r.size_bytes}});
    return list;
}

Json delegate_json(const MethodReport& m, const DelegateReport& d) {
    Json j{{"method", m.name},
           {"index", d.index},
           {"backend", d.backend},
           {"target", d.target},
           {"memory_mode", d.memory_mode},
           {"system_config", d.system}};
    if (!d.problem.empty()) j["problem"] = d.problem;
    j["payload"] = {{"location", d.location}, {"bytes", d.payload_bytes}};
    for (const Block& b : d.blocks) {
        Json block{{"name", b.name}, {"bytes", b.bytes}};
        if (!b.external_key.empty()) block["external_key"] = b.external_key;
        j["payload"]["blocks"].push_back(std::move(block));
    }
    j["compile_specs"] = Json::object();
    for (const auto& [key, value] : d.specs) j["compile_specs"][key] = value;
    if (!d.network) return j;
    const npu_model::NetworkCost& c = d.network->cost;
    j["npu"] = d.npu;
    j["config"] = d.config_word;
    j["id"] = d.id_word;
    j["command_bytes"] = d.stream_bytes;
    j["constant_bytes"] = d.constant_bytes;
    j["scratch_bytes"] = d.scratch_bytes;
    j["fast_scratch_bytes"] = d.fast_scratch_bytes;
    j["inputs"] = records_json(d.inputs);
    j["outputs"] = records_json(d.outputs);
    std::uint64_t encoded = 0, raw = 0;
    for (const Layer& l : d.network->layers) encoded += l.weight_bytes, raw += l.raw_weight_bytes;
    j["weight_bytes"] = encoded;
    j["raw_weight_bytes"] = raw;
    j["estimate_for"] = {{"npu", d.config.npu.hardware->name},
                         {"system_config", d.config.profile},
                         {"memory_mode", d.config.mode},
                         {"clock_hz", d.config.clock_hz}};
    j["cycles_total"] = c.cycles_total;
    j["milliseconds"] = d.config.seconds(c.cycles_total) * 1000;
    j["macs"] = c.macs;
    j["utilisation"] = c.utilisation(d.config);
    j["npu_cycles"] = c.npu_cycles;
    j["sram_cycles"] = c.memory_cycles[npu_model::index(MemoryArea::Sram)];
    j["dram_cycles"] = c.memory_cycles[npu_model::index(MemoryArea::Dram)];
    j["stall_cycles"] = c.stall_cycles;
    j["sram_bytes"] = c.traffic[npu_model::index(MemoryArea::Sram)].bus_bytes();
    j["dram_bytes"] = c.traffic[npu_model::index(MemoryArea::Dram)].bus_bytes();
    j["traffic"] = traffic_json(c.traffic);
    for (std::size_t b = 1; b < npu_model::kBounds; ++b)
        j["cycles_by_bound"][npu_model::bound_name(static_cast<npu_model::Bound>(b))] = c.cycles_by_bound[b];
    j["layers"] = layers_json(*d.network, d.nodes);
    j["live_ranges"] = ranges_json(*d.network);
    j["operations"] = operations_json(*d.network, d.config, d.nodes);
    return j;
}

Json method_json(const MethodReport& m) {
    Json j;
    j["name"] = m.name;
    if (m.constant) {
        j["constant"] = m.constant_value;
        return j;
    }
    j["inputs"] = Json::array();
    for (const auto& p : m.inputs) j["inputs"].push_back(port_json(p));
    j["outputs"] = Json::array();
    for (const auto& p : m.outputs) j["outputs"].push_back(port_json(p));
    j["values"] = m.value_count;
    j["arenas"] = m.arenas;
    j["memory"] = memory_json(m);
    j["plan"] = Json::array();
    for (const InstructionReport& i : m.plan) {
        Json instruction{{"chain", i.chain}, {"index", i.index}, {"kind", i.kind}, {"text", i.text}};
        if (i.kind == "KernelCall") instruction["operator"] = i.op, instruction["built_in"] = i.built_in;
        if (i.delegate != kNone) instruction["delegate"] = i.delegate;
        j["plan"].push_back(std::move(instruction));
    }
    return j;
}

}  // namespace

host::Json report_json(const Report& r) {
    Json j;
    j["file"] = r.name;
    j["bytes"] = r.bytes;
    j["format"] = {{"identifier", r.identifier},
                   {"version", r.version},
                   {"header_bytes", r.frame.header_length},
                   {"program_bytes", r.frame.flatbuffer_size},
                   {"segment_base", r.frame.segment_base}};
    j["segments"] = Json::array();
    for (const auto& [offset, size] : r.segments) j["segments"].push_back({{"offset", offset}, {"bytes", size}});
    j["constants"] = r.constants;
    j["named_data"] = Json::array();
    for (const auto& [key, bytes] : r.named_data) j["named_data"].push_back({{"key", key}, {"bytes", bytes}});
    j["method"] = r.main_method().name;
    j["memory"] = memory_json(r.main_method());
    j["methods"] = Json::array();
    for (const MethodReport& m : r.methods) j["methods"].push_back(method_json(m));
    j["delegates"] = Json::array();
    for (const MethodReport& m : r.methods)
        for (const DelegateReport& d : m.delegates) j["delegates"].push_back(delegate_json(m, d));
    return j;
}

std::string json_text(const host::Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace talpa::inspect
