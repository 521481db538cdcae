#include "topo/deploy/pipeline.h"

#include <algorithm>
#include <future>

#include "base/host/file.h"
#include "topo/deploy/build.h"
#include "topo/deploy/health_gate.h"
#include "topo/deploy/project_lock.h"
#include "topo/project/compose_references.h"
#include "topo/project/parameters.h"
#include "topo/project/project_checks.h"
#include "topo/system/log.h"
#include "topo/system/next_command.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr Milliseconds kProbe(60'000);

host::Result<void> check(const Project& project, const DeployOptions& options) {
    const std::string file = options.file.string();
    for (const std::string& name : project.missing_variables)
        warn(fmt::format("The \"{}\" variable is not set. Defaulting to a blank string.", name));
    if (!project.success_message_is_text) warn("x-topo.deployment_success_message is no text; it will not be shown");
    if (const auto clear = check_clashes(file, project, false, Findings()); !clear)
        return std::unexpected(host::Error(clear.error()).with_context("the project cannot be started"));
    if (!options.project_checks) return {};
    const std::vector<Finding> findings = check_project(project, file);
    if (!findings.empty())
        return std::unexpected(
            host::Error(ErrorCode::InvalidArgument, project_message(findings), "topo lint " + shell_quoted(file)));
    const std::vector<Finding> contexts = check_contexts(project, file);
    if (!contexts.empty()) return std::unexpected(host::Error(contexts.front()));
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
host::Result<void> check_keys(const Project& project, const Method& method) {
    if (method.plugin || project.not_honoured.empty()) return {};
    std::string names;
    for (const NotHonoured& one : project.not_honoured)
        names += fmt::format("\n- {} (line {})", one.path, one.mark.line);
    return std::unexpected(host::Error(ErrorCode::NotSupported, "topo cannot honour these keys of the project:" + names,
                                       "remove them, or deploy with the Compose plugin (--compose always)"));
}

enum class Purpose { Look, Change };

// What the target has of the project, asked for beside other questions; to change it, under the lock. Who gives up
// before the lock is there does not wait for it.
struct Asking {
    struct Answer {
        std::optional<ProjectLock> lock;
        std::vector<Container> containers;
        host::Result<Records> records;
    };
    std::stop_source stop;
    std::future<host::Result<Answer>> answer;

    Asking(const Engine& engine, const std::string& project, Purpose purpose)
        : answer(std::async(
              std::launch::async, [&engine, project, purpose, token = stop.get_token()]() -> host::Result<Answer> {
                  Answer found;
                  if (purpose == Purpose::Change) {
                      TRY_ASSIGN(ProjectLock lock, ProjectLock::take(engine.target(), project, "deploy", token));
                      found.lock.emplace(std::move(lock));
                  }
                  TRY_ASSIGN(found.containers, engine.containers(project));
                  if (purpose == Purpose::Change) found.records = read_records(engine.target(), project);
                  return found;
              })) {}
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    ~Asking() { stop.request_stop(); }
};

struct Prepared {
    std::optional<ProjectLock> lock;  // when it is to be changed
    Engine engine;
    TargetFacts facts;
    TargetState state;
    std::vector<Container> existing;
    host::Result<Records> records;  // likewise
    std::vector<PreflightFinding> findings;
};

// Containers of others that have a name which this project's shall have.
host::Result<std::vector<PreflightFinding>> taken_names(const Project& project, const Engine& engine,
                                                        const std::vector<Container>& existing) {
    std::vector<std::string> names;
    for (const Service& service : project.services)
        for (int number = 1; number <= service.scale; ++number) {
            const std::string name = container_name(project, service, number);
            if (std::none_of(existing.begin(), existing.end(), [&](const Container& c) { return c.name == name; }))
                names.push_back(name);
        }
    std::vector<PreflightFinding> findings;
    if (names.empty()) return findings;
    const std::string label = fmt::format("{{{{.Name}}}}|{{{{index .Config.Labels \"{}\"}}}}", kLabelProject);
    Command command =
        engine.target().shell(fmt::format("{} inspect --type container --format {} {} 2>/dev/null; true",
                                          name_of(engine.kind()), shell_quoted(label), shell_quoted(names)));
    command.timeout = kProbe;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    for (const std::string& line : lines_of(outcome.out)) {
        const std::vector<std::string> parts = split(line, "|");
        const std::string name = parts[0].starts_with('/') ? parts[0].substr(1) : parts[0];
        if (parts.size() != 2 || std::find(names.begin(), names.end(), name) == names.end()) continue;
        const bool owned = !parts[1].empty() && parts[1] != "<no value>";
        findings.push_back({.code = "target.container.taken",
                            .error = true,
                            .message = fmt::format("a container {} is on the target already{}", name,
                                                   owned ? ", of the project " + parts[1] : ", of no project"),
                            .fix = "give the project another name, or the service another container_name"});
    }
    return findings;
}

host::Result<Prepared> prepare(const Project& project, const DeployOptions& options, const Target& target,
                               Purpose purpose) {
    TRY(target.connect());
    TRY_ASSIGN(Engine engine, engine_of(target, options.engine));
    TargetFacts facts;
    facts.kind = engine.kind();
    TRY_ASSIGN(facts.info, engine.info());
    Asking asking(engine, project.name, purpose);
    TRY_ASSIGN(ProbeAnswers answers, probe(target, preflight_checks(facts.info), kProbe));
    TRY_ASSIGN(Asking::Answer there, asking.answer.get());
    // Who had the lock may have stopped what held a port or the remote processor.
    if (there.lock && there.lock->waited()) {
        TRY_ASSIGN(answers, probe(target, preflight_checks(facts.info), kProbe));
    }
    TargetState state = parse_target_state(answers);
    facts.remoteproc_runtime = state.runtime_path;
    std::vector<Container>& existing = there.containers;
    std::vector<PreflightFinding> findings;
    if (options.preflight) findings = judge(project, state, facts, existing, target.destination());
    // By whom? Stopping a core under another project's container would be bad advice.
    if (std::any_of(findings.begin(), findings.end(), is_taken))
        if (const auto all = engine.containers(""))
            findings = judge(project, state, facts, existing, target.destination(), *all);
    if (options.preflight) {
        TRY_ASSIGN(const std::vector<PreflightFinding> names, taken_names(project, engine, existing));
        findings.insert(findings.end(), names.begin(), names.end());
    }
    return Prepared{std::move(there.lock), std::move(engine),        std::move(facts),   std::move(state),
                    std::move(existing),   std::move(there.records), std::move(findings)};
}

// The engine that builds, and what it can do.
struct Builders {
    Engine engine;
    host::Result<Builder> builder;
};

host::Result<Builders> builders_of(const Engine& engine) {
    return Builders{engine, find_builder(engine)};
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
    return url_host(name ? *name : destination.host);
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

host::Result<void> send(const DeployOptions& options, const Prepared& prepared, const Engine& host,
                        const std::vector<ImageToSend>& images, const std::vector<Image>& there, DeployEvents& events) {
    const Target& target = prepared.engine.target();
    const bool registry = options.sending == Sending::Registry;
    if (!registry) events.stage("Transfer images");
    const TransferPlan plan = plan_transfer(images, prepared.engine.kind(), there);
    if (registry && plan.send.empty()) events.stage("Transfer images");  // else its stages have their own names
    const auto progress = [&](const TransferProgress& p) { events.transfer(p); };
    if (prepared.state.knows_free && plan.bytes / 1024 > prepared.state.free_kb)
        return std::unexpected(
            host::Error(ErrorCode::OutOfResources,
                        fmt::format("the images need {}, the target has {} left", human_bytes(plan.bytes),
                                    human_bytes(prepared.state.free_kb * 1024)),
                        next_command("prune", target.destination().uri())));
    switch (options.sending) {
        case Sending::Layers:
            TRY(send_images(plan, host, prepared.engine, progress));
            break;
        case Sending::Whole:
            TRY(pipe_images(plan, host, prepared.engine, progress));
            break;
        case Sending::Registry:
            TRY(send_by_registry(
                plan, host, prepared.engine, options.registry, [&](std::string_view title) { events.stage(title); },
                [&](std::string_view line) { events.said(line); }));
            break;
    }
    events.transfer_done(plan);
    return {};
}

std::string what_is_there(const Engine& engine, const std::string& project) {
    const auto containers = engine.containers(project);
    if (!containers) return "; what is there now could not be asked";
    std::string text;
    for (const Container& c : *containers) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", c.name, c.state);
    return text.empty() ? "; no container of the project is there now" : "; there is now: " + text;
}

// Is there what the record says, and nothing beside it?
bool runs_as_recorded(const Record& record, const std::vector<Container>& existing) {
    return existing.size() == record.containers.size() &&
           std::all_of(record.containers.begin(), record.containers.end(), [&](const Desired& d) {
               return std::any_of(existing.begin(), existing.end(), [&](const Container& c) {
                   return c.name == d.name && c.hash == d.hash && c.image_id == d.image_id;
               });
           });
}

// The marker of what is at work on a project (record.h). It stays if this ends before it has been dealt with.
class Marker {
  public:
    Marker(const Engine& engine, const std::string& project, host::Result<Records>& records)
        : engine_(engine), project_(project), records_(records), before_(records ? records->begun : Begun::No) {}

    void set(Begun what) {
        if (const auto done = mark_begun(engine_.target(), project_, what); !done) warn(done.error().message);
        if (records_) records_->begun = what;
    }

    // All is as it was; after a deployment that was cut that may be the last good one.
    void back() {
        const InterruptShield shield;
        if (!records_) return;
        Begun what = before_;
        if (before_ == Begun::Deploy || before_ == Begun::Rollback) {
            const auto existing = engine_.containers(project_);
            if (existing && records_->current && runs_as_recorded(*records_->current, *existing)) what = Begun::No;
        }
        if (what != records_->begun) set(what);
    }

  private:
    const Engine& engine_;
    const std::string& project_;
    host::Result<Records>& records_;
    Begun before_;
};

// The containers of a record, in place of what is there.
host::Result<void> restore(const Engine& engine, const std::string& project, Record record, const ApplyOptions& options,
                           DeployEvents& events, bool& as_before) {
    as_before = true;
    TRY_ASSIGN(const std::vector<Container> existing, engine.containers(project));
    std::map<std::string, std::string> names;  // and which images they had meant
    for (Desired& d : record.containers) {
        const auto meant = engine.images({d.image});
        const std::string id = meant && !meant->empty() ? meant->front().id : std::string();
        if (id == d.image_id) continue;
        // The name means a newer image by now. Where it cannot be given back the ID does, though `ps` shows it then.
        if (!engine.tag(d.image_id, d.image))
            d.words[d.image_at] = d.image_id;
        else if (!id.empty())
            names.try_emplace(d.image, id);
    }
    ApplyOptions ordered = options;
    ordered.one_by_one = !record.knows_order;
    const ApplyPlan plan = plan_apply(record.containers, existing, {}, ordered);
    auto done = apply(
        engine, plan, ordered, [&](const std::string& name, std::string_view what) { events.container(name, what); },
        as_before);
    if (done) return {};
    // Those of the newer images run again, under the names that they had.
    const InterruptShield shield;
    for (const auto& [name, id] : names)
        if (const auto tagged = engine.tag(id, name); !tagged) warn(tagged.error().message);
    return done;
}

// `up`, and then what the plugin does not do: the health gate, and the way back.
host::Result<void> start_by_plugin(const ComposePlugin& plugin, const Project& project, const Prepared& prepared,
                                   std::vector<Desired> desired, const ApplyOptions& options, Marker& marker,
                                   DeployEvents& events) {
    const Engine& engine = prepared.engine;
    const auto& records = prepared.records;
    marker.set(Begun::Deploy);
    auto done = plugin.up(options);
    if (done) {
        TRY_ASSIGN(const std::vector<Container> now, engine.containers(project.name));
        for (Desired& d : desired)
            for (const Container& c : now)
                if (c.name == d.name)
                    d.settled =
                        std::any_of(prepared.existing.begin(), prepared.existing.end(),
                                    [&](const Container& old) { return old.id == c.id && old.state == "running"; });
        done = wait_until_good(engine, desired, options.wait);
        if (done) return {};
    }
    host::Error error = std::move(done.error());
    const bool has_record = records && records->current && !prepared.existing.empty();
    if (!options.roll_back || !has_record) {
        error.message += what_is_there(engine, project.name);
        return std::unexpected(std::move(error));
    }
    const InterruptShield shield;
    error.message += error.message.find('\n') == std::string::npos ? "; " : "\n";
    bool as_before = false;
    const auto back = restore(engine, project.name, *records->current, options, events, as_before);
    if (back) {
        error.message += "the old containers run again";
        marker.set(Begun::No);
    } else {
        error.message += "the old containers could not be started again: " + back.error().message;
    }
    error.message += what_is_there(engine, project.name);
    return std::unexpected(std::move(error));
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
    TRY_ASSIGN(const Prepared prepared, prepare(plan.project, options, target, Purpose::Look));
    plan.findings = prepared.findings;
    const Target here(Destination{.user = {}, .host = "localhost", .port = {}});
    TRY_ASSIGN(const Engine host, engine_of(here, {}));
    TRY_ASSIGN(plan.method, find_method(options.compose, host, prepared.engine, prepared.facts.info, plan.project));
    TRY(check_keys(plan.project, plan.method));
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
        TRY_ASSIGN(const std::vector<Image> there, prepared.engine.all_images());
        plan.transfer =
            plan_transfer(images_to_send(plan.project, images, prepared.engine.kind()), prepared.engine.kind(), there);
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
    if (options.compose == ComposeUse::Never) TRY(check_keys(project, {}));  // before anybody is asked anything
    events.stage("Check target");
    // This machine is asked while the target is.
    const Target here(Destination{.user = {}, .host = "localhost", .port = {}});
    auto host_asked =
        std::async(target.is_local() ? std::launch::deferred : std::launch::async, [&]() -> host::Result<Builders> {
            TRY_ASSIGN(const Engine engine, engine_of(here, {}));
            return builders_of(engine);
        });
    TRY_ASSIGN(Prepared prepared, prepare(project, options, target, Purpose::Change));
    TRY(all_clear(prepared.findings));
    TRY_ASSIGN(const Builders builders, target.is_local() ? builders_of(prepared.engine) : host_asked.get());
    const Engine& host = builders.engine;
    TRY_ASSIGN(const Method method, find_method(options.compose, host, prepared.engine, prepared.facts.info, project));
    events.method(method);
    TRY(check_keys(project, method));
    // What images the target has is found out while something else takes its time.
    auto there_asked = std::async(target.is_local() ? std::launch::deferred : std::launch::async,
                                  [&] { return prepared.engine.all_images(); });
    const ComposePlugin plugin(options.file, options.profiles, host, target);
    TRY_ASSIGN(const auto images, method.plugin ? plugin.make_images(project, prepared.facts.info)
                                                : make_images(project, host, builders.builder, prepared.facts.info));
    if (!target.is_local()) {
        TRY_ASSIGN(const std::vector<Image> there, there_asked.get());
        TRY(send(options, prepared, host, images_to_send(project, images, prepared.engine.kind()), there, events));
    }
    TRY(prepared.lock->still_held());
    events.stage("Start services");
    TRY_ASSIGN(std::vector<Desired> desired, desired_containers(project, images, prepared.facts));
    const Record record{.time = {}, .containers = desired};
    ApplyOptions how = options.apply;
    how.cut = was_cut(prepared.records, prepared.existing);
    Marker marker(prepared.engine, project.name, prepared.records);
    if (method.plugin) {
        TRY(start_by_plugin(plugin, project, prepared, std::move(desired), how, marker, events));
    } else {
        TRY(make_bind_sources(project, prepared.engine));
        const ApplyPlan plan = plan_apply(std::move(desired), prepared.existing, resources(project), how);
        for (const Container& orphan : plan.orphans)
            if (!options.apply.remove_orphans)
                warn(fmt::format("{} belongs to a service that is no longer in the file; --remove-orphans removes it",
                                 orphan.name));
        if (changes_something(plan, how)) marker.set(Begun::Deploy);
        bool as_before = false;
        auto done = apply(
            prepared.engine, plan, how,
            [&](const std::string& name, std::string_view what) { events.container(name, what); }, as_before);
        if (!done && as_before) marker.back();
        TRY(std::move(done));
    }
    // Of keys that only the plugin honours a record knows nothing: going back to it would make other containers.
    if (!project.not_honoured.empty()) {
        log(Level::Debug, "not recorded for topo rollback: the project has keys that only the Compose plugin honours");
        marker.set(Begun::Unrecorded);
    } else if (const auto written = write_record(target, project.name, record, prepared.records); !written) {
        warn(written.error().message);
    }
    publish_ports(target, record.containers);
    return project;
}

bool was_cut(const host::Result<Records>& records, const std::vector<Container>& existing) {
    if (records && records->begun != Begun::No) return records->begun != Begun::Unrecorded;
    if (records && records->current && records->current->marked) return false;
    // An older topo's: something is put aside, or has another image than the last deployment that ended well.
    return std::any_of(existing.begin(), existing.end(), [&](const Container& c) {
        return is_aside(c) || (records && records->current &&
                               std::any_of(records->current->containers.begin(), records->current->containers.end(),
                                           [&](const Desired& d) {
                                               return d.service == c.service && d.number == c.number &&
                                                      !c.image_id.empty() && c.image_id != d.image_id;
                                           }));
    });
}

host::Result<void> rollback(const Project& project, const Engine& engine, const ApplyOptions& options,
                            DeployEvents& events) {
    auto records = read_records(engine.target(), project.name);
    if (!records) return std::unexpected(std::move(records.error()));
    TRY_ASSIGN(const std::vector<Container> existing, engine.containers(project.name));
    ApplyOptions how = options;
    how.cut = was_cut(records, existing);
    const bool again = records->begun == Begun::Rollback && records->previous;  // it goes on where it was going
    const bool unrecorded = records->begun == Begun::Unrecorded;
    const bool current = records->current && !again && (how.cut || unrecorded);
    if (!records->previous && !current)
        return host::failure(ErrorCode::NotFound, "there is no earlier deployment of \"{}\" to go back to",
                             project.name);
    const Record& back = current ? *records->current : *records->previous;
    std::vector<std::string> wanted;
    for (const Desired& d : back.containers) wanted.push_back(d.image_id);
    TRY_ASSIGN(const std::vector<Image> there, engine.images(wanted));
    for (const Desired& d : back.containers)
        if (std::none_of(there.begin(), there.end(), [&](const Image& image) { return image.id == d.image_id; }))
            return host::failure(ErrorCode::NotFound, "the image {} of {} is no longer on the target",
                                 d.image_id.substr(0, 12), d.name);
    events.note(fmt::format("{}going back to the deployment of {}",
                            again        ? "the last rollback did not come to its end; "
                            : unrecorded ? "the last deployment is in no record (keys that only the Compose plugin "
                                           "honours); "
                            : how.cut    ? "the last deployment did not come to its end; "
                                         : "",
                            back.time));
    events.stage("Start services");
    Marker marker(engine, project.name, records);
    marker.set(current ? Begun::Deploy : Begun::Rollback);
    bool as_before = false;
    auto done = restore(engine, project.name, back, how, events, as_before);
    if (!done && as_before) marker.back();
    TRY(std::move(done));
    publish_ports(engine.target(), back.containers);
    return write_record(engine.target(), project.name, back, records);
}

std::string success_message(const Project& project, const std::string& file) {
    if (project.success_message && !trimmed(*project.success_message).empty())
        return printable(*project.success_message) + "\n";
    return fmt::format("Run `{}` to see deployed containers\n",
                       next_command("ps", {}, file == "compose.yaml" ? "" : file));
}

}  // namespace talpa::topo
