#include "topo/cli/command_table.h"

namespace talpa::topo {
namespace {

using enum ValueKind;

constexpr FlagRow kTarget{"-t,--target", Target, "TARGET", "SSH destination of the target (default: $TOPO_TARGET)"};
constexpr FlagRow kTargets{"-t,--target", Target, "TARGET",
                           "SSH destination; several times for several targets (default: $TOPO_TARGET)", true};
constexpr FlagRow kFile{"-f,--file", File, "FILE", "Compose file (default: compose.yaml, compose.yml)"};
constexpr FlagRow kTimeout{"--timeout", Duration, "DURATION", "Time limit, such as 5s or 1m30s; 0 = none (default 5s)"};
constexpr FlagRow kConnect{"--connect-timeout", Duration, "DURATION",
                           "How long reaching the target may take; 0 = no limit (default 30s)"};
constexpr FlagRow kEngine{"--engine", Words, "docker|podman",
                          "Container engine (default: the one that works, Docker first)"};
constexpr FlagRow kYes{"-y,--yes", None, "", "Do not ask"};

constexpr FlagRow kGlobal[] = {
    {"-o,--output", Words, "plain|json", "Form of the output (default plain)"},
    {"--json", None, "", "The same as --output json"},
};

constexpr FlagRow kHealth[] = {
    kTarget,
    kTimeout,
    {"--accept-new-host-keys", None, "", "Trust the host key of a target that is not known yet"},
    {"--skip-version-checks", None, "", "Do not look up releases ($TOPO_SKIP_VERSION_CHECKS)"},
    {"--strict", None, "", "Exit with status 1 when a check reports an error"},
};
constexpr FlagRow kProjects[] = {
    kTarget,
    kTimeout,
    {"-s,--source", Text, "URL", "Catalogue: http(s)://… or file://PATH"},
    {"--compatible", None, "", "Only projects that the target supports"},
};
constexpr FlagRow kDescribe[] = {kTarget, kTimeout};
constexpr FlagRow kConfigure[] = {kFile, {"--show", None, "", "Show the parameters and their current values"}};
constexpr FlagRow kDeploy[] = {
    kTargets,
    {"--targets", File, "FILE", "File with targets, and groups of them"},
    {"--group", Text, "NAME", "Only this group of the targets file", true},
    kFile,
    kConnect,
    {"--compose", Words, "auto|always|never",
     "Apply the project with the Compose plugin of this machine (default auto: where it can; $TOPO_COMPOSE)"},
    {"--registry", None, "",
     "Send images through a registry here and an SSH tunnel, not as missing layers ($TOPO_REGISTRY)"},
    {"-p,--registry-port", Text, "PORT",
     "Port of the registry, here and on the target; implies --registry (default 12737, $TOPO_PORT)"},
    {"--no-registry", None, "", "Pipe whole images instead of the layers that are missing"},
    {"--skip-remote-port-check", None, "",
     "Do not check that the tunnel is not exposed ($TOPO_SKIP_REMOTE_PORT_CHECK)"},
    {"--skip-project-checks", None, "", "Do not check platforms and parameters"},
    {"--skip-preflight", None, "", "Do not check the target before building"},
    {"--force-recreate", None, "", "Recreate containers that have not changed"},
    {"--no-recreate", None, "", "Leave containers as they are, changed or not"},
    {"--remove-orphans", None, "", "Remove containers of services that are no longer in the file"},
    {"--plan", None, "", "Show what would be built, sent and replaced; change nothing"},
    {"--wait", Duration, "DURATION", "How long services may take to become healthy; 0 = do not wait (default 30s)"},
    {"--no-rollback", None, "", "Leave a deployment that is not healthy as it is"},
    {"--profile", Text, "NAME", "Activate a profile of the Compose file", true},
    kEngine,
};
constexpr FlagRow kPs[] = {kTarget, kFile, {"-a,--all", None, "", "Show stopped containers too"}, kConnect, kEngine};
constexpr FlagRow kStop[] = {kTarget, kFile, kConnect, kEngine};
constexpr FlagRow kDown[] = {
    kTarget, kFile, {"--volumes", None, "", "Remove the project's volumes too"}, kConnect, kEngine};
// -f follows here, as users of docker expect.
constexpr FlagRow kLogs[] = {
    kTarget,
    {"--file", File, "FILE", "Compose file (default: compose.yaml, compose.yml)"},
    {"-f,--follow", None, "", "Go on as new lines come"},
    {"-n,--tail", Text, "LINES", "Only the last lines of each service"},
    kConnect,
    kEngine,
};
constexpr FlagRow kStatus[] = {
    kTarget, kFile, {"-w,--watch", None, "", "Refresh every two seconds"}, kConnect, kEngine};
constexpr FlagRow kRollback[] = {kTarget, kFile, kConnect, kEngine};
constexpr FlagRow kPrune[] = {kTarget, kFile, kYes, kConnect, kEngine};
constexpr FlagRow kInstall[] = {
    kTarget, {"--from", File, "FILE", "Archive to install from (default: the one that came with topo)"}, kConnect};
constexpr FlagRow kSetupKeys[] = {
    kTarget,
    {"--key-path", File, "PATH", "Key file (default ~/.ssh/id_ed25519_topo_TARGET)"},
    {"--key-type", Words, "ed25519|rsa", "Type of the key (default ed25519)"},
};
constexpr FlagRow kUpgrade[] = {{"--timeout", Duration, "DURATION", "Time limit; 0 = none (default 0)"}};
constexpr FlagRow kDoctor[] = {kTarget, kTimeout, {"--fix", None, "", "Apply the fixes, after asking for each"}, kYes};
constexpr FlagRow kLint[] = {kFile};
constexpr FlagRow kNew[] = {
    {"--template", Words, "web-firmware|web|npu-classifier", "What to start from (default web-firmware)"}};
constexpr FlagRow kMan[] = {{"--markdown", None, "", "Print the reference of all commands as Markdown"}};
constexpr FlagRow kCompletion[] = {{"--no-descriptions", None, "", "Without descriptions"}};

constexpr CommandRow kCommands[] = {
    {"health", "", "", "Check this machine and the target", 0, 0, kHealth,
     "topo health --target root@board\ntopo health --strict --json"},
    {"projects", "templates", "", "List the projects of the catalogue", 0, 1 << 20, kProjects,
     "topo projects --target root@board --compatible"},
    {"describe", "", "", "Show the hardware of a target", 0, 0, kDescribe, "topo describe --target root@board", true},
    {"clone",
     "",
     "<project-source> [<path>] [NAME=VALUE...]",
     "Copy a project and set its parameters",
     1,
     1 << 20,
     {},
     "topo clone https://example.org/project.git#v1\ntopo clone dir:../project copy NAME=value"},
    {"configure", "", "[NAME=VALUE...]", "Set the parameters of a project", 0, 1 << 20, kConfigure,
     "topo configure SENSOR=TMP117\ntopo configure --show"},
    {"new", "", "<path>", "Make a new project from a template", 1, 1, kNew, "topo new my-project"},
    {"lint", "", "[FILE...]", "Check a project file, with positions and fixes", 0, 1 << 20, kLint,
     "topo lint\ntopo lint --json compose.yaml"},
    {"deploy", "", "", "Build a project and start it on the target", 0, 0, kDeploy,
     "topo deploy --target root@board\ntopo deploy --target root@board --plan"},
    {"ps", "", "", "List the containers of a project", 0, 0, kPs, "topo ps --target root@board"},
    {"status", "", "", "Show containers and remote processors", 0, 0, kStatus,
     "topo status --target root@board --watch"},
    {"logs", "", "[SERVICE...]", "Show what the services say, firmware included", 0, 1 << 20, kLogs,
     "topo logs --target root@board webapp --follow"},
    {"stop", "", "", "Stop the services of a project", 0, 0, kStop, "topo stop --target root@board"},
    {"down", "", "", "Stop and remove the containers of a project", 0, 0, kDown, "topo down --target root@board"},
    {"rollback", "", "", "Go back to the last good deployment", 0, 0, kRollback, "topo rollback --target root@board"},
    {"prune", "", "", "Remove what earlier deployments left behind", 0, 0, kPrune, "topo prune --target root@board"},
    {"install", "", "remoteproc-runtime", "Install the Remoteproc Runtime on the target", 1, 1, kInstall,
     "topo install remoteproc-runtime --target root@board"},
    {"setup-keys", "", "", "Make an SSH key and set it up on the target", 0, 0, kSetupKeys,
     "topo setup-keys --target root@board"},
    {"migrate-ssh", "", "", "Join the SSH configuration of old releases into one file", 0, 0, {}, "", true},
    {"doctor", "", "", "Find out what is wrong, and mend it", 0, 0, kDoctor, "topo doctor --target root@board --fix"},
    {"upgrade", "", "", "Install the newest release of topo", 0, 0, kUpgrade, "topo upgrade"},
    {"completion", "", "bash|zsh|fish|powershell", "Print a completion script for a shell", 1, 1, kCompletion,
     "source <(topo completion bash)"},
    {"man", "", "[COMMAND]", "Print a manual page (roff)", 0, 1, kMan, "topo man deploy | man -l -", true},
    {"help", "", "[command]", "Help on a command", 0, 1, {}, "topo help deploy"},
};

}  // namespace

std::span<const CommandRow> command_table() {
    return kCommands;
}

std::span<const FlagRow> global_flags() {
    return kGlobal;
}

const CommandRow* find_command(std::string_view name) {
    for (const CommandRow& row : kCommands)
        if (row.name == name || (!row.alias.empty() && row.alias == name)) return &row;
    return nullptr;
}

}  // namespace talpa::topo
