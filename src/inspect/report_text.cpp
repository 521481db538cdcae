#include "inspect/report_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "inspect/printable.h"

namespace talpa::inspect {
namespace {

using npu_model::Bound;
using npu_model::MemoryArea;

constexpr std::size_t kMostLayers = 12;

class Writer {
  public:
    explicit Writer(const TextOptions& options) : options_(options), width_(std::max<std::size_t>(60, options.width)) {}

    std::string take() && { return std::move(out_); }

    void report(const Report& r) {
        line("{}  {}", bold(printable(r.name)),
             dim(fmt::format("{} bytes, program {}{}", grouped(r.bytes), r.identifier,
                             r.frame.has_header ? "" : ", no extended header")));
        std::uint64_t segment_bytes = 0;
        for (const auto& [offset, size] : r.segments) segment_bytes += size;
        if (segment_bytes != 0)
            line("  {:<14}{} of {} bytes, from {}", "segments", r.segments.size(), grouped(segment_bytes),
                 grouped(r.frame.segment_base));
        if (r.constants != 0) line("  {:<14}{}", "constants", r.constants);
        for (const auto& [key, bytes] : r.named_data)
            line("  {:<14}{}  {} bytes", "named data", printable(key), grouped(bytes));
        std::string constants;
        for (const MethodReport& m : r.methods) {
            if (m.constant)
                constants += fmt::format("{}{} = {}", constants.empty() ? "" : ", ", printable(m.name),
                                         printable(m.constant_value));
            else
                method(m);
        }
        if (!constants.empty()) {
            line("");
            line("{}", bold("Constant methods"));
            line("  {}", constants);
        }
    }

