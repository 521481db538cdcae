#include "cli/compile_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "base/core/checked_math.h"
#include "base/host/file.h"
#include "base/host/terminal.h"
#include "cli/compilation.h"
#include "cli/debug_database.h"
#include "cli/output_files.h"
#include "inspect/summary_csv.h"
#include "runtime/operators/all.h"

namespace talpa::cli {

using host::failure;
using host::Result;

namespace {

Result<void> work(Compilation& c, const CompileOptions& o) {
    TRY(c.import());
    // A stage that has been shown is all that was asked for.
    if (o.output.empty() && is_import_stage(o.dump_after)) return {};
    TRY(c.quantize());
    if (o.output.empty()) return {};
    TRY_ASSIGN(const auto compiled, c.compile());
    if (!compiled.report.dump.empty()) fmt::print("{}", compiled.report.dump);
    TRY(host::write_file(o.output, compiled.pte));
    if (o.csv.empty() && o.debug_db.empty()) return {};
    inspect::Options facts;
    facts.operators = runtime::all_operators();
    facts.machine = [&](const std::string&, const std::string&, const std::string&) { return c.target().config; };
    TRY_ASSIGN(const auto report, inspect::inspect_bytes(compiled.pte, o.output, facts));
    const std::string network = std::filesystem::path(o.model).stem().string();
    if (!o.csv.empty()) TRY(host::write_text(o.csv, inspect::summary_csv(report, network)));
    if (!o.debug_db.empty())
        TRY(host::write_text(o.debug_db,
                             inspect::debug_map_xml(debug_map_of(network, c.graph(), compiled.report, report))));
    return {};
}

}  // namespace

Result<std::uint64_t> parse_size(const std::string& text) {
    if (text == "unlimited") return compiler::kUnlimited;
    std::uint64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string unit(end, text.data() + text.size());
    std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::uint64_t factor = unit.empty() || unit == "b"                    ? 1
                                 : unit == "k" || unit == "kb" || unit == "kib" ? 1 << 10
                                 : unit == "m" || unit == "mb" || unit == "mib" ? 1 << 20
                                                                                : 0;
    const auto bytes = checked_mul(number, factor);
    if (status != std::errc() || factor == 0 || number == 0 || !bytes || *bytes >= compiler::kUnlimited)
        return failure(ErrorCode::InvalidArgument, "'{}' is no size: 384K, 1M, 393216 and unlimited are", text);
    return *bytes;
}

Result<void> check(const CompileOptions& o) {
    TRY(target_of(o));
    TRY_ASSIGN(const auto flags, normalisation(o.picture));
    TRY(classifier::check(flags));
    if (o.in_memory) return {};
    if (o.output.empty() && o.dump_after.empty())
        return failure(ErrorCode::InvalidArgument, "where should the program go? Give -o FILE.pte");
    if (o.output.empty() && is_stage_after_quantize(o.dump_after))
        return failure(ErrorCode::InvalidArgument, "--dump-after {} needs -o FILE.pte too", o.dump_after);
    if (o.output.empty() && !(o.csv.empty() && o.debug_db.empty()))
        return failure(ErrorCode::InvalidArgument, "--csv and --debug-db need -o FILE.pte too");
    std::vector<NamedFile> inputs{
        {"the model", o.model}, {"--labels", o.labels}, {"--calibration", o.calibration}, {"--evaluate", o.evaluate}};
    for (const std::string& file : o.configs) inputs.push_back({"--config", file});
    TRY(check_outputs({{"-o", o.output}, {"--csv", o.csv}, {"--debug-db", o.debug_db}}, inputs));
    return {};
}

Result<void> compile_model(const CompileOptions& options) {
    const auto started = std::chrono::steady_clock::now();
    Compilation compilation(options);
    if (auto done = work(compilation, options); !done) {
        if (options.json) fmt::print("{}\n", compile_error_json(done.error(), compilation.problems()));
        return done;
    }
    CompileResult& result = compilation.result();
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (options.output.empty()) return {};
    if (options.json)
        fmt::print("{}\n", compile_json(result));
    else if (options.dump_after.empty())
        fmt::print("{}", compile_text(result, host::Style(stdout).colours()));
    return {};
}

}  // namespace talpa::cli
