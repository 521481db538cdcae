// clone, configure (topo spec, section 7) and lint.
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>

#include "base/host/file.h"
#include "topo/cli/commands.h"
#include "topo/project/edit.h"
#include "topo/project/find_file.h"
#include "topo/project/project_checks.h"
#include "topo/project/source.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

bool at_terminal() {
    return ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
}

std::string json_list(const std::vector<std::string>& values) {
    std::string out;
    for (const std::string& value : values) out += (out.empty() ? "" : ",") + json_text(value);
    return "[" + out + "]";
}

// Section 7.3. The questions are separated by an empty line.
Prompt terminal_prompt() {
    return [first = true](const Parameter& p,
                          const std::vector<std::string>& current) mutable -> std::optional<std::string> {
        std::string text = first ? "" : "\n";
        first = false;
        text += "Provide: " + printable(p.description) + "\n";
        if (p.example) text += "Example: " + printable(*p.example) + "\n";
        if (!current.empty()) text += "Current: " + json_list(current) + "\n";
        text += fmt::format("{} ({}{})> ", printable(p.name, LineEnds::Replace), p.required ? "required" : "optional",
                            current.empty() ? "" : ", leave blank to keep current");
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
        std::string answer;
        if (interrupted() || !std::getline(std::cin, answer)) return std::nullopt;
        return answer;
    };
}

// The file is replaced, not written into: under sudo the new one must not become root's.
host::Result<void> write_as_its_owner(const std::filesystem::path& path, const std::string& text) {
    struct stat old{};
    const bool known = ::stat(path.c_str(), &old) == 0;
    TRY(host::write_text(path, text));
    if (known && ::geteuid() == 0 && old.st_uid != 0 && ::chown(path.c_str(), old.st_uid, old.st_gid) != 0)
        warn(fmt::format("{} belongs to root now", path.string()));
    return {};
}

struct Configured {
    Values values;
    bool changed = false;
};

// Reads, resolves, writes.
host::Result<Configured> configure_file(const std::filesystem::path& path, const std::vector<std::string>& words) {
    TRY_ASSIGN(std::string text, host::read_text(path, yaml::kMaxBytes));
    const std::string file = path.string();
    auto parsed = yaml::parse_first(text, file);
    if (!parsed && parsed.error().code == "compose.empty")
        return host::failure(ErrorCode::InvalidArgument, "failed to decode project: EOF ({} is empty)", file);
    if (!parsed) return std::unexpected(host::Error(parsed.error()).with_context("failed to decode project"));
    // Documents behind the first are kept as they are, but must be YAML: else what was meant for the first may be lost.
    if (const auto all = yaml::parse_all(text, file); !all)
        return std::unexpected(host::Error(all.error()).with_context("failed to decode project"));
    const yaml::NodePtr root = *parsed;
    const auto x_topo = read_x_topo(*root, file);
    if (!x_topo) return std::unexpected(host::Error(x_topo.error()).with_context("failed to decode project"));
    if (x_topo->parameters.empty() && !words.empty())
        warn(fmt::format("the project has no parameters; ignored: {}",
                         printable(joined(words, " "), LineEnds::Replace)));
    if (x_topo->deprecated_args) warn("x-topo.args is deprecated; use x-topo.parameters instead");
    TRY_ASSIGN(Configured done, [&]() -> host::Result<Configured> {
        TRY_ASSIGN(Values values, resolve_values(*root, *x_topo, words, at_terminal() ? terminal_prompt() : Prompt{}));
        return Configured{.values = std::move(values), .changed = false};
    }());
    if (interrupted()) return std::unexpected(interruption());
    if (done.values.empty()) return done;
    for (const auto& [name, value] : done.values)
        if (!is_utf8(value)) return host::failure(ErrorCode::InvalidArgument, "the value of {} is not UTF-8", name);
    if (root->find("services") == nullptr) {
        info("the project has no services; nothing to configure");
        return done;
    }
    TRY_ASSIGN(const Edited edited, apply_values(std::move(text), file, done.values));
    for (const std::string& one : edited.warnings) warn(one);
    if (edited.changed) TRY(write_as_its_owner(path, edited.text));
    done.changed = edited.changed;
    return done;
}

std::string json_values(const Values& values) {
    std::string out;
    for (const auto& [name, value] : values)
        out += fmt::format("{}{}:{}", out.empty() ? "" : ",", json_text(name), json_text(value));
    return "{" + out + "}";
}

