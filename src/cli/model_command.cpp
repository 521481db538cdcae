#include "cli/model_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/terminal.h"
#include "cli/output_files.h"
#include "compiler/models/registry.h"

namespace talpa::cli {

using compiler::models::Entry;
using host::Result;

namespace {

std::string source_of(const Entry& e) {
    return e.url.empty() ? fmt::format("Python package {}", e.package) : std::string(e.url);
}

}  // namespace

Result<void> list_models(const ModelOptions& options) {
    TRY_ASSIGN(const auto cache, compiler::models::cache_folder());
    host::Json list = host::Json::array();
    for (const Entry& e : compiler::models::entries()) {
        const auto have = compiler::models::cached(e, cache);
        const bool here = have && *have;
        if (options.json) {
            list.push_back({{"name", e.name},
                            {"architecture", e.architecture},
                            {"what", e.what},
                            {"licence", e.licence},
                            {"source", source_of(e)},
                            {"sha256", e.sha256},
                            {"preprocessing", e.preprocessing},
                            {"labels", e.labels},
                            {"path", here ? host::Json((*have)->string()) : host::Json()}});
            continue;
        }
        const host::Style style(stdout);
        fmt::print("{}  {}\n", style.bold(e.name), e.what);
        fmt::print("  from           {}\n  licence        {}\n  SHA-256        {}{}\n", source_of(e), e.licence,
                   e.sha256, e.sha256.size() < 64 ? "…" : "");
        fmt::print("  preprocessing  {}\n  labels         {}\n", e.preprocessing, e.labels);
        if (here) fmt::print("  in the cache   {}\n", (*have)->string());
        if (!have) fmt::print("  in the cache, but damaged: {}\n", have.error().message);
    }
    if (options.json) fmt::print("{}\n", list.dump(2));
    return {};
}

Result<void> get_model(const ModelOptions& options) {
    const Entry* entry = compiler::models::find(options.name);
    if (entry == nullptr)
        return std::unexpected(
            host::Error(ErrorCode::NotFound, fmt::format("there is no model '{}'", options.name), "talpa model list"));
    if (!options.output.empty()) TRY(check_outputs({{"-o", options.output}}, {}));
    TRY_ASSIGN(const auto cache, compiler::models::cache_folder());
    auto path = host::with_context(compiler::models::fetch(*entry, cache), options.name);
    if (!path) return std::unexpected(std::move(path.error()));
    if (!options.output.empty()) {
        TRY_ASSIGN(const auto file, host::MappedFile::open(*path));
        TRY(host::write_file(options.output, file.bytes()));
        *path = options.output;
    }
    if (options.json)
        fmt::print(
            "{}\n",
            host::Json{{"name", entry->name}, {"path", path->string()}, {"preprocessing", entry->preprocessing}}.dump(
                2));
    else
        fmt::print("{}\n", path->string());
    return {};
}

}  // namespace talpa::cli
