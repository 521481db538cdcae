#include "topo/project/project_checks.h"

#include <algorithm>

#include "base/host/file.h"
#include "topo/project/compose_references.h"
#include "topo/project/parameters.h"
#include "topo/project/x_topo.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr std::string_view kPlatform = "linux/arm64";

void check_parameters(const yaml::Node& root, const std::string& file, const XTopo& x_topo,
                      std::vector<Finding>& findings) {
    for (const Parameter& parameter : x_topo.parameters) {
        const std::vector<std::string> current = current_values(root, parameter.name);
        if (current.empty()) {
            findings.push_back(
                {"parameter.unwired", parameter.required ? Severity::Error : Severity::Warning, file, parameter.mark,
                 fmt::format("parameter {} reaches no build: no service of this file has a build arg of "
                             "that name",
                             parameter.name),
                 fmt::format("add `{}: \"\"` to the build.args of the service that uses it", parameter.name)});
        } else if (parameter.required && std::find(current.begin(), current.end(), "") != current.end()) {
            findings.push_back(
                {"parameter.missing", Severity::Warning, file, parameter.mark,
                 fmt::format("parameter {} is required and has no value yet", parameter.name),
                 fmt::format("topo configure {}{}=VALUE",
                             file == "compose.yaml" ? "" : "-f " + shell_quoted(file) + " ", parameter.name)});
        }
    }
}

// `kept` has what came before; a finding about the same place is not said twice.
void add_once(std::vector<Finding>& kept, Finding one) {
    const bool known = std::any_of(kept.begin(), kept.end(), [&](const Finding& f) {
        return f.code == one.code && f.mark.line == one.mark.line && f.mark.column == one.mark.column;
    });
    if (!known) kept.push_back(std::move(one));
}

}  // namespace

std::vector<Finding> check_project(const Project& project, const std::string& file) {
    std::vector<Finding> findings;
    if (project.services.empty())
        findings.push_back({"compose.no-services",
                            Severity::Error,
                            file,
                            {1, 1},
                            "the file has no services (of the active profiles)",
                            "add `services:`"});
    for (const Service& service : project.services) {
        if (service.is_firmware() || service.platform.starts_with(kPlatform)) continue;
        if (service.platform.empty())
            findings.push_back(
                {"service.platform.missing", Severity::Error, file, service.mark,
                 fmt::format("service \"{}\" is missing platform declaration (set platform: linux/arm64 or "
                             "configure remoteproc)",
                             service.name),
                 "add `platform: linux/arm64`"});
        else
            findings.push_back({"service.platform.wrong", Severity::Error, file, service.mark,
                                fmt::format("service \"{}\" declares platform \"{}\" (expected linux/arm64)",
                                            service.name, service.platform),
                                "write `platform: linux/arm64`"});
    }
    return findings;
}

std::vector<Finding> check_contexts(const Project& project, const std::string& file) {
    std::vector<Finding> findings;
    std::error_code ignored;
    const auto missing = [&](const Service& service, const std::string& what) {
        findings.push_back({"build.context.missing",
                            Severity::Warning,
                            file,
                            service.build->mark,
                            fmt::format("service \"{}\": {} is not there", service.name, what),
                            {}});
    };
    for (const Service& service : project.services) {
        if (!service.build || !service.build->context.starts_with('/')) continue;  // a URL
        const std::filesystem::path context = service.build->context;
        const std::filesystem::path dockerfile = context / service.build->dockerfile;
        if (!std::filesystem::is_directory(context, ignored))
            missing(service, "the build context " + context.string());
        else if (service.build->dockerfile_inline.empty() && !std::filesystem::exists(dockerfile, ignored))
            missing(service, dockerfile.string());
    }
    return findings;
}

std::string project_message(const std::vector<Finding>& findings) {
    std::string text = "project is not ready for linux/arm64 deployments:";
    for (const Finding& one : findings) text += "\n- " + one.message;
    return text;
}

std::vector<Finding> lint(const std::filesystem::path& path) {
    std::vector<Finding> findings;
    const std::string file = path.string();
    const auto text = host::read_text(path, yaml::kMaxBytes);
    if (!text) return {{"compose.read", Severity::Error, file, {}, text.error().message, {}}};
    const auto root = yaml::parse_first(*text, file);
    if (!root) return {root.error()};
    if (!(*root)->is_mapping())
        return {{"compose.schema", Severity::Error, file, (*root)->mark, "the file must be a mapping", {}}};
    check_x_topo(**root, file, findings);
    const bool sound = findings.empty();
    const auto x_topo = read_x_topo(**root, file);
    if (x_topo)
        check_parameters(**root, file, *x_topo, findings);
    else if (sound)
        add_once(findings, x_topo.error());
    std::vector<Finding> wrong;
    const auto project = load_project({.file = path, .profiles = {"*"}, .variables = {}, .all = &wrong});
    const bool whole = std::all_of(wrong.begin(), wrong.end(), [](const Finding& one) {
        return one.code == "compose.reference" || one.code == "compose.cycle";
    });
    if (project && whole) (void)check_clashes(file, *project, true, Findings(&wrong));
    for (Finding& one : wrong) {
        if (one.file == std::filesystem::absolute(path).lexically_normal().string()) one.file = file;
        add_once(findings, std::move(one));
    }
    if (!project) {
        add_once(findings, project.error());
    } else {
        for (Finding& one : check_contexts(*project, file)) add_once(findings, std::move(one));
        // Of what was left out as wrong, others would speak beside the point.
        const auto beside = [&](const Finding& one) {
            return one.code == "compose.no-services" ? !wrong.empty()
                                                     : std::any_of(wrong.begin(), wrong.end(), [&](const Finding& w) {
                                                           return w.mark.line == one.mark.line;
                                                       });
        };
        for (Finding& one : check_project(*project, file))
            if (!beside(one)) add_once(findings, std::move(one));
        for (const NotHonoured& key : project->not_honoured)
            add_once(findings, {"compose.key.plugin-only",
                                Severity::Note,
                                file,
                                key.mark,
                                fmt::format("{} needs the Compose plugin: topo's own apply cannot honour it", key.path),
                                {}});
    }
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
        return std::pair(a.mark.line, a.mark.column) < std::pair(b.mark.line, b.mark.column);
    });
    return findings;
}

}  // namespace talpa::topo
