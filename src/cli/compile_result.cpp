#include "cli/compile_result.h"

#include <fmt/format.h>

#include "base/host/grouped.h"
#include "base/host/json.h"

namespace talpa::cli {
namespace {

using host::grouped;

std::string size_text(std::uint64_t bytes) {
    if (bytes >= compiler::kUnlimited) return "unlimited";
    if (bytes >= 10 << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
    return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
}

// All that lies there: buffers, and by the memory mode the arena and the constants.
std::uint64_t sram_of(const CompileResult& r, const compiler::DelegateReport& d) {
    return d.fast_bytes + (r.arena_in_sram ? d.arena_bytes : 0) + (r.constants_in_sram ? d.constant_bytes : 0);
}

}  // namespace

std::string compile_text(const CompileResult& r, bool colours) {
    const auto bold = [&](const std::string& s) { return colours ? "\x1b[1m" + s + "\x1b[0m" : s; };
    std::string out =
        fmt::format("{} for {}, {}, {} of SRAM\n", bold(r.output), r.target, r.memory_mode, size_text(r.sram_bytes));
    if (!r.quantization.empty()) out += fmt::format("quantized to {}\n", r.quantization);
    std::uint64_t cycles = 0, operations = 0;
    for (const auto& d : r.delegates) {
        cycles += d.cycles;
        operations += d.operations;
    }
    out += fmt::format("{} of {} operators on the NPU", r.nodes - r.on_cpu.size(), r.nodes);
    if (r.delegates.size() > 1) out += fmt::format(" in {} parts", r.delegates.size());
    out += '\n';
    for (const auto& c : r.on_cpu) out += fmt::format("  on the CPU: {} ({}): {}\n", c.node, c.op, c.reason);
    if (!r.delegates.empty())
        out +=
            fmt::format("{} cycles by the model ({:.2f} ms at {:.0f} MHz), {} NPU operations\n", bold(grouped(cycles)),
                        static_cast<double>(cycles) / r.clock_hz * 1e3, r.clock_hz / 1e6, grouped(operations));
    for (const auto& d : r.delegates)
        out += fmt::format("  weights {} (from {}), commands {}, SRAM {}{}\n", size_text(d.weight_bytes),
                           size_text(d.plain_weight_bytes), size_text(d.command_bytes), size_text(sram_of(r, d)),
                           r.constants_in_sram ? " with arena and constants"
                           : r.arena_in_sram   ? " with the arena"
                                               : ", arena " + size_text(d.arena_bytes));
    if (r.agreement)
        out += fmt::format("evaluated: same class as the float model in {} of {}, median signal to noise {:.1f} dB\n",
                           r.agreement->same_top1, r.agreement->samples, r.agreement->median_snr_db);
    if (!r.layers.empty()) {
        out += "layers, the noisiest first\n";
        for (const auto& l : r.layers)
            out += fmt::format("  {:6.1f} dB  {:>10.4g} to {:<10.4g} {}\n{}", l.snr_db, l.low, l.high, l.name,
                               l.advice.empty() ? "" : fmt::format("             {}\n", l.advice));
    }
    out += fmt::format("{} in {:.2f} s\n", size_text(r.program_bytes), r.seconds);
    return out;
}

std::string compile_json(const CompileResult& r) {
    host::Json j;
    j["model"] = r.model;
    j["output"] = r.output;
    j["bytes"] = r.program_bytes;
    j["seconds"] = r.seconds;
    j["target"] = r.target;
    j["memory_mode"] = r.memory_mode;
    if (r.sram_bytes < compiler::kUnlimited) j["sram_bytes"] = r.sram_bytes;
    j["warnings"] = r.warnings;
    if (!r.quantization.empty()) j["quantization"] = r.quantization;
    j["operators"] = r.nodes;
    j["on_cpu"] = host::Json::array();
    for (const auto& c : r.on_cpu) j["on_cpu"].push_back({{"node", c.node}, {"operator", c.op}, {"reason", c.reason}});
    j["delegates"] = host::Json::array();
    for (const auto& d : r.delegates)
        j["delegates"].push_back({{"cycles", d.cycles},
                                  {"macs", d.macs},
                                  {"operations", d.operations},
                                  {"steps", d.steps},
                                  {"command_bytes", d.command_bytes},
                                  {"constant_bytes", d.constant_bytes},
                                  {"weight_bytes", d.weight_bytes},
                                  {"plain_weight_bytes", d.plain_weight_bytes},
                                  {"sram_bytes", sram_of(r, d)},
                                  {"arena_bytes", d.arena_bytes},
                                  {"arena_in_sram", r.arena_in_sram},
                                  {"peak", d.peak_step}});
    if (r.agreement)
        j["evaluation"] = {{"samples", r.agreement->samples},
                           {"same_class", r.agreement->same_top1},
                           {"median_snr_db", r.agreement->median_snr_db}};
    if (!r.layers.empty()) {
        j["layers"] = host::Json::array();
        for (const auto& l : r.layers) {
            j["layers"].push_back({{"name", l.name}, {"snr_db", l.snr_db}, {"low", l.low}, {"high", l.high}});
            if (!l.advice.empty()) j["layers"].back()["advice"] = l.advice;
        }
    }
    return j.dump(2);
}

std::string compile_error_json(const host::Error& error, const std::vector<compiler::import::Problem>& problems) {
    host::Json j;
    j["error"] = error.message;
    j["code"] = std::string(error_name(error.code));
    if (!error.context.empty()) j["context"] = error.context;
    if (!error.hint.empty()) j["hint"] = error.hint;
    if (!problems.empty()) j["problems"] = host::Json::array();
    for (const auto& p : problems)
        j["problems"].push_back({{"node", p.source.node},
                                 {"operator", p.source.target},
                                 {"module", p.source.module},
                                 {"line", p.source.line},
                                 {"what", p.what},
                                 {"hint", p.hint}});
    return j.dump(2, ' ', false, host::Json::error_handler_t::replace);
}

}  // namespace talpa::cli
