// The Docker Compose plugin of this machine, run as Arm's topo runs it (topo spec, section 8.2): build and pull here,
// `up` against the target's engine through `docker -H ssh://…`. And the choice between it and topo's own way.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "topo/deploy/apply.h"
#include "topo/engine/engine.h"
#include "topo/project/compose_model.h"

namespace talpa::topo {

enum class ComposeUse { Auto, Always, Never };

/// How a project is applied, and the reason in words.
struct Method {
    bool plugin = false;
    std::string why;
};

struct PluginFacts {
    EngineKind here = EngineKind::Docker, there = EngineKind::Docker;
    std::string there_version;  ///< of the target's engine
    bool other_platform =
        false;  ///< a service names another platform than the target's: only topo builds for the target
    // What `ask` finds out.
    std::string here_version, compose;  ///< versions of this machine's engine and plugin; empty: there is none
    bool buildx = false;
};

/// `ask` is called once what can be decided without it does not decide. Errors: the plugin is demanded and cannot be
/// had.
[[nodiscard]] host::Result<Method> choose_method(ComposeUse wanted, PluginFacts facts,
                                                 const std::function<host::Result<void>(PluginFacts&)>& ask);

/// The same with this machine and target asked.
[[nodiscard]] host::Result<Method> find_method(ComposeUse wanted, const Engine& here, const Engine& there,
                                               const EngineInfo& there_info, const Project& project);

class ComposePlugin {
  public:
    ComposePlugin(std::filesystem::path file, std::vector<std::string> profiles, Engine here, const Target& target)
        : file_(std::move(file)), profiles_(std::move(profiles)), here_(std::move(here)), target_(target) {}

    /// `docker compose -f FILE WORDS…`, on this machine's engine or on the target's.
    [[nodiscard]] host::Result<Command> command(const std::vector<std::string>& words, bool on_target) const;

    /// `build`, and `pull` of what is not built and not here. The images by service.
    [[nodiscard]] host::Result<std::map<std::string, Image>> make_images(const Project& project,
                                                                         const EngineInfo& target) const;
    /// `up -d --no-build --pull never`.
    [[nodiscard]] host::Result<void> up(const ApplyOptions& options) const;

  private:
    [[nodiscard]] host::Result<void> run(const std::vector<std::string>& words, bool on_target) const;
    std::filesystem::path file_;
    std::vector<std::string> profiles_;
    Engine here_;
    Target target_;
};

}  // namespace talpa::topo
