#include "topo/deploy/pipeline.h"

#include <algorithm>

#include "base/host/file.h"
#include "topo/deploy/build.h"
#include "topo/deploy/record.h"
#include "topo/project/parameters.h"
#include "topo/project/project_checks.h"
#include "topo/system/log.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr Milliseconds kProbe(60'000);

host::Result<void> check(const Project& project, const DeployOptions& options) {
    const std::string file = options.file.string();
    for (const std::string& name : project.missing_variables)
        warn(fmt::format("The \"{}\" variable is not set. Defaulting to a blank string.", name));
    if (!project.success_message_is_text) warn("x-topo.deployment_success_message is no text; it will not be shown");
    if (!options.project_checks) return {};
    const std::vector<Finding> findings = check_project(project, file);
    if (!findings.empty())
        return std::unexpected(
            host::Error(ErrorCode::InvalidArgument, project_message(findings), "topo lint " + shell_quoted(file)));
    // The original enforces required values on clone and configure only; a deployment without them is at least said.
    if (const auto text = host::read_text(options.file, yaml::kMaxBytes)) {
        const auto root = yaml::parse_first(*text, file);
        const auto x_topo = root ? read_x_topo(**root, file) : finding("", "", {}, "");
        if (x_topo)
            if (const auto missing = missing_values(**root, *x_topo, {})) warn(*missing);
    }
    return {};
}

// Keys that only the Compose plugin can honour: named before anything is changed.
host::Result<void> check_keys(const Project& project) {
    if (project.not_honoured.empty()) return {};
    std::string names;
    for (const NotHonoured& one : project.not_honoured)
        names += fmt::format("\n- {} (line {})", one.path, one.mark.line);
    return std::unexpected(host::Error(ErrorCode::NotSupported, "topo cannot honour these keys of the project:" + names,
                                       "remove them, or deploy with docker compose on the target"));
}

struct Prepared {
    Engine engine;
    TargetFacts facts;
    TargetState state;
    std::vector<Container> existing;
    std::vector<PreflightFinding> findings;
};

host::Result<Prepared> prepare(const Project& project, const DeployOptions& options, const Target& target) {
    TRY(target.connect());
    TRY_ASSIGN(Engine engine, engine_of(target, options.engine));
    TargetFacts facts;
    facts.kind = engine.kind();
    TRY_ASSIGN(facts.info, engine.info());
    TRY_ASSIGN(const ProbeAnswers answers, probe(target, preflight_checks(facts.info), kProbe));
    TargetState state = parse_target_state(answers);
    facts.remoteproc_runtime = state.runtime_path;
    TRY_ASSIGN(std::vector<Container> existing, engine.containers(project.name));
    std::vector<PreflightFinding> findings;
    if (options.preflight) findings = judge(project, state, facts, existing, target.destination());
    return Prepared{std::move(engine), std::move(facts), std::move(state), std::move(existing), std::move(findings)};
}

host::Result<void> all_clear(const std::vector<PreflightFinding>& findings) {
    std::string errors;
    for (const PreflightFinding& f : findings) {
        const std::string text = f.message + (f.fix.empty() ? "" : "\n    " + f.fix);
        if (f.error)
            errors += "\n- " + text;
        else
            warn(text);
    }
    if (errors.empty()) return {};
    return host::failure(ErrorCode::InvalidState, "the target is not ready:{}", errors);
}

std::vector<ImageToSend> images_to_send(const Project& project, const std::map<std::string, Image>& images,
                                        EngineKind target) {
    std::vector<ImageToSend> all;
    for (const Service& service : project.services) {
        const auto image = images.find(service.name);
        if (service.scale == 0 || image == images.end()) continue;  // artifact services stay here
        const std::string name = project.image_of(service);
        all.push_back({name, startable_name(target, name), image->second});
    }
    return all;
}

std::string host_of(const Destination& destination, const Target& target) {
    const auto name = target.host_name();
    return name ? *name : destination.host;
}

