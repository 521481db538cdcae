#include "cli/inspect_command.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/host/exit_status.h"
#include "base/host/file.h"
#include "base/host/terminal.h"
#include "cli/command_line.h"
#include "cli/output_files.h"
#include "compiler/vela/system.h"
#include "inspect/debug_map.h"
#include "inspect/printable.h"
#include "inspect/report.h"
#include "inspect/report_html.h"
#include "inspect/report_json.h"
#include "inspect/report_text.h"
#include "inspect/summary_csv.h"
#include "runtime/operators/all.h"

namespace talpa::cli {
namespace {

std::size_t terminal_width() {
    ::winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return inspect::TextOptions{}.width;
    return std::clamp<std::size_t>(size.ws_col, 60, 200);
}

host::Result<npu_model::SystemConfig> machine(const InspectOptions& options, const std::string& npu,
                                              const std::string& system, const std::string& mode) {
    const auto& standard = npu_model::default_system_config();
    compiler::vela::TargetOptions wanted{.npu = npu.empty() ? standard.npu.hardware->name : npu,
                                         .system = options.system.empty() ? system : options.system,
                                         .memory_mode = options.memory_mode.empty() ? mode : options.memory_mode,
                                         .files = {options.configs.begin(), options.configs.end()},
                                         .to_compile_for = false};
    TRY_ASSIGN(const auto target, compiler::vela::make_target(wanted));
    return target.config;
}

}  // namespace

host::Result<void> check(const InspectOptions& options) {
    std::vector<NamedFile> inputs{{"the program", options.program}, {"--debug-db", options.debug_db}};
    for (const std::string& file : options.data) inputs.push_back({"--data", file});
    for (const std::string& file : options.configs) inputs.push_back({"--config", file});
    return check_outputs({{"--html", options.html}, {"--csv", options.csv}}, inputs);
}

host::Result<int> inspect_program(const InspectOptions& options) {
    inspect::Options facts;
    facts.operators = runtime::all_operators();
    facts.data_files.assign(options.data.begin(), options.data.end());
    std::optional<host::Error> unknown;  // the machine that was asked for
    const auto asked = [&](const std::string& npu, const std::string& system, const std::string& mode) {
        auto found = machine(options, npu, system, mode);
        if (!found && !unknown) unknown = found.error();
        return found;
    };
    const bool asks = !options.system.empty() || !options.memory_mode.empty() || !options.configs.empty();
    if (asks) facts.machine = asked;
    inspect::DebugMap names;
    if (!options.debug_db.empty()) {
        TRY_ASSIGN(const auto xml, host::read_text(options.debug_db, 256 << 20));
        TRY_ASSIGN(names, inspect::read_debug_map(xml, options.debug_db));
        facts.debug_map = &names;
    }
    TRY_ASSIGN(const inspect::Report report, inspect::inspect_file(options.program, facts));
    if (asks && std::ranges::all_of(report.methods, [](const auto& m) { return m.delegates.empty(); }))
        static_cast<void>(asked("", "", ""));
    if (unknown) return usage_error(*unknown, "inspect");
    if (!options.csv.empty())
        TRY(host::write_text(options.csv,
                             inspect::summary_csv(report, std::filesystem::path(options.program).stem().string())));
    if (!options.html.empty()) {
        TRY(host::with_context(host::write_text(options.html, inspect::report_html(report)), "report"));
        // With --json, standard output is the document's alone.
        fmt::print(options.json ? stderr : stdout, "{} written; open it in a browser\n",
                   inspect::printable(options.html));
        if (!options.json && !options.ops) return host::kExitSuccess;
    }
    if (options.json) {
        fmt::print("{}\n", inspect::json_text(inspect::report_json(report)));
        return host::kExitSuccess;
    }
    const inspect::TextOptions text{
        .colours = host::Style(stdout).colours(), .operations = options.ops, .width = terminal_width()};
    fmt::print("{}", inspect::report_text(report, text));
    return host::kExitSuccess;
}

}  // namespace talpa::cli
