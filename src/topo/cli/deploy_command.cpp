// topo deploy and rollback (topo spec, section 8).
#include <unistd.h>

#include <chrono>
#include <mutex>

#include "base/host/terminal.h"
#include "topo/cli/commands.h"
#include "topo/cli/deploy_output.h"
#include "topo/cli/several_targets.h"
#include "topo/deploy/pipeline.h"
#include "topo/deploy/project_lock.h"
#include "topo/project/find_file.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

// The tunnel is only dug with --registry or --registry-port, but its port is checked as the original checks it.
std::expected<int, Failure> registry_port(const Invocation& invocation) {
    const std::string from_environment = environment("TOPO_PORT");
    const std::string text =
        invocation.given("--registry-port") ? invocation.text("--registry-port") : from_environment;
    if (text.empty()) return kDefaultRegistryPort;
    if (text.find_first_not_of("0123456789") != std::string::npos || text.size() > 9)
        return wrong_usage(fmt::format("invalid port \"{}\": must be a number", text));
    const int port = std::stoi(text);
    if (port < 1 || port > 65535) return wrong_usage(fmt::format("invalid port {}: must be between 1 and 65535", port));
    return port;
}

}  // namespace

std::expected<std::optional<EngineKind>, Failure> engine_flag(const Invocation& invocation) {
    const auto value = invocation.value("--engine");
    if (!value) return std::nullopt;
    if (*value == "docker") return EngineKind::Docker;
    if (*value == "podman") return EngineKind::Podman;
    return wrong_usage(fmt::format("invalid engine \"{}\": must be docker or podman", *value));
}

std::expected<std::filesystem::path, Failure> compose_file(const Invocation& invocation) {
    TRY_ASSIGN(const ComposeFile file, find_compose_file(invocation.value("--file")));
    for (const std::string& one : file.warnings) warn(one);
    return file.path;
}

namespace {

std::expected<ComposeUse, Failure> compose_flag(const Invocation& invocation) {
    const std::string text =
        invocation.given("--compose") ? invocation.text("--compose") : lower(environment("TOPO_COMPOSE"));
    if (text.empty() || text == "auto") return ComposeUse::Auto;
    if (text == "always") return ComposeUse::Always;
    if (text == "never") return ComposeUse::Never;
    return wrong_usage(fmt::format("invalid value \"{}\" for --compose: must be auto, always or never", text));
}

std::expected<Sending, Failure> sending_flags(const Invocation& invocation) {
    const bool registry = invocation.on("--registry", "TOPO_REGISTRY") || invocation.given("--registry-port");
    if (!invocation.on("--no-registry")) return registry ? Sending::Registry : Sending::Layers;
    if (invocation.on("--registry")) return wrong_usage("--registry and --no-registry exclude each other");
    if (invocation.given("--registry-port")) warn("--registry-port has no effect when --no-registry is set.");
    return Sending::Whole;
}

std::expected<DeployOptions, Failure> deploy_options(const Invocation& invocation) {
    DeployOptions options;
    TRY_ASSIGN(options.engine, engine_flag(invocation));
    TRY_ASSIGN(options.compose, compose_flag(invocation));
    TRY_ASSIGN(options.sending, sending_flags(invocation));
    options.registry.skip_exposure_check = invocation.on("--skip-remote-port-check", "TOPO_SKIP_REMOTE_PORT_CHECK");
    if (invocation.on("--force-recreate") && invocation.on("--no-recreate"))
        return wrong_usage(
            "if any flags in the group [force-recreate no-recreate] are set none of the others can be; [force-recreate "
            "no-recreate] were all set");
    options.apply.recreate = invocation.on("--force-recreate") ? Recreate::Always
                             : invocation.on("--no-recreate")  ? Recreate::Never
                                                               : Recreate::Changed;
    options.apply.remove_orphans = invocation.on("--remove-orphans");
    options.apply.roll_back = !invocation.on("--no-rollback");
    TRY_ASSIGN(options.apply.wait, timeout_of(invocation, "--wait", "30s"));
    options.project_checks = !invocation.on("--skip-project-checks");
    options.preflight = !invocation.on("--skip-preflight");
    options.profiles = invocation.all("--profile");
    return options;
}

}  // namespace

Done run_deploy(const Invocation& invocation) {
    TRY_ASSIGN(const std::vector<std::string> targets, all_targets(invocation));
    if (targets.size() > 1) return deploy_to_all(invocation, targets);
    if (targets.size() == 1 && !invocation.given("--target")) return deploy_to_all(invocation, targets);
    TRY_ASSIGN(DeployOptions options, deploy_options(invocation));
    TRY_ASSIGN(const Destination destination, needed_target(invocation));
    TRY_ASSIGN(options.file, compose_file(invocation));
    TRY_ASSIGN(options.registry.port, registry_port(invocation));
    TRY_ASSIGN(const ConnectOptions connect, connect_options(invocation));
    const Target target(destination, connect);
    if (invocation.on("--plan")) {
        TRY_ASSIGN(const DeployPlan plan, plan_deploy(options, target));
        print(invocation.json() ? plan_json(plan) : plan_plain(plan));
        return 0;
    }
    DeployOutput output(invocation.json());
    auto project = deploy(options, target, output);
    output.end();
    if (!project) {
        if (project.error().context.empty() && !project.error().message.starts_with("project is not ready"))
            return std::unexpected(
                Failure(std::move(project.error()).with_context("deployment failed; ensure topo health is passing")));
        return std::unexpected(Failure(project.error()));
    }
    output.success(success_message(*project, options.file.string()));
    return 0;
}

Done run_rollback(const Invocation& invocation) {
    TRY_ASSIGN(const Destination destination, needed_target(invocation));
    DeployOptions options;
    TRY_ASSIGN(options.file, compose_file(invocation));
    TRY_ASSIGN(options.engine, engine_flag(invocation));
    TRY_ASSIGN(const ConnectOptions connect, connect_options(invocation));
    const Target target(destination, connect);
    TRY_ASSIGN(const Project project, load_for_target(options, target));
    TRY(target.connect());
    TRY_ASSIGN(const Engine engine, engine_of(target, options.engine));
    TRY_ASSIGN(const ProjectLock lock, ProjectLock::take(target, project.name, "rollback"));
    DeployOutput output(invocation.json());
    auto done = rollback(project, engine, options.apply, output);
    output.end();
    TRY(std::move(done));
    if (invocation.json()) output.success("");
    return 0;
}

}  // namespace talpa::topo
