#include "remoteproc/oci/info.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "remoteproc/oci/container.h"
#include "remoteproc/oci/log.h"
#include "remoteproc/oci/operations.h"
#include "remoteproc/oci/process_table.h"
#include "remoteproc/sys/path_guard.h"
#include "remoteproc/sysfs/control.h"

namespace talpa::remoteproc {
namespace {

Result<void> print(std::string_view text) {
    if (const auto written = write_all(1, text); !written)
        return os_failure("write", "standard output", written.error());
    return {};
}

std::string event_json(std::string_view id, std::string_view line) {
    std::uint64_t when = 0;
    const auto [after, error] = std::from_chars(line.data(), line.data() + line.size(), when);
    if (error != std::errc{} || after == line.data() + line.size()) return {};
    std::string_view rest(after + 1, line.data() + line.size());
    const std::size_t space = rest.find(' ');
    const std::string_view detail = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
    return fmt::format("{{\"type\":{},\"id\":{},\"time\":\"{}\",\"data\":{}}}\n", json_quoted(rest.substr(0, space)),
                       json_quoted(id), rfc3339(when), json_quoted(detail));
}

// Hands over what a file holds and, while the container lives, what is added to it.
template <typename Take>
Result<void> follow_file(const Container& container, const std::string& path, bool follow, Take&& take) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file) return os_failure("open", path, errno);
    const Fd notify(follow ? ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1);
    const bool told = notify && ::inotify_add_watch(notify.get(), path.c_str(), IN_MODIFY) >= 0;
    const auto process = follow ? container.process() : std::nullopt;
    off_t at = 0;
    for (;;) {
        const bool last = !process || !process->alive();
        char buffer[4096];
        ssize_t n;
        struct stat info;
        if (::fstat(file.get(), &info) == 0 && info.st_size < at) at = 0;  // it was cut short
        while ((n = ::pread(file.get(), buffer, sizeof buffer, at)) > 0) {
            TRY(take(std::string_view(buffer, static_cast<std::size_t>(n))));
            at += n;
        }
        if (last) return {};
        pollfd waits[2] = {{notify.get(), POLLIN, 0}, {process->pidfd(), POLLIN, 0}};
        ::poll(waits, 2, told && process->pidfd() >= 0 ? -1 : 100);
        (void)!::read(notify.get(), buffer, sizeof buffer);  // what was told: the file says it better
    }
}

// Columns as those of runc's `list`: at least 12 wide, three spaces between.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
    std::string out;
    for (const auto& row : rows) {
        for (std::size_t column = 0; column < row.size(); ++column) {
            std::size_t width = 9;
            for (const auto& other : rows) width = std::max(width, other[column].size());
            out += column + 1 == row.size() ? row[column] : fmt::format("{:<{}}", row[column], width + 3);
        }
        out += "\n";
    }
    return out;
}

// "root", or "#1000": names of other users are not looked up, the program is static.
std::string owner_name(const std::string& folder) {
    struct stat info;
    if (::stat(folder.c_str(), &info) != 0) return "";
    return info.st_uid == 0 ? "root" : fmt::format("#{}", info.st_uid);
}

}  // namespace

std::string features_json(const std::string& version) {
    std::string hooks, known;
    for (const auto key : kHookKeys) hooks += fmt::format("{}\"{}\"", hooks.empty() ? "" : ",", key);
    for (const auto& info : known_annotations())
        known +=
            fmt::format("{}\n      {}: {}", known.empty() ? "" : ",", json_quoted(info.key), json_quoted(info.values));
    return fmt::format(
        "{{\n  \"ociVersionMin\": \"1.0.0\",\n  \"ociVersionMax\": \"{}\",\n  \"hooks\": [{}],\n  \"mountOptions\": "
        "[],\n"
        "  \"linux\": {{\n    \"namespaces\": "
        "[\"cgroup\",\"ipc\",\"mount\",\"network\",\"pid\",\"time\",\"user\",\"uts\"],\n"
        "    \"capabilities\": [],\n    \"cgroup\": {{\"v1\": false, \"v2\": false, \"systemd\": false}},\n"
        "    \"seccomp\": {{\"enabled\": false}}\n  }},\n"
        "  \"annotations\": {{\n    \"remoteproc.version\": {},\n    \"remoteproc.annotations\": {}\n  }},\n"
        "  \"remoteproc\": {{\n    \"annotations\": {{{}\n    }}\n  }}\n}}\n",
        kOciVersion, hooks, json_quoted(version), json_quoted("see remoteproc.annotations below"), known);
}

Result<std::string> list(const Settings& settings, ListForm form) {
    std::string out;
    std::vector<std::vector<std::string>> rows{{"ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER", "CORE"}};
    for (const std::string& id : container_ids(settings)) {
        const auto container = Container::load(settings, id);
        if (!container) continue;
        const StateFile state = container->current_state();
        if (form == ListForm::Ids) {
            out += id + "\n";
            continue;
        }
        const std::string core = container->sandbox() ? "-" : printable(container->named_device().name);
        const std::string created = rfc3339(container->details ? container->details->created_ns : 0);
        const std::string owner = owner_name(container->folder);
        const pid_t pid = state.status == "stopped" ? 0 : state.pid;
        switch (form) {
            case ListForm::Ids:
                break;
            case ListForm::Table:
                rows.push_back({id, std::to_string(pid), state.status, printable(state.bundle), created, owner, core});
                break;
            case ListForm::Json:
                out += fmt::format(
                    "{}{{\"ociVersion\":\"{}\",\"id\":\"{}\",\"pid\":{},\"status\":\"{}\",\"bundle\":{},"
                    "\"rootfs\":{},\"created\":\"{}\",\"owner\":{},\"core\":{}}}",
                    out.empty() ? "" : ",", kOciVersion, id, pid, state.status, json_quoted(state.bundle),
                    json_quoted(container->details ? container->details->root_folder : ""), created, json_quoted(owner),
                    json_quoted(core));
                break;
        }
    }
    if (form == ListForm::Table) out = aligned(rows);
    if (form == ListForm::Json) out = "[" + out + "]\n";
    return out;
}