  private:
    template <typename... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        out_ += fmt::format(format, std::forward<Args>(args)...);
        out_ += '\n';
    }
    /// An error, whose hint is a line of its own.
    void problem(std::string_view indent, std::string_view text) {
        while (!text.empty()) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            line("{}{}", indent, coloured("31", printable(text.substr(0, end))));
            text.remove_prefix(std::min(end + 1, text.size()));
        }
    }
    [[nodiscard]] std::string coloured(const char* code, std::string_view text) const {
        return options_.colours && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
    }
    [[nodiscard]] std::string bold(std::string_view text) const { return coloured("1", text); }
    [[nodiscard]] std::string dim(std::string_view text) const { return coloured("2", text); }
    [[nodiscard]] std::string of_bound(Bound bound, std::string_view text) const {
        static constexpr const char* kCodes[] = {"0", "32", "35", "34", "33", "36", "31", "90"};
        return coloured(kCodes[static_cast<std::size_t>(bound)], text);
    }
    // A bar of eighths of a column.
    static std::string bar(double share, std::size_t width) {
        static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
        const auto eighths =
            static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width) * 8 + 0.5);
        std::string text;
        for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
        return text + kEighths[eighths % 8];
    }
    static std::string padded(std::string text, std::size_t width) {
        const std::size_t has = columns(text);
        return has < width ? text + std::string(width - has, ' ') : text;
    }

    void port(const char* side, std::size_t i, const runtime::host::PortInfo& p) {
        std::string text = p.describe();
        if (p.kind == runtime::Value::Kind::Tensor) {
            text = fmt::format("{:<34}{} bytes", text, grouped(p.size_bytes));
            if (!std::ranges::is_sorted(p.dim_order)) text += fmt::format(", order [{}]", fmt::join(p.dim_order, ", "));
            if (p.is_dynamic) text += ", at most";
            if (!p.is_planned) text += ", not planned";
            if (p.quantization)
                text += fmt::format(", scale {:.6g}, zero point {}", p.quantization->scale, p.quantization->zero_point);
        }
        line("  {:<7}{:<3}{}", side, i, text);
    }

    void method(const MethodReport& m) {
        line("");
        line("{}", bold("Method " + printable(m.name)));
        for (std::size_t i = 0; i < m.inputs.size(); ++i) port("input", i, m.inputs[i]);
        for (std::size_t i = 0; i < m.outputs.size(); ++i) port("output", i, m.outputs[i]);
        line("");
        line("  Plan");
        for (const InstructionReport& i : m.plan) {
            const std::string text = fmt::format("    {:>3}  {}", i.index, printable(i.text));
            line("{}{}", fitted(text, width_ - (i.built_in ? 0 : 14)),
                 i.built_in ? "" : coloured("31", "  not built in"));
        }
        memory(m);
        for (const DelegateReport& d : m.delegates) delegate(d);
    }

    void memory(const MethodReport& m) {
        line("");
        if (!m.memory) {
            line("  Memory: {}", coloured("31", fitted(printable(m.problem), width_ - 10)));
            return;
        }
        line("  Memory, to the byte");
        const runtime::MemoryNeed& n = *m.memory;
        const auto pool = [&](std::string_view name, std::size_t bytes, const char* what) {
            line("    {:<14}{:>14}   {}", name, grouped(bytes), dim(what));
        };
        pool("method", n.method, "the executor's tables");
        for (std::uint32_t i = 0; i < n.arena_count; ++i)
            pool(fmt::format("planned {}", i + 1), n.planned[i], "tensors of the method");
        pool("temporary", n.temporary, "scratch of CPU operators");
        pool("scratch", n.scratch, "NPU region 1");
        pool("fast scratch", n.fast_scratch, "NPU region 2");
        pool("total", n.method + n.planned_total() + n.temporary + n.scratch + n.fast_scratch, "");
    }

    void delegate(const DelegateReport& d) {
        line("");
        line("  {}  {}", bold(fmt::format("Delegate {}", d.index)),
             dim(printable(
                 fmt::format("{}, {}{}{}, {}, {} bytes", d.backend, d.target.empty() ? "no target named" : d.target,
                             d.memory_mode.empty() ? "" : ", " + d.memory_mode, d.system.empty() ? "" : ", " + d.system,
                             d.location, grouped(d.payload_bytes)))));
        problem("    ", d.problem);
        if (!d.network) return;
        const npu_model::NetworkCost& c = d.network->cost;
        std::uint64_t encoded = 0, raw = 0;
        for (const Layer& l : d.network->layers) encoded += l.weight_bytes, raw += l.raw_weight_bytes;
        line("    {:<14}{}, commands {} bytes, constants {} bytes", "for", d.npu, grouped(d.stream_bytes),
             grouped(d.constant_bytes));
        line("    {:<14}{} bytes scratch, {} bytes fast scratch{}", "memory", grouped(d.scratch_bytes),
             grouped(d.fast_scratch_bytes), d.fast_is_scratch ? " (region 2 is the scratch)" : "");
        if (raw != 0)
            line("    {:<14}{} bytes encoded of {} ({:.0f} %)", "weights", grouped(encoded), grouped(raw),
                 100.0 * static_cast<double>(encoded) / static_cast<double>(raw));
        line("    {:<14}{} cycles = {:.3f} ms at {:g} MHz {}", "time", bold(grouped(c.cycles_total)),
             d.config.seconds(c.cycles_total) * 1000, d.config.clock_hz / 1e6,
             dim(fmt::format("(estimate for {}, {})", d.config.profile, d.config.mode)));
        line("    {:<14}{} MACs, {:.1f} % of the peak", "work", grouped(c.macs), 100 * c.utilisation(d.config));
        for (const MemoryArea area : {MemoryArea::Sram, MemoryArea::Dram}) {
            const npu_model::Traffic& t = c.traffic[npu_model::index(area)];
            if (t.bytes() != 0)
                line("    {:<14}{} bytes read, {} written; {} on the bus", npu_model::memory_area_name(area),
                     grouped(t.read_bytes), grouped(t.write_bytes), grouped(t.bus_bytes()));
        }
        bounds(c);
        layers(d);
        if (options_.operations) operations(d);
    }

    void bounds(const npu_model::NetworkCost& c) {
        const std::uint64_t all =
            std::accumulate(c.cycles_by_bound.begin(), c.cycles_by_bound.end(), std::uint64_t{0}) -
            c.cycles_by_bound[static_cast<std::size_t>(Bound::Dma)];
        if (all == 0) return;
        line("");
        line("    Bound by");
        for (const Bound bound :
             {Bound::Mac, Bound::Weights, Bound::Output, Bound::Command, Bound::Sram, Bound::Dram}) {
            const std::uint64_t cycles = c.cycles_by_bound[static_cast<std::size_t>(bound)];
            if (cycles == 0) continue;
            const double share = static_cast<double>(cycles) / static_cast<double>(all);
            line("      {:<9}{:>12} {:>5.1f} %  {}", npu_model::bound_name(bound), grouped(cycles), 100 * share,
                 of_bound(bound, bar(share, width_ - 42)));
        }
    }

    static std::string shape(std::uint32_t h, std::uint32_t w, std::uint32_t c) {
        return fmt::format("{}x{}x{}", h, w, c);
    }

    void layers(const DelegateReport& d) {
        const Network& n = *d.network;
        std::vector<std::size_t> order(n.layers.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const bool all = options_.operations || order.size() <= kMostLayers;
        if (!all) {
            std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
                return std::pair(n.layers[b].cycles, a) < std::pair(n.layers[a].cycles, b);
            });
            order.resize(kMostLayers);
        }
        line("");
        line("    {} {}", all ? "Layers" : "Layers that take longest",
             dim(all ? "" : fmt::format("of {}; --ops lists all, and every operation", n.layers.size())));
        line("    {}", dim(fmt::format("{:>4}  {:<20}{:>13} {:>13} {:>4} {:>11} {:>6}  {}", "", "", "input", "output",
                                       "ops", "cycles", "share", "bound")));
        const double total = static_cast<double>(std::max<std::uint64_t>(1, n.cost.cycles_total));
        for (const std::size_t i : order) {
            const Layer& l = n.layers[i];
            const double share = static_cast<double>(l.cycles) / total;
            const std::string row = fmt::format("    {:>4}  {:<20}{:>13} {:>13} {:>4} {:>11} {:>5.1f}%  ", i, l.name,
                                                shape(l.ifm_height, l.ifm_width, l.ifm_depth),
                                                shape(l.ofm_height, l.ofm_width, l.ofm_depth), l.operations.size(),
                                                grouped(l.cycles), 100 * share);
            const std::size_t room = width_ > columns(row) + 10 ? width_ - columns(row) - 9 : 0;
            line("{}{}{}", row, of_bound(l.bound, fmt::format("{:<8} ", npu_model::bound_name(l.bound))),
                 of_bound(l.bound, bar(share, room)));
            if (!l.operations.empty() && l.operations.back() < d.nodes.size() && !d.nodes[l.operations.back()].empty())
                line("          {}", dim(fitted(printable(d.nodes[l.operations.back()]), width_ - 10)));
        }
    }

    void operations(const DelegateReport& d) {
        const Network& n = *d.network;
        line("");
        line("    Operations");
        line("    {}", dim(fmt::format("{:>4} {:>5}  {:<20}{:>13} {:>13} {:>10} {:>11} {:>7}  {}", "", "layer", "",
                                       "input", "output", "block", "cycles", "MACs", "bound")));
        for (std::size_t i = 0; i < n.operations.size(); ++i) {
            const npu::Operation& op = n.operations[i];
            const npu_model::ScheduledCost& s = n.cost.operations[i];
            const std::string layer = n.layer_of[i] == kNone ? "" : fmt::format("{}", n.layer_of[i]);
            if (op.kind == npu::OpKind::Dma) {
                const std::string to = op.dma.dst_internal ? std::string("SHRAM")
                                                           : fmt::format("{}:0x{:x}", op.dma.dst_region, op.dma.dst);
                line("    {:>4} {:>5}  {:<20}{:>13} {:>13} {:>10} {:>11} {:>7}  {}", i, layer, "DMA",
                     fmt::format("{}:0x{:x}", op.dma.src_region, op.dma.src), to, grouped(copied_bytes(s.cost)),
                     grouped(s.end - s.start), "", of_bound(Bound::Dma, "dma"));
            } else if (npu::is_kernel(op.kind)) {
                line("    {:>4} {:>5}  {:<20}{:>13} {:>13} {:>10} {:>11} {:>6.1f}%  {}", i, layer, operation_title(op),
                     shape(op.ifm.height, op.ifm.width, op.ifm.depth), shape(op.ofm.height, op.ofm.width, op.ofm.depth),
                     shape(op.block_height, op.block_width, op.block_depth), grouped(s.end - s.start),
                     100 * s.cost.utilisation(d.config), of_bound(s.cost.bound, npu_model::bound_name(s.cost.bound)));
            }
        }
    }

    TextOptions options_;
    std::size_t width_;
    std::string out_;
};

}  // namespace

std::string report_text(const Report& report, const TextOptions& options) {
    Writer writer(options);
    writer.report(report);
    return std::move(writer).take();
}

}  // namespace talpa::inspect