// Where a virtual board's pages can be seen; without that the address that the project prints would be nobody's.
void publish_ports(const Target& target, const std::vector<Desired>& containers) {
    std::vector<std::uint16_t> ports;
    for (const Desired& d : containers)
        for (const Port& port : d.ports)
            if (port.published != 0 && port.protocol == "tcp") ports.push_back(port.published);
    if (const auto done = publish_board_ports(target.destination(), ports); !done)
        warn(fmt::format("{} ({})", done.error().message, done.error().hint));
}

// Bind mounts whose source is not there: Compose makes a folder, Podman would refuse.
host::Result<void> make_bind_sources(const Project& project, const Engine& engine) {
    std::vector<std::string> paths;
    for (const Service& service : project.services)
        for (const Mount& mount : service.mounts)
            if (mount.type == Mount::Type::Bind && service.scale > 0) paths.push_back(mount.source);
    if (paths.empty()) return {};
    Command command = engine.target().shell(
        fmt::format("for p in {}; do [ -e \"$p\" ] || mkdir -p \"$p\" || exit 1; done", shell_quoted(paths)));
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (!outcome.ok())
        return host::failure(ErrorCode::AccessFailed, "a folder for a bind mount cannot be made on the target: {}",
                             printable(trimmed(outcome.err), LineEnds::Replace));
    return {};
}

}  // namespace

host::Result<Project> load_for_target(const DeployOptions& options, const Target& target) {
    const auto project = load_project({.file = options.file,
                                       .profiles = options.profiles,
                                       .variables = {{"TOPO_TARGET", target.destination().uri()},
                                                     {"TOPO_TARGET_HOSTNAME", host_of(target.destination(), target)}}});
    if (!project) return std::unexpected(host::Error(project.error()).with_context("failed to load compose project"));
    return *project;
}

host::Result<Engine> engine_of(const Target& target, const std::optional<EngineKind>& wanted) {
    if (wanted) return Engine(*wanted, target);
    return Engine::find(target);
}

host::Result<DeployPlan> plan_deploy(const DeployOptions& options, const Target& target) {
    DeployPlan plan;
    TRY_ASSIGN(plan.project, load_for_target(options, target));
    TRY(check(plan.project, options));
    TRY(check_keys(plan.project));
    TRY_ASSIGN(const Prepared prepared, prepare(plan.project, options, target));
    plan.findings = prepared.findings;
    const Target here(Destination{.user = {}, .host = "localhost", .port = {}});
    TRY_ASSIGN(const Engine host, engine_of(here, {}));
    std::map<std::string, Image> images;
    for (const Service& service : plan.project.services) {
        TRY_ASSIGN(const std::vector<Image> found, host.images({plan.project.image_of(service)}));
        if (service.build) plan.build.push_back(service.name);
        if (!service.build && found.empty()) plan.pull.push_back(service.name);
        if (found.empty())
            plan.unknown_images.push_back(plan.project.image_of(service));
        else
            images[service.name] = found.front();
    }
    if (!target.is_local()) {
        TRY_ASSIGN(plan.transfer,
                   plan_transfer(images_to_send(plan.project, images, prepared.engine.kind()), prepared.engine));
    }
    for (const Service& service : plan.project.services)
        images.try_emplace(service.name);  // not built yet: will differ
    TRY_ASSIGN(std::vector<Desired> desired, desired_containers(plan.project, images, prepared.facts));
    plan.apply = plan_apply(std::move(desired), prepared.existing, resources(plan.project), options.apply);
    return plan;
}

