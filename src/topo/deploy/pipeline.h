// topo deploy for one target, from the file to the running containers (topo spec, section 8.2), and its plan.
#pragma once

#include <optional>
#include <string>

#include "topo/deploy/apply.h"
#include "topo/deploy/compose_plugin.h"
#include "topo/deploy/preflight.h"
#include "topo/deploy/record.h"
#include "topo/deploy/registry.h"
#include "topo/deploy/transfer.h"
#include "topo/project/compose_model.h"

namespace talpa::topo {

/// How images get to the target: missing layers (upload.h), save | load, or through a registry (registry.h).
enum class Sending { Layers, Whole, Registry };

struct DeployOptions {
    std::filesystem::path file;
    std::vector<std::string> profiles;
    ApplyOptions apply;
    bool project_checks = true;
    bool preflight = true;
    Sending sending = Sending::Layers;
    RegistryOptions registry;
    ComposeUse compose = ComposeUse::Auto;
    std::optional<EngineKind> engine;
};

/// What happens, for the terminal or as JSON lines.
class DeployEvents {
  public:
    virtual ~DeployEvents() = default;
    virtual void stage(std::string_view title) = 0;
    virtual void note(std::string_view text) = 0;
    /// By whom the project is applied, and why.
    virtual void method(const Method& method) = 0;
    /// A line of a program that sends images.
    virtual void said(std::string_view line) = 0;
    virtual void container(const std::string& name, std::string_view what) = 0;
    virtual void transfer(const TransferProgress& progress) = 0;
    virtual void transfer_done(const TransferPlan& plan) = 0;
};

struct DeployPlan {
    Project project;
    Method method;
    std::vector<std::string> build, pull;     ///< services
    TransferPlan transfer;                    ///< as far as images are here already
    std::vector<std::string> unknown_images;  ///< not built yet, so nothing is known of them
    ApplyPlan apply;
    std::vector<PreflightFinding> findings;
};

/// A project for a target: loaded with TOPO_TARGET and TOPO_TARGET_HOSTNAME set, and checked.
[[nodiscard]] host::Result<Project> load_for_target(const DeployOptions& options, const Target& target);

/// The engine of a target: the one that was asked for, or the first that works.
[[nodiscard]] host::Result<Engine> engine_of(const Target& target, const std::optional<EngineKind>& wanted);

[[nodiscard]] host::Result<DeployPlan> plan_deploy(const DeployOptions& options, const Target& target);

/// Does it. Returns the project, for the success message.
[[nodiscard]] host::Result<Project> deploy(const DeployOptions& options, const Target& target, DeployEvents& events);

/// Did the last deployment not come to its end (topo was killed, the machine went off)? Then the containers that were
/// put aside are the good ones. Of the records of older topos, which left no marker, it is guessed.
[[nodiscard]] bool was_cut(const host::Result<Records>& records, const std::vector<Container>& existing);

/// Back to the deployment before this one, or, after one that was cut or is in no record, to the last that is.
[[nodiscard]] host::Result<void> rollback(const Project& project, const Engine& engine, const ApplyOptions& options,
                                          DeployEvents& events);

/// The message of section 8.2 e.
[[nodiscard]] std::string success_message(const Project& project, const std::string& file);

}  // namespace talpa::topo
