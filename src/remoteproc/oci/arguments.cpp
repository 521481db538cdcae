#include "remoteproc/oci/arguments.h"

#include <algorithm>
#include <array>

#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc {
namespace {

constexpr std::array<FlagInfo, 11> kGlobal{{
    {"root", 0, "DIR", "where the containers' state is kept"},
    {"log", 0, "FILE", "append the log and errors to FILE as well"},
    {"log-format", 0, "FORMAT", "of that file: text or json"},
    {"log-level", 0, "LEVEL", "debug, info, warn or error (default info)"},
    {"debug", 0, "", "the same as --log-level debug"},
    {"systemd-cgroup", 0, "", ""},
    {"rootless", 0, "VALUE", ""},
    {"criu", 0, "PATH", ""},
    {"version", 'v', "", "print the version"},
    {"help", 'h', "", "print this, or the help of a command"},
    {"verbose", 0, "", ""},
}};

constexpr std::array<FlagInfo, 7> kCreate{{
    {"bundle", 'b', "DIR", "the bundle: config.json and the root folder (default: here)"},
    {"pid-file", 0, "FILE", "write the container's process id there"},
    {"console-socket", 0, "PATH", ""},
    {"no-pivot", 0, "", ""},
    {"no-new-keyring", 0, "", ""},
    {"preserve-fds", 0, "N", ""},
    {"detach", 'd', "", "run: do not wait for the end"},
}};
constexpr std::array<FlagInfo, 1> kKill{{{"all", 'a', "", ""}}};
constexpr std::array<FlagInfo, 1> kDelete{{{"force", 'f', "", "stop the container first; never fails"}}};
constexpr std::array<FlagInfo, 2> kList{{
    {"format", 'f', "FORMAT", "table or json"},
    {"quiet", 'q', "", "ids only"},
}};
constexpr std::array<FlagInfo, 2> kEvents{{
    {"stats", 0, "", "print figures of the container's process once"},
    {"interval", 0, "TIME", ""},
}};
constexpr std::array<FlagInfo, 3> kSpec{{
    {"bundle", 'b', "DIR", "where to write config.json (default: here)"},
    {"name", 0, "NAME", "the remote processor (default imx-rproc)"},
    {"firmware", 0, "FILE", "the firmware below rootfs/ (default firmware.elf)"},
}};
constexpr std::array<FlagInfo, 1> kLogs{{{"follow", 'f', "", "go on until the container has stopped"}}};
constexpr std::array<FlagInfo, 16> kProxy{{
    {"device-path", 0, "DIR", ""},
    {"events-fd", 0, "N", ""},
    {"commit-fd", 0, "N", ""},
    {"state-fd", 0, "N", ""},
    {"recovery-fd", 0, "N", ""},
    {"debug-fd", 0, "N", ""},
    {"log-fd", 0, "N", ""},
    {"memory-fd", 0, "N", ""},
    {"retries", 0, "N", ""},
    {"recovery-ms", 0, "N", ""},
    {"heartbeat-ms", 0, "N", ""},
    {"trace", 0, "NAME", ""},
    {"console", 0, "PATH", ""},
    {"process-fd", 0, "N", ""},
    {"process", 0, "N", ""},
    {"run-folder", 0, "DIR", ""},
}};

constexpr std::size_t kMany = 1000;

constexpr std::array<CommandInfo, 24> kCommands{{
    {"create", "ID", 1, 1, kCreate, "check a bundle and make a container of it; the core is not touched",
     "remoteproc-runtime create --bundle /run/b c1"},
    {"start",
     "ID",
     1,
     1,
     {},
     "boot the firmware; returns when the core runs, or with the kernel's reason why not",
     "remoteproc-runtime start c1"},
    {"state", "ID", 1, 1, {}, "print the container's state as JSON", "remoteproc-runtime state c1"},
    {"kill", "ID [SIGNAL]", 1, 2, kKill, "stop the core: TERM and INT ask, KILL forces (default TERM)",
     "remoteproc-runtime kill c1"},
    {"delete", "ID", 1, 1, kDelete, "remove a stopped container and its firmware copy",
     "remoteproc-runtime delete --force c1"},
    {"run", "ID", 1, 1, kCreate, "create, start, wait for the end, delete; ends with the container's exit code",
     "remoteproc-runtime run --bundle /run/b c1"},
    {"list", "", 0, 0, kList, "list the containers", "remoteproc-runtime list --format json", CommandGroup::Tell},
    {"ps", "ID", 1, kMany, kList, "show the container's process", "remoteproc-runtime ps c1", CommandGroup::Tell},
    {"logs", "ID", 1, 1, kLogs, "print what the firmware wrote to its trace buffers", "remoteproc-runtime logs -f c1",
     CommandGroup::Tell},
    {"events", "ID", 1, 1, kEvents, "print what happens to the container, one JSON object a line",
     "remoteproc-runtime events c1", CommandGroup::Tell},
    {"features",
     "",
     0,
     0,
     {},
     "print what this runtime can do, as JSON",
     "remoteproc-runtime features",
     CommandGroup::Tell},
    {"spec", "", 0, 0, kSpec, "write an example config.json",
     "remoteproc-runtime spec --bundle /run/b --name imx-rproc", CommandGroup::Tell},
    {"gc",
     "",
     0,
     0,
     {},
     "stop cores whose container is gone and remove what such containers left",
     "remoteproc-runtime gc",
     CommandGroup::Tell},
    {"completion",
     "bash|zsh|fish",
     1,
     1,
     {},
     "print a completion script for a shell",
     "source <(remoteproc-runtime completion bash)",
     CommandGroup::Tell},
    {"help", "[COMMAND]", 0, 1, {}, "print this, or the help of a command", "", CommandGroup::Tell},
    {"exec", "", 0, kMany, {}, "firmware has no processes that could be added to it", "", CommandGroup::Refused},
    {"pause", "", 0, kMany, {}, "a core cannot be paused, only stopped", "", CommandGroup::Refused},
    {"resume", "", 0, kMany, {}, "a core cannot be paused, only stopped", "", CommandGroup::Refused},
    {"checkpoint", "", 0, kMany, {}, "the state of a core cannot be saved", "", CommandGroup::Refused},
    {"restore", "", 0, kMany, {}, "the state of a core cannot be saved", "", CommandGroup::Refused},
    {"update",
     "",
     0,
     kMany,
     {},
     "firmware has no limits that could change; engines call this all the same",
     "",
     CommandGroup::Ignored},
    {"proxy", "", 0, 0, kProxy, "the container's process", "", CommandGroup::Hidden},
    {"pause-container", "", 0, 0, kProxy, "a pod's pause process", "", CommandGroup::Hidden},
    {"guard", "", 0, 0, kProxy, "stops the core should the proxy be killed", "", CommandGroup::Hidden},
}};

const FlagInfo* find_flag(std::span<const FlagInfo> flags, std::string_view name, char letter) {
    for (const FlagInfo& flag : flags)
        if (letter != 0 ? flag.letter == letter : flag.name == name) return &flag;
    return nullptr;
}

// Before the command's name is known, a flag of any command is taken; afterwards one of the command's own or a global
// one.
const FlagInfo* find_flag(const CommandInfo* command, std::string_view name, char letter) {
    if (const FlagInfo* flag = command != nullptr ? find_flag(command->flags, name, letter) : nullptr) return flag;
    if (const FlagInfo* flag = find_flag(kGlobal, name, letter)) return flag;
    if (command != nullptr) return nullptr;
    for (const CommandInfo& other : kCommands)
        if (const FlagInfo* flag = find_flag(other.flags, name, letter)) return flag;
    return nullptr;
}

bool takes_anything(const CommandInfo& command) {
    return command.group == CommandGroup::Refused || command.group == CommandGroup::Ignored;
}

std::unexpected<host::Error> wrong(std::string text) {
    return std::unexpected(host::Error(ErrorCode::InvalidArgument, std::move(text)));
}

std::string counts(const CommandInfo& command, std::size_t got) {
    if (command.least == command.most) return fmt::format("accepts {} arg(s), received {}", command.least, got);
    if (command.most == kMany) return fmt::format("requires at least {} arg(s), only received {}", command.least, got);
    return fmt::format("accepts between {} and {} arg(s), received {}", command.least, command.most, got);
}

}  // namespace

