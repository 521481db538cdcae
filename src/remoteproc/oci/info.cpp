#include "remoteproc/oci/info.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "remoteproc/oci/container.h"
#include "remoteproc/oci/log.h"
#include "remoteproc/oci/operations.h"
#include "remoteproc/sys/path_guard.h"
#include "remoteproc/sysfs/control.h"

namespace talpa::remoteproc {
namespace {

void print(std::string_view text) {
    (void)write_all(1, text);
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
    off_t at = 0;
    for (;;) {
        const bool last = !follow || !container.process();
        char buffer[4096];
        ssize_t n;
        struct stat info;
        if (::fstat(file.get(), &info) == 0 && info.st_size < at) at = 0;  // it was cut short
        while ((n = ::pread(file.get(), buffer, sizeof buffer, at)) > 0) {
            take(std::string_view(buffer, static_cast<std::size_t>(n)));
            at += n;
        }
        if (last) return {};
        ::poll(nullptr, 0, 100);
    }
}

struct ProcessUse {
    std::uint64_t cpu_ns = 0, memory_bytes = 0;
};

ProcessUse use_of(pid_t pid) {
    ProcessUse use;
    const long tick = ::sysconf(_SC_CLK_TCK), page = ::sysconf(_SC_PAGESIZE);
    const auto read_numbers = [](const std::string& path, std::size_t skip_after) {
        std::vector<std::uint64_t> numbers;
        const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        const std::string text = fd ? read_fd(fd.get(), 4096).value_or("") : "";
        std::size_t at = skip_after != 0 ? text.rfind(')') : 0;
        while (at != std::string::npos && at < text.size()) {
            std::uint64_t value = 0;
            const std::size_t begin = text.find_first_not_of(' ', at == 0 ? 0 : at + 1);
            if (begin == std::string::npos) break;
            std::from_chars(text.data() + begin, text.data() + text.size(), value);
            numbers.push_back(value);
            at = text.find(' ', begin);
        }
        return numbers;
    };
    const auto stat = read_numbers(fmt::format("/proc/{}/stat", pid), 1);  // [0] is the state letter, field 3
    if (stat.size() > 12) use.cpu_ns = (stat[11] + stat[12]) * (1'000'000'000u / static_cast<std::uint64_t>(tick));
    const auto memory = read_numbers(fmt::format("/proc/{}/statm", pid), 0);
    if (memory.size() > 1) use.memory_bytes = memory[1] * static_cast<std::uint64_t>(page);
    return use;
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
    if (form == ListForm::Table)
        out = fmt::format("{:<24} {:<8} {:<9} {:<14} {}\n", "ID", "PID", "STATUS", "CORE", "BUNDLE");
    for (const std::string& id : container_ids(settings)) {
        const auto container = Container::load(settings, id);
        if (!container) continue;
        const StateFile state = container->current_state();
        const std::string core = container->sandbox() ? "-" : printable(container->named_device().name);
        switch (form) {
            case ListForm::Ids:
                out += id + "\n";
                break;
            case ListForm::Table:
                out += fmt::format("{:<24} {:<8} {:<9} {:<14} {}\n", id, state.status == "stopped" ? 0 : state.pid,
                                   state.status, core, printable(state.bundle));
                break;
            case ListForm::Json:
                out += fmt::format(
                    "{}{{\"ociVersion\":\"{}\",\"id\":\"{}\",\"pid\":{},\"status\":\"{}\",\"bundle\":{},"
                    "\"created\":\"{}\",\"core\":{}}}",
                    out.empty() ? "" : ",", kOciVersion, id, state.status == "stopped" ? 0 : state.pid, state.status,
                    json_quoted(state.bundle), rfc3339(container->details ? container->details->created_ns : 0),
                    json_quoted(core));
                break;
        }
    }
    if (form == ListForm::Json) out = "[" + out + "]\n";
    return out;
}

Result<std::string> ps(const Settings& settings, const std::string& id, ListForm form) {
    TRY_ASSIGN(const Container container, Container::load(settings, id));
    const auto process = container.process();
    if (form == ListForm::Json) return process ? fmt::format("[{}]\n", process->pid()) : std::string("null\n");
    std::string out = fmt::format("{:<8} {}\n", "PID", "CMD");
    if (process) {
        std::string arguments = process_arguments(process->pid());
        std::ranges::replace(arguments, '\0', ' ');
        out += fmt::format("{:<8} {}\n", process->pid(), printable(arguments));
    }
    return out;
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
    return follow_file(container, container.file(kEventsFileName), true, [&](std::string_view more) {
        rest += more;
        for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
            print(event_json(id, std::string_view(rest).substr(0, end)));
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
    for (const std::string& id : container_ids(settings)) {
        auto lock = FileLock::take(settings.state_folder(id) + "/" + std::string(kLockFileName), 0);
        auto container = Container::load(settings, id);
        if (!lock || !container || !container->details) continue;
        const bool half_made = container->state.status == "creating" && container->status() == Status::Stopped;
        if (!half_made && !container->details->deleting) continue;
        TRY(destroy(settings, *container, 500));
        done += fmt::format("removed container {}, which was half made or half deleted\n", id);
    }
    const CoreOwners owners = settings.owners();
    TRY_ASSIGN(const auto devices, list_devices(settings.paths));
    for (const Device& device : devices) {
        TRY_ASSIGN(const FileLock lock, owners.lock(device, 2000));
        const auto owner = owners.read(device);
        if (!owner || owner->alive()) continue;
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
    if (auto started = start(settings, id); !started) {
        (void)remove(settings, id, Force::Yes);
        return std::unexpected(std::move(started.error()));
    }
    TRY_ASSIGN(const Container container, Container::load(settings, id));
    while (container.process()) {
        const timespec wait{0, 50'000'000};
        if (::sigtimedwait(&stops, nullptr, &wait) > 0) (void)kill(settings, id, "TERM");
    }
    const int code = container.exit_code();
    TRY(remove(settings, id, Force::No));
    return code;
}

}  // namespace talpa::remoteproc