host::Result<Project> deploy(const DeployOptions& options, const Target& target, DeployEvents& events) {
    TRY_ASSIGN(Project project, load_for_target(options, target));
    TRY(check(project, options));
    TRY(check_keys(project));
    events.stage("Check target");
    TRY_ASSIGN(const Prepared prepared, prepare(project, options, target));
    TRY(all_clear(prepared.findings));
    const Target here(Destination{.user = {}, .host = "localhost", .port = {}});
    TRY_ASSIGN(const Engine host, target.is_local() ? host::Result<Engine>(prepared.engine) : engine_of(here, {}));
    TRY_ASSIGN(const auto images, make_images(project, host, prepared.facts.info));
    if (!target.is_local()) {
        events.stage("Transfer images");
        TRY_ASSIGN(const TransferPlan plan,
                   plan_transfer(images_to_send(project, images, prepared.engine.kind()), prepared.engine));
        const auto progress = [&](const TransferProgress& p) { events.transfer(p); };
        if (prepared.state.knows_free && plan.bytes / 1024 > prepared.state.free_kb)
            return std::unexpected(
                host::Error(ErrorCode::OutOfResources,
                            fmt::format("the images need {}, the target has {} left", human_bytes(plan.bytes),
                                        human_bytes(prepared.state.free_kb * 1024)),
                            "topo prune --target " + shell_quoted(target.destination().uri())));
        TRY(options.whole_images ? pipe_images(plan, host, prepared.engine, progress)
                                 : send_images(plan, host, prepared.engine, progress));
        events.transfer_done(plan);
    }
    events.stage("Start services");
    TRY_ASSIGN(std::vector<Desired> desired, desired_containers(project, images, prepared.facts));
    const Record record{.time = {}, .containers = desired};
    TRY(make_bind_sources(project, prepared.engine));
    const ApplyPlan plan = plan_apply(std::move(desired), prepared.existing, resources(project), options.apply);
    for (const Container& orphan : plan.orphans)
        if (!options.apply.remove_orphans)
            warn(fmt::format("{} belongs to a service that is no longer in the file; --remove-orphans removes it",
                             orphan.name));
    TRY(apply(prepared.engine, plan, options.apply,
              [&](const std::string& name, std::string_view what) { events.container(name, what); }));
    if (const auto written = write_record(target, project.name, record); !written) warn(written.error().message);
    publish_ports(target, record.containers);
    return project;
}

host::Result<void> rollback(const Project& project, const Engine& engine, const ApplyOptions& options,
                            DeployEvents& events) {
    TRY_ASSIGN(const Records records, read_records(engine.target(), project.name));
    if (!records.previous)
        return host::failure(ErrorCode::NotFound, "there is no earlier deployment of \"{}\" to go back to",
                             project.name);
    Record back = *records.previous;
    std::vector<std::string> wanted;
    for (Desired& d : back.containers) {
        wanted.push_back(d.image_id);
        d.words[d.image_at] = d.image_id;  // the name means a newer image by now
    }
    TRY_ASSIGN(const std::vector<Image> there, engine.images(wanted));
    for (const Desired& d : back.containers)
        if (std::none_of(there.begin(), there.end(), [&](const Image& image) { return image.id == d.image_id; }))
            return host::failure(ErrorCode::NotFound, "the image {} of {} is no longer on the target",
                                 d.image_id.substr(0, 12), d.name);
    TRY_ASSIGN(const std::vector<Container> existing, engine.containers(project.name));
    events.note(fmt::format("going back to the deployment of {}", back.time));
    events.stage("Start services");
    const ApplyPlan plan = plan_apply(back.containers, existing, {}, options);
    TRY(apply(engine, plan, options,
              [&](const std::string& name, std::string_view what) { events.container(name, what); }));
    for (const Desired& d : back.containers) (void)engine.tag(d.image_id, d.image);
    publish_ports(engine.target(), back.containers);
    return write_record(engine.target(), project.name, *records.previous);
}

std::string success_message(const Project& project, const std::string& file) {
    if (project.success_message && !trimmed(*project.success_message).empty())
        return printable(*project.success_message) + "\n";
    if (file == "compose.yaml") return "Run `topo ps` to see deployed containers\n";
    const bool special = file.find_first_of(" \t'\"/\\$(){}[]`") != std::string::npos;
    return fmt::format("Run `topo ps -f {}` to see deployed containers\n", special ? "'" + file + "'" : file);
}

}  // namespace talpa::topo