std::span<const CommandInfo> all_commands() {
    return kCommands;
}

std::span<const FlagInfo> global_flags() {
    return kGlobal;
}

std::string CommandLine::value(std::string_view flag, std::string_view otherwise) const {
    const auto found = flags.find(flag);
    return found == flags.end() ? std::string(otherwise) : found->second;
}

Result<CommandLine> parse_command_line(std::span<const std::string> arguments) {
    CommandLine line;
    bool flags_end = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (flags_end || argument.size() < 2 || argument[0] != '-') {
            if (line.command != nullptr) {
                line.positional.push_back(argument);
                continue;
            }
            const auto found = std::ranges::find(kCommands, std::string_view(argument), &CommandInfo::name);
            if (found == kCommands.end())
                return wrong(fmt::format("unknown command \"{}\" for \"{}\"", printable(argument), kProgram));
            line.command = &*found;
            continue;
        }
        if (argument == "--") {
            flags_end = true;
            continue;
        }
        const bool is_long = argument[1] == '-';
        const std::size_t equals = argument.find('=');
        const std::string name = is_long ? argument.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
        const FlagInfo* flag = find_flag(line.command, name, is_long ? '\0' : argument[1]);
        if (flag == nullptr && line.command != nullptr && takes_anything(*line.command)) continue;
        if (flag == nullptr)
            return wrong(is_long ? fmt::format("unknown flag: --{}", printable(name))
                                 : fmt::format("unknown shorthand flag: '{}' in {}", printable(argument.substr(1, 1)),
                                               printable(argument)));
        std::string value = "true";
        if (is_long ? equals != std::string::npos : !flag->value.empty() && argument.size() > 2) {
            value = is_long ? argument.substr(equals + 1) : argument.substr(argument[2] == '=' ? 3 : 2);
        } else if (!flag->value.empty()) {
            if (i + 1 == arguments.size()) return wrong("flag needs an argument: " + printable(argument));
            value = arguments[++i];
        }
        if (flag->value.empty() && value == "false") continue;
        line.flags[std::string(flag->name)] = value;
    }
    if (line.command == nullptr) return line;
    for (const auto& [name, value] : line.flags)
        if (find_flag(line.command, name, 0) == nullptr) return wrong("unknown flag: --" + name);
    if (line.has("help") || takes_anything(*line.command)) return line;
    if (line.positional.size() < line.command->least || line.positional.size() > line.command->most)
        return wrong(counts(*line.command, line.positional.size()));
    if (line.command->name == "proxy" && !line.has("device-path"))
        return wrong("required flag(s) \"device-path\" not set");
    return line;
}