host::Result<std::string> parameters_text(const std::filesystem::path& path, bool json) {
    TRY_ASSIGN(const std::string text, host::read_text(path, yaml::kMaxBytes));
    TRY_ASSIGN(const yaml::NodePtr root, [&]() -> host::Result<yaml::NodePtr> {
        TRY_ASSIGN(yaml::NodePtr r, yaml::parse_first(text, path.string()));
        return r;
    }());
    auto x_topo = read_x_topo(*root, path.string());
    if (!x_topo) return std::unexpected(host::Error(x_topo.error()));
    std::string out;
    for (const Parameter& p : x_topo->parameters) {
        const std::vector<std::string> current = current_values(*root, p.name);
        if (json)
            out += fmt::format("{}{{\"name\":{},\"description\":{},\"required\":{},\"example\":{},\"current\":{}}}",
                               out.empty() ? "" : ",", json_text(p.name), json_text(p.description), p.required,
                               p.example ? json_text(*p.example) : "null", json_list(current));
        else
            out += fmt::format("{}: {} ({})\n", printable(p.name, LineEnds::Replace),
                               current.empty() ? "(in no build.args)" : json_list(current),
                               p.required ? "required" : "optional");
    }
    return json ? "[" + out + "]" : out;
}

}  // namespace

Done run_clone(const Invocation& invocation) {
    auto source = parse_source(invocation.arguments[0]);
    if (!source) return wrong_usage(source.error().message);
    std::vector<std::string> words(invocation.arguments.begin() + 1, invocation.arguments.end());
    std::string folder = default_folder(*source);
    if (!words.empty() && words[0].find('=') == std::string::npos) {
        folder = words[0];
        words.erase(words.begin());
    }
    if (trimmed(folder).empty() || folder == "." || folder == "..")
        return wrong_usage(fmt::format("no folder name follows from {}: give a path", invocation.arguments[0]));
    const auto title = [&](const char* text) {
        if (!invocation.json()) header(text);
    };
    title("Copy files");
    TRY(copy_source(*source, folder));
    for (const std::string& one : suspicious_parts(folder)) warn(one);
    title("Configure project");
    const std::filesystem::path file = std::filesystem::path(folder) / "compose.yaml";
    auto configured = configure_file(file, words);
    if (!configured) {
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
        return std::unexpected(
            Failure(std::move(configured.error()).with_context("init failed: failed to resolve parameters")));
    }
    title("Project ready");
    if (invocation.json())
        print(fmt::format("{{\"directory\":{},\"values\":{}}}", json_text(folder), json_values(configured->values)));
    else
        print(
            fmt::format("Created in '{0}'\n\nNow run:\n  cd {1}\n  topo deploy\n\nA deployment target is required. "
                        "Provide --target or set TOPO_TARGET.\n",
                        printable(folder, LineEnds::Replace),
                        printable(shell_quoted(folder.starts_with('-') ? "./" + folder : folder), LineEnds::Replace)));
    return 0;
}

Done run_configure(const Invocation& invocation) {
    TRY_ASSIGN(const ComposeFile file, find_compose_file(invocation.value("--file")));
    for (const std::string& one : file.warnings) warn(one);
    if (invocation.on("--show")) {
        TRY_ASSIGN(const std::string text, parameters_text(file.path, invocation.json()));
        print(text);
        return 0;
    }
    TRY_ASSIGN(const Configured done,
               host::with_context(configure_file(file.path, invocation.arguments), "failed to resolve parameters"));
    if (invocation.json())
        print(fmt::format("{{\"file\":{},\"values\":{},\"changed\":{}}}", json_text(file.path.string()),
                          json_values(done.values), done.changed));
    return 0;
}

Done run_lint(const Invocation& invocation) {
    std::vector<std::string> files = invocation.arguments;
    if (files.empty()) {
        TRY_ASSIGN(const ComposeFile file, find_compose_file(invocation.value("--file")));
        files.push_back(file.path.string());
    }
    int errors = 0, warnings = 0;
    std::string json;
    for (const std::string& file : files)
        for (const Finding& f : lint(file)) {
            errors += f.severity == Severity::Error;
            warnings += f.severity == Severity::Warning;
            const char* severity = f.severity == Severity::Error     ? "error"
                                   : f.severity == Severity::Warning ? "warning"
                                                                     : "note";
            if (invocation.json()) {
                json += fmt::format(
                    "{}{{\"code\":\"{}\",\"severity\":\"{}\",\"file\":{},\"line\":{},\"column\":{},\"message\":{},"
                    "\"fix\":{}}}",
                    json.empty() ? "" : ",", f.code, severity, json_text(f.file), f.mark.line, f.mark.column,
                    json_text(f.message), json_text(f.fix));
                continue;
            }
            std::string where = f.file;
            if (f.mark.line > 0) where += fmt::format(":{}:{}", f.mark.line, f.mark.column);
            print(printable(fmt::format("{}: {}: {} [{}]", where, severity, f.message, f.code)));
            if (!f.fix.empty()) print(printable("  fix: " + f.fix));
        }
    if (invocation.json())
        print("[" + json + "]");
    else if (errors + warnings == 0)
        info(fmt::format("{}: nothing wrong", joined(files, ", ")));
    return errors > 0 ? 1 : 0;
}

}  // namespace talpa::topo
