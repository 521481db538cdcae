#include "topo/deploy/compose_plugin.h"

#include <algorithm>
#include <cstdlib>

#include "base/host/json.h"
#include "topo/deploy/build.h"
#include "topo/deploy/words.h"
#include "topo/system/log.h"
#include "topo/system/text.h"
#include "topo/target/health.h"
#include "topo/target/ssh_shim.h"

namespace talpa::topo {
namespace {

constexpr Milliseconds kPluginQuestion(15'000);
// Before it: no shims by name, no annotations, no build contexts (topo spec, section 15).
constexpr int kLeastDocker = 23;

host::Result<void> ask_this_machine(const Engine& here, PluginFacts& facts) {
    TRY_ASSIGN(const Outcome compose,
               here.run({"compose", "version", "--format", "json"}, kPluginQuestion, Engine::Check::Nothing));
    if (compose.ok()) {
        const host::Json answer = host::Json::parse(compose.out, nullptr, false);
        if (answer.is_object() && answer.contains("version") && answer["version"].is_string())
            facts.compose = answer["version"].get<std::string>();
    }
    if (facts.compose.empty()) return {};
    TRY_ASSIGN(const Outcome buildx, here.run({"buildx", "version"}, kPluginQuestion, Engine::Check::Nothing));
    facts.buildx = buildx.ok();
    TRY_ASSIGN(const Outcome server,
               here.run({"version", "--format", "{{.Server.Version}}"}, kPluginQuestion, Engine::Check::Nothing));
    if (server.ok()) facts.here_version = trimmed(server.out);
    return {};
}

}  // namespace

host::Result<Method> choose_method(ComposeUse wanted, PluginFacts facts,
                                   const std::function<host::Result<void>(PluginFacts&)>& ask) {
    const bool always = wanted == ComposeUse::Always;
    const auto own = [&](std::string why) -> host::Result<Method> {
        return Method{.plugin = false, .why = std::move(why)};
    };
    // What the plugin cannot do without is an error when it is demanded; what it would do badly is not.
    const auto impossible = [&](std::string why) -> host::Result<Method> {
        if (!always) return own(std::move(why));
        return std::unexpected(host::Error(ErrorCode::NotSupported, "the Compose plugin cannot be used: " + why,
                                           "--compose auto lets topo apply the project itself"));
    };
    if (wanted == ComposeUse::Never) return own("--compose never");
    if (facts.there == EngineKind::Podman) return impossible("the target's engine is Podman");
    if (facts.here == EngineKind::Podman) return impossible("this machine's engine is Podman");
    if (!always && major_version(facts.there_version) < kLeastDocker)
        return own(fmt::format("Docker {} of the target is older than {}", facts.there_version, kLeastDocker));
    if (!always && facts.other_platform) return own("the project is for another platform than the target's");
    TRY(ask(facts));
    if (facts.compose.empty()) return impossible("`docker compose` is not installed");
    if (!version_at_least(facts.compose, kLeastCompose))
        return impossible(fmt::format("`docker compose` {} is older than {}", facts.compose, kLeastCompose));
    if (!always && !facts.buildx) return own("`docker buildx` is not installed");
    if (!always && major_version(facts.here_version) < kLeastDocker)
        return own(fmt::format("Docker {} of this machine is older than {}", facts.here_version, kLeastDocker));
    return Method{.plugin = true,
                  .why = fmt::format("docker compose {}{}{}", facts.compose, facts.buildx ? " with buildx" : "",
                                     always ? ", --compose always" : "")};
}

host::Result<Method> find_method(ComposeUse wanted, const Engine& here, const Engine& there,
                                 const EngineInfo& there_info, const Project& project) {
    PluginFacts facts;
    facts.here = here.kind();
    facts.there = there.kind();
    facts.there_version = there_info.version;
    facts.other_platform = std::any_of(project.services.begin(), project.services.end(), [&](const Service& service) {
        return !service.platform.empty() && build_platform(service, there_info) != service.platform;
    });
    return choose_method(wanted, std::move(facts), [&](PluginFacts& asked) { return ask_this_machine(here, asked); });
}

host::Result<Command> ComposePlugin::command(const std::vector<std::string>& words, bool on_target) const {
    Command command{.argv = {"docker"}};
    if (on_target && !target_.is_local()) {
        command.argv.insert(command.argv.end(), {"-H", target_.destination().ssh_uri()});
        // docker runs ssh itself, a few times a call: over the connection that is there.
        TRY_ASSIGN(const std::string folder, ssh_shim(target_));
        if (!folder.empty()) command.environment.emplace_back("PATH", folder + ":" + environment("PATH"));
    }
    command.argv.insert(command.argv.end(), {"compose", "-f", file_.string()});
    for (const std::string& profile : profiles_) command.argv.insert(command.argv.end(), {"--profile", profile});
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    const auto name = target_.host_name();
    command.environment.emplace_back("TOPO_TARGET", target_.destination().uri());
    command.environment.emplace_back("TOPO_TARGET_HOSTNAME", name ? url_host(*name) : target_.destination().host);
    return command;
}

host::Result<void> ComposePlugin::run(const std::vector<std::string>& words, bool on_target) const {
    TRY_ASSIGN(const Command ready, command(words, on_target));
    log(Level::Debug, shell_quoted(ready.argv));
    TRY_ASSIGN(const Outcome ran,
               pass_through(ready, logging().format == Format::Json ? Output::ErrorsOnly : Output::ErrorsToOutput));
    if (ran.status == 0) return {};
    return host::failure(ErrorCode::AccessFailed, "`docker compose {}` failed: exit status {}", words.front(),
                         ran.status);
}

host::Result<std::map<std::string, Image>> ComposePlugin::make_images(const Project& project,
                                                                      const EngineInfo& target) const {
    std::vector<std::string> pull;
    bool builds = false;
    for (const Service& service : project.services) {
        builds = builds || service.build;
        if (service.build) continue;
        // The original pulls always, and so cannot do without the image's registry (section 13-8).
        TRY_ASSIGN(const std::vector<Image> here, here_.images({project.image_of(service)}));
        if (here.empty() || service.pull_policy == "always") pull.push_back(service.name);
    }
    const bool plain = logging().format == Format::Plain;
    if (builds) {
        if (plain) header("Build images");
        TRY(run({"build"}, false));
    }
    if (!pull.empty()) {
        if (plain) header("Pull images");
        std::sort(pull.begin(), pull.end());
        pull.insert(pull.begin(), "pull");
        TRY(run(pull, false));
    }
    return find_images(project, here_, target);
}

host::Result<void> ComposePlugin::up(const ApplyOptions& options) const {
    std::vector<std::string> words = {"up", "-d", "--no-build", "--pull", "never"};
    if (options.recreate == Recreate::Always) words.emplace_back("--force-recreate");
    if (options.recreate == Recreate::Never) words.emplace_back("--no-recreate");
    if (options.remove_orphans) words.emplace_back("--remove-orphans");
    return run(words, true);
}

}  // namespace talpa::topo