std::string usage(const CommandInfo* command) {
    std::string out;
    const auto show = [&](std::span<const FlagInfo> flags) {
        for (const FlagInfo& flag : flags) {
            if (flag.help.empty()) continue;
            std::string left = flag.letter != 0 ? fmt::format("-{}, ", flag.letter) : "    ";
            left += fmt::format("--{}{}{}", flag.name, flag.value.empty() ? "" : " ", flag.value);
            out += fmt::format("  {:<24} {}\n", left, flag.help);
        }
    };
    if (command != nullptr) {
        out += fmt::format("Usage: {} {}{}{}{}\n\n  {}\n", kProgram, command->name,
                           command->flags.empty() ? "" : " [flags]", command->positional.empty() ? "" : " ",
                           command->positional, command->help);
        if (std::ranges::any_of(command->flags, [](const FlagInfo& flag) { return !flag.help.empty(); }))
            out += "\nFlags:\n";
        show(command->flags);
        if (!command->example.empty()) out += fmt::format("\nExample:\n  {}\n", command->example);
        return out;
    }
    out += fmt::format(
        "{} boots firmware on remote processors as OCI containers.\n\nUsage: {} [flags] COMMAND [flags] "
        "[arguments]\n\nCommands:\n",
        kProgram, kProgram);
    for (const CommandInfo& c : kCommands)
        if (c.group == CommandGroup::Life || c.group == CommandGroup::Tell)
            out += fmt::format("  {:<24} {}\n", fmt::format("{} {}", c.name, c.positional), c.help);
    out += "\nFlags:\n";
    show(kGlobal);
    out +=
        "\nExamples:\n"
        "  remoteproc-runtime create --bundle /run/b c1 && remoteproc-runtime start c1\n"
        "  remoteproc-runtime logs -f c1\n"
        "  remoteproc-runtime kill c1; remoteproc-runtime delete c1\n"
        "  podman --runtime /usr/local/bin/remoteproc-runtime run -d --annotation remoteproc.name=imx-rproc IMAGE\n";
    return out;
}

}  // namespace talpa::remoteproc
