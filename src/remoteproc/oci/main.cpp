// remoteproc-runtime: an OCI runtime whose containers are firmware on remote processors.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <string>
#include <vector>

#include "remoteproc/oci/arguments.h"
#include "remoteproc/oci/completion.h"
#include "remoteproc/oci/container.h"
#include "remoteproc/oci/info.h"
#include "remoteproc/oci/log.h"
#include "remoteproc/oci/operations.h"
#include "remoteproc/oci/proxy.h"

#ifndef TALPA_REMOTEPROC_ROOT
#define TALPA_REMOTEPROC_ROOT "/"
#endif

namespace talpa::remoteproc {
namespace {

constexpr std::string_view kVersion = TALPA_VERSION;

int number(const CommandLine& line, std::string_view flag, int otherwise) {
    const std::string text = line.value(flag);
    int value = otherwise;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

int hidden(const CommandLine& line) {
    if (line.command->name == "guard")
        return run_guard({number(line, "process-fd", -1), number(line, "state-fd", -1), number(line, "events-fd", -1),
                          number(line, "process", 0), line.value("device-path"), line.value("run-folder")});
    if (line.command->name == "pause-container")
        return run_pause(number(line, "events-fd", -1), number(line, "commit-fd", -1));
    ProxyOptions o;
    o.device = line.value("device-path");
    o.events_fd = number(line, "events-fd", -1);
    o.commit_fd = number(line, "commit-fd", -1);
    o.state_fd = number(line, "state-fd", -1);
    o.recovery_fd = number(line, "recovery-fd", -1);
    o.debug_fd = number(line, "debug-fd", -1);
    o.log_fd = number(line, "log-fd", -1);
    o.memory_fd = number(line, "memory-fd", -1);
    o.trace = line.value("trace", "auto");
    o.console = line.value("console");
    o.retries = number(line, "retries", 0);
    o.recovery_ms = number(line, "recovery-ms", 10000);
    o.heartbeat_ms = number(line, "heartbeat-ms", 0);
    return run_proxy(o);
}

Result<void> configure_log(const CommandLine& line) {
    LogSettings settings;
    std::string level = line.has("debug") ? "debug" : line.value("log-level", "info");
    std::ranges::transform(level, level.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    constexpr std::string_view kLevels[] = {"debug", "info", "warn", "error"};
    const auto found = std::ranges::find(kLevels, std::string_view(level));
    if (found == std::end(kLevels))
        return host::failure(ErrorCode::InvalidArgument,
                             "invalid log level \"{}\", must be one of: debug, info, warn, error", printable(level));
    settings.level = static_cast<LogLevel>(found - std::begin(kLevels));
    settings.file = line.value("log");
    const std::string form = line.value("log-format", "text");
    if (form != "text" && form != "json")
        return host::failure(ErrorCode::InvalidArgument, "invalid log format \"{}\", must be text or json",
                             printable(form));
    settings.json = form == "json";
    if (!settings.file.empty()) {
        const Fd file(
            ::open(settings.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
        if (!file && errno != ENXIO) return os_failure("open", settings.file, errno);  // a FIFO may have no reader yet
    }
    set_log(std::move(settings));
    return {};
}

Result<ListForm> form(const CommandLine& line) {
    const std::string word = line.value("format", "table");
    if (word != "table" && word != "json")
        return host::failure(ErrorCode::InvalidArgument, "invalid format \"{}\", must be table or json",
                             printable(word));
    if (line.has("quiet")) return ListForm::Ids;
    return word == "json" ? ListForm::Json : ListForm::Table;
}

Result<int> run_command(const Settings& settings, const CommandLine& line) {
    const std::string_view command = line.command->name;
    const std::string id = line.positional.empty() ? "" : line.positional[0];
    const auto say = [](const Result<std::string>& text) -> Result<int> {
        if (!text) return std::unexpected(text.error());
        (void)write_all(1, *text);
        return 0;
    };
    const auto done = [](Result<void> result) -> Result<int> {
        if (!result) return std::unexpected(std::move(result.error()));
        return 0;
    };
    const CreateOptions create_options{id, line.value("bundle", "."), line.value("pid-file"),
                                       line.value("console-socket")};
    if (command == "create") return done(create(settings, create_options));
    if (command == "start") return done(start(settings, id));
    if (command == "kill") return done(kill(settings, id, line.positional.size() > 1 ? line.positional[1] : "TERM"));
    if (command == "delete") return done(remove(settings, id, line.has("force") ? Force::Yes : Force::No));
    if (command == "run") {
        TRY(create(settings, create_options));
        if (line.has("detach")) return done(start(settings, id));
        return run_to_end(settings, id);
    }
    if (command == "state") {
        auto text = state(settings, id);
        if (text) *text += "\n";
        return say(text);
    }
    if (command == "list" || command == "ps") {
        TRY_ASSIGN(const ListForm wanted, form(line));
        return say(command == "list" ? list(settings, wanted) : ps(settings, id, wanted));
    }
    if (command == "logs") return done(print_log(settings, id, line.has("follow")));
    if (command == "events") return line.has("stats") ? say(stats(settings, id)) : done(follow_events(settings, id));
    if (command == "features") return say(features_json(std::string(kVersion)));
    if (command == "spec")
        return done(write_spec(line.value("bundle", "."), line.value("name", "imx-rproc"),
                               line.value("firmware", "firmware.elf")));
    if (command == "completion") return say(completion_script(id));
    if (command == "gc") return say(collect_garbage(settings));
    return host::failure(ErrorCode::NotSupported, "{} is not supported: {}", command, line.command->help);
}

int report(const host::Error& error) {
    std::string text = error_line(error);
    log_error_to_file(error.hint.empty() ? text : text + " (" + error.hint + ")");
    text = "Error: " + text + "\n";
    if (!error.hint.empty()) text += "  " + error.hint + "\n";
    (void)write_all(2, text);
    return 1;
}

int usage_error(const host::Error& error, const CommandInfo* command) {
    report(error);
    (void)write_all(2, usage(command));
    return 1;
}

int run(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto line = parse_command_line(arguments);
    if (!line) return usage_error(line.error(), nullptr);
    if (line->has("version")) {
        (void)write_all(1, fmt::format("{} version {} (commit: {})\n", kProgram, kVersion, "unknown"));
        return 0;
    }
    if (line->command == nullptr || line->has("help") || line->command->name == "help") {
        const CommandInfo* command = line->command;
        if (command != nullptr && command->name == "help") {
            const auto found =
                line->positional.empty()
                    ? all_commands().end()
                    : std::ranges::find(all_commands(), std::string_view(line->positional[0]), &CommandInfo::name);
            if (found == all_commands().end() && !line->positional.empty())
                return usage_error(
                    host::Error(ErrorCode::InvalidArgument, "unknown help topic " + printable(line->positional[0])),
                    nullptr);
            command = found == all_commands().end() ? nullptr : &*found;
        }
        (void)write_all(1, usage(command));
        return 0;
    }
    if (line->command->group == CommandGroup::Hidden) return hidden(*line);
    if (auto configured = configure_log(*line); !configured) return usage_error(configured.error(), line->command);
    std::signal(SIGPIPE, SIG_IGN);
    const Settings settings = make_settings(TALPA_REMOTEPROC_ROOT, line->value("root"));
    if (line->command->group == CommandGroup::Ignored) {  // its flags are not known here, so the id is what comes last
        const auto known =
            line->positional.empty() ? Result<Container>() : Container::load(settings, line->positional.back());
        return known ? 0 : report(known.error());
    }
    const Result<int> code = run_command(settings, *line);
    return code ? *code : report(code.error());
}

}  // namespace
}  // namespace talpa::remoteproc

int main(int argc, char** argv) {
    std::signal(SIGCHLD, SIG_DFL);  // ignored by whoever started this, no child's status could be had
    return talpa::remoteproc::run(argc, argv);
}
