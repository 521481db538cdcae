#include "cli/inspect_command.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "base/host/file.h"
#include "base/host/terminal.h"
#include "inspect/report.h"
#include "inspect/report_html.h"
#include "inspect/report_json.h"
#include "inspect/report_text.h"
#include "runtime/operators/all.h"

namespace talpa::cli {
namespace {

std::size_t terminal_width() {
    ::winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return inspect::TextOptions{}.width;
    return std::clamp<std::size_t>(size.ws_col, 60, 200);
}

}  // namespace

host::Result<void> inspect_program(const InspectOptions& options) {
    inspect::Options facts;
    facts.operators = runtime::all_operators();
    facts.data_files.assign(options.data.begin(), options.data.end());
    TRY_ASSIGN(const inspect::Report report, inspect::inspect_file(options.program, facts));
    if (!options.html.empty()) {
        TRY(host::with_context(host::write_text(options.html, inspect::report_html(report)), "report"));
        // With --json, standard output is the document's alone.
        fmt::print(options.json ? stderr : stdout, "{} written; open it in a browser\n", options.html);
        if (!options.json && !options.ops) return {};
    }
    if (options.json) {
        fmt::print("{}\n", inspect::json_text(inspect::report_json(report)));
        return {};
    }
    const inspect::TextOptions text{
        .colours = host::Style(stdout).colours(), .operations = options.ops, .width = terminal_width()};
    fmt::print("{}", inspect::report_text(report, text));
    return {};
}

}  // namespace talpa::cli