Result<std::string> ps(const Settings& settings, const std::string& id, ListForm form) {
    TRY_ASSIGN(const Container container, Container::load(settings, id));
    const auto process = container.process();
    if (form == ListForm::Json) return process ? fmt::format("[{}]\n", process->pid()) : std::string("null\n");
    return std::string(kPsHeader) + (process ? ps_line(process->pid()) : "");
}

Result<std::string> stats(const Settings& settings, const std::string& id) {
    TRY_ASSIGN(const Container container, Container::load(settings, id));
    const auto process = container.process();
    if (!process) return host::failure(ErrorCode::InvalidState, "container {} is not running", id);
    const ProcessUse use = use_of(process->pid());
    return fmt::format(
        "{{\"type\":\"stats\",\"id\":{},\"data\":{{\"cpu\":{{\"usage\":{{\"total\":{}}}}},"
        "\"memory\":{{\"usage\":{{\"usage\":{}}}}},\"pids\":{{\"current\":1}}}}}}\n",
        json_quoted(id), use.cpu_ns, use.memory_bytes);
}

Result<void> follow_events(const Settings& settings, const std::string& id) {
    TRY_ASSIGN(const Container container, Container::load(settings, id));
    std::string rest;
    return follow_file(container, container.file(kEventsFileName), true, [&](std::string_view more) -> Result<void> {
        rest += more;
        for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
            TRY(print(event_json(id, std::string_view(rest).substr(0, end))));
        return {};
    });
}

Result<void> print_log(const Settings& settings, const std::string& id, bool follow) {
    TRY_ASSIGN(const Container container, Container::load(settings, id));
    return follow_file(container, container.file(kLogFileName), follow, print);
}

Result<void> write_spec(const std::string& bundle, const std::string& name, const std::string& firmware) {
    const std::string path = absolute_path(bundle) + "/config.json";
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) return os_failure("open", path, errno);
    const std::string text = fmt::format(
        "{{\n  \"ociVersion\": \"{}\",\n  \"process\": {{\"args\": [{}], \"cwd\": \"/\"}},\n  \"root\": {{\"path\": "
        "\"rootfs\"}},\n  \"annotations\": {{\"remoteproc.name\": {}}},\n  \"linux\": {{\"namespaces\": []}}\n}}\n",
        kOciVersion, json_quoted(firmware), json_quoted(name));
    if (const auto written = write_all(fd.get(), text); !written) return os_failure("write", path, written.error());
    return {};
}

Result<std::string> collect_garbage(const Settings& settings) {
    std::string done;
    for (const std::string& line : sweep_forgotten(settings)) done += line + "\n";
    for (const std::string& id : container_ids(settings)) {
        auto lock = FileLock::take(settings.state_folder(id) + "/" + std::string(kLockFileName), 0);
        auto container = Container::load(settings, id);
        if (!lock || !container || !container->details) continue;
        const bool half_made = container->state.status == "creating" && container->status() == Status::Stopped;
        const bool lost = container->damaged && container->status() == Status::Stopped;
        if (!half_made && !lost && !container->details->deleting) continue;
        TRY(destroy(settings, *container, 500));
        done += fmt::format("removed container {}, which was {}\n", id, lost ? "damaged" : "half made or half deleted");
    }
    const CoreOwners owners = settings.owners();
    TRY_ASSIGN(const auto devices, list_devices(settings.paths));
    for (const Device& device : devices) {
        TRY_ASSIGN(const FileLock lock, owners.lock(device, 2000));
        const auto owner = owners.read(device);
        if (!owner) continue;
        if (owner->alive()) {
            if (::access(owner->state_folder.c_str(), F_OK) == 0 || errno != ENOENT) continue;
            (void)end_orphan(*owner);
            done += fmt::format("ended process {} of container {}, whose folder {} is gone\n", owner->pid, owner->id,
                                owner->state_folder);
        }
        TRY_ASSIGN(const CoreState state, read_state(device));
        if (state != CoreState::Offline) {
            TRY(bring_offline(device, firmware_folder(settings.paths), ""));
            done += fmt::format("stopped {}, whose container {} is gone\n", printable(device.name), owner->id);
        }
        owners.clear(device, *owner);
    }
    sweep_firmware(settings);
    return done;
}

Result<int> run_to_end(const Settings& settings, const std::string& id) {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    ::sigprocmask(SIG_BLOCK, &stops, nullptr);
    const Fd asked(::signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK));
    if (auto started = start(settings, id); !started) {
        (void)remove(settings, id, Force::Yes);
        return std::unexpected(std::move(started.error()));
    }
    TRY_ASSIGN(const Container container, Container::load(settings, id));
    const auto process = container.process();
    while (process && process->alive()) {
        pollfd waits[2] = {{asked.get(), POLLIN, 0}, {process->pidfd(), POLLIN, 0}};
        ::poll(waits, 2, process->pidfd() >= 0 ? -1 : 50);
        signalfd_siginfo info;
        if (::read(asked.get(), &info, sizeof info) > 0) (void)kill(settings, id, "TERM");
    }
    const int code = container.exit_code();
    TRY(remove(settings, id, Force::No));
    return code;
}

}  // namespace talpa::remoteproc
