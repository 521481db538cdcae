#include "remoteproc/oci/container.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/host/sha256.h"
#include "remoteproc/oci/log.h"
#include "remoteproc/sys/files.h"
#include "remoteproc/sys/path_guard.h"
#include "remoteproc/sysfs/control.h"

namespace talpa::remoteproc {
namespace {

constexpr std::size_t kStateLimit = 4 << 20, kEventsLimit = 1 << 20;
constexpr int kDestroyLockMs = 2000;

// The folder decides which process is killed and which file removed: nobody else may write to it.
Result<void> check_folder(const std::string& folder) {
    struct stat info;
    if (::lstat(folder.c_str(), &info) != 0) return {};  // the read that follows says it better
    if (!S_ISDIR(info.st_mode)) return host::failure(ErrorCode::InvalidState, "{} is not a folder", folder);
    if (info.st_uid != ::geteuid() || (info.st_mode & 0022) != 0)
        return host::failure(
            ErrorCode::InvalidState,
            "{} is owned by user {} with mode {:04o}: not trusted, it must be ours and writable by nobody "
            "else",
            folder, info.st_uid, info.st_mode & 07777);
    return {};
}

std::vector<std::string> entries(const std::string& folder) {
    std::vector<std::string> out;
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    if (!dir) return out;
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") out.emplace_back(name);
    }
    std::ranges::sort(out);
    return out;
}

}  // namespace

std::string_view status_word(Status status) {
    switch (status) {
        case Status::Creating:
            return "creating";
        case Status::Created:
            return "created";
        case Status::Running:
            return "running";
        case Status::Stopped:
            return "stopped";
    }
    return "stopped";
}

Result<Container> Container::load(const Settings& settings, const std::string& id) {
    TRY(check_id(id));
    const std::string folder = settings.state_folder(id);
    if (is_elsewhere(settings, folder))
        return host::failure(ErrorCode::NotFound, "failed to read state: {} in namespace {}: container does not exist",
                             id, settings.namespace_name);
    return load_folder(settings, folder, id);
}

Result<Container> Container::load_folder(const Settings& settings, const std::string& folder, const std::string& id) {
    Container c;
    c.folder = folder;
    if (auto checked = check_folder(c.folder); !checked)
        return std::unexpected(std::move(checked.error()).with_context("failed to read state"));
    if (const auto more = read_small_file(c.file(kDetailsFileName), kStateLimit))
        if (auto details = parse_details(*more)) c.details = std::move(*details);
    const std::string path = c.file(kStateFileName);
    auto text = read_small_file(path, kStateLimit);
    if (!text) {
        if (c.salvage(settings, id)) return c;
        const bool absent = text.error().code == ErrorCode::NotFound;
        host::Error error = std::move(text.error()).with_context("failed to open file " + path);
        if (absent) error.message += ": container does not exist";  // what callers of the runc kind look for
        return std::unexpected(std::move(error).with_context("failed to read state"));
    }
    auto state = parse_state_file(*text);
    if (!state && c.salvage(settings, id)) return c;
    if (!state) return std::unexpected(std::move(state.error()).with_context("failed to read state: " + path));
    c.state = std::move(*state);
    c.state.id = id;
    if (!c.sandbox())
        for (const auto key : {kDriverPathKey, kFirmwarePathKey}) {
            if (!c.state.annotation(key).empty()) continue;
            if (c.salvage(settings, id)) return c;
            return host::failure(ErrorCode::InvalidProgram, "failed to read state: missing {} in annotations", key);
        }
    return c;
}

bool Container::salvage(const Settings& settings, const std::string& id) {
    const auto record = settings.owners().find(folder);
    if (!details && record) {
        Details& known = details.emplace();
        known.boot = record->owner.boot;
        known.pid = record->owner.pid;
        known.start_time = record->owner.start_time;
        known.device = settings.paths.device_class() + "/" + record->node;
    }
    if (!details || details->pid == 0) return false;
    damaged = true;
    state = {id, "created", details->pid, details->bundle, {}};
    if (!sandbox()) {
        state.annotations[std::string(kDriverPathKey)] = details->device;
        state.annotations[std::string(kFirmwarePathKey)] = details->firmware_path;
        if (record) state.annotations[std::string(kStoredPathKey)] = record->owner.firmware;
    }
    log(LogLevel::Warn, "state.json is lost or damaged, going by what else is known", {{"id", id}});
    return true;
}

std::optional<PinnedProcess> Container::process() const {
    if (details) {
        if (details->boot != boot_id()) return std::nullopt;
        return PinnedProcess::pin(state.pid, details->start_time);
    }
    // A state of the original: the number alone, so the process must at least look like its proxy.
    auto process = PinnedProcess::pin(state.pid, 0);
    if (!process) return std::nullopt;
    const std::string arguments = process_arguments(state.pid);
    const std::string wanted = std::string("proxy\0--device-path\0", 20) + state.annotation(kDriverPathKey);
    if (arguments.find(wanted) == std::string::npos) return std::nullopt;
    return process;
}

ProxyRecord Container::record() const {
    return parse_proxy_record(read_small_file(file(kEventsFileName), kEventsLimit).value_or(""));
}

Status Container::status() const {
    if (state.status == "creating") return process() ? Status::Creating : Status::Stopped;
    if (!process()) return Status::Stopped;
    if (state.status == "running" || record().started) return Status::Running;
    return Status::Created;
}

int Container::exit_code() const {
    const ProxyRecord r = record();
    return r.exit_code.value_or(details ? kExitKilled : kExitLost);
}

std::uint64_t Container::exit_ns() const {
    const ProxyRecord r = record();
    return r.exit_ns != 0 ? r.exit_ns : r.last_ns;
}

Device Container::device() const {
    Device device;
    device.folder = state.annotation(kDriverPathKey);
    return device;
}

Device Container::named_device() const {
    Device named = device();
    named.name = read_attribute(named, "name").value_or("");
    return named;
}

StateFile Container::current_state() const {
    StateFile now = state;
    now.status = status_word(status());
    return now;
}

Result<void> Container::save_state() const {
    return host::with_context(replace_file(file(kStateFileName), state_json(state, 2), 0644), "failed to write state");
}

Result<void> Container::save_details() const {
    if (!details) return {};
    return host::with_context(replace_file(file(kDetailsFileName), details_json(*details), 0600),
                              "failed to write state");
}

Result<void> stop_owned_core(const Settings& settings, const Container& container, int lock_timeout_ms) {
    if (container.sandbox()) return {};
    const Device device = container.device();
    const CoreOwners owners = settings.owners();
    // A start of this very container may hold the lock while the kernel boots; then the stop goes ahead without it, as
    // the record below says whose the core is.
    const auto lock = owners.lock(device, lock_timeout_ms);
    const auto owner = owners.read(device);
    // A start by the original leaves no record: its stored firmware in `firmware` stands for it.
    const std::string stored = container.state.annotation(kStoredPathKey);
    const bool this_boot = !container.details || container.details->boot == boot_id();
    const bool by_firmware = !owner && this_boot && !stored.empty() &&
                             read_attribute(device, "firmware").value_or("") == stored.substr(stored.rfind('/') + 1);
    const bool ours = owner ? owner->state_folder == container.folder : by_firmware;
    if (!ours) return {};
    const ProxyRecord record = container.details ? container.record() : ProxyRecord{};
    Result<void> result;
    // One that stopped on request saw the core offline and wrote it down: what runs there by now is somebody else's.
    if (!record.started || record.exit_code != kExitStopped) {
        const auto state = read_state(device);
        if (!state) {
            result = std::unexpected(state.error());
        } else if (*state == CoreState::Crashed) {
            result = recover_and_stop(device, firmware_folder(settings.paths), "");
        } else if (*state == CoreState::Offline && container.details && !record.exit_code) {
            // Whose process was killed may have had it in the middle of its boot.
            result = stop_booting_core(device);
        } else if (is_live(*state)) {
            result = stop_core(device);
        }
    }
    // The device is gone, maybe this very moment: nothing runs any more.
    if (!result && result.error().code != ErrorCode::NotFound) return result;
    if (container.details && !container.details->recovery_before.empty())
        (void)write_attribute(device, "recovery", container.details->recovery_before);
    if (owner) owners.clear(device, *owner);
    return {};
}

Result<void> destroy(const Settings& settings, Container& container, int grace_ms) {
    Result<void> first;
    const auto note = [&](Result<void> result) {
        if (!result && first) first = std::move(result);
    };
    if (container.details && !container.details->deleting) {
        container.details->deleting = true;  // a delete that is killed from here on is finished by the next create
        (void)container.save_details();
    }
    if (auto process = container.process()) {
        process->signal(SIGTERM);
        if (!process->wait_exit(grace_ms)) {
            note(stop_owned_core(settings, container, 200));
            process->signal(SIGKILL);
            (void)process->wait_exit(2000);
        }
    }
    note(stop_owned_core(settings, container, kDestroyLockMs));
    const std::string stored = container.state.annotation(kStoredPathKey);
    const FirmwareIndex index = settings.index();
    std::string holder;  // of the copy, by the index
    index.for_each([&](const std::string& path, const std::string& of) {
        if (path == stored) holder = of;
    });
    if (!holder.empty() && holder != container.folder) {
        // Adopted: another container's core runs from it.
    } else if (!stored.empty()) {
        // The path stands in a file: only a copy that the index knows, or that is unmistakably one, is removed.
        if (!holder.empty() || is_stored_name(clean_path(stored), firmware_folder(settings.paths),
                                              container.state.annotation(kFirmwarePathKey)))
            note(remove_firmware(stored, index));
        else if (::access(stored.c_str(), F_OK) == 0)
            log(LogLevel::Warn, "not removing a file that is not known as a copy of this runtime", {{"path", stored}});
    }
    // A copy whose path did not reach the state before a kill.
    index.for_each([&](const std::string& path, const std::string& owner) {
        if (owner == container.folder) note(remove_firmware(path, index));
    });
    if (first) remove_remnants(container.folder);
    return first;
}

std::optional<pid_t> end_orphan(const Owner& owner) {
    const auto process = PinnedProcess::pin(owner.pid, owner.start_time);
    if (!process) return std::nullopt;
    process->signal(SIGTERM);
    if (!process->wait_exit(1000)) {
        process->signal(SIGKILL);
        (void)process->wait_exit(2000);
    }
    return owner.pid;
}

void remove_remnants(const std::string& folder) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);  // follows no link
}

bool is_elsewhere(const Settings& settings, const std::string& folder) {
    if (settings.namespace_name.empty()) return false;
    const auto text = read_small_file(folder + "/" + std::string(kDetailsFileName), kStateLimit);
    const auto details = text ? parse_details(*text) : Result<Details>();
    return text && details && details->namespace_name && *details->namespace_name != settings.namespace_name;
}

namespace {

// Why nobody will ask for it again, or nothing.
std::string_view forgotten(const Container& container) {
    if (!container.details || boot_id().empty()) return {};
    if (container.details->boot != boot_id()) return "of before the machine's restart";
    const std::string& bundle = container.state.bundle;
    const bool gone = bundle.starts_with('/') && ::access(bundle.c_str(), F_OK) != 0 && errno == ENOENT;
    return gone && container.status() == Status::Stopped ? "whose bundle is gone" : "";
}

}  // namespace

std::vector<std::string> sweep_forgotten(const Settings& settings) {
    std::vector<std::string> swept;
    for (const std::string& id : container_ids(settings)) {
        const std::string folder = settings.plain_folder(id);
        const auto before = Container::load_folder(settings, folder, id);
        if (!before || forgotten(*before).empty()) continue;
        const auto lock = FileLock::take(folder + "/" + std::string(kLockFileName), 0);
        auto container = Container::load_folder(settings, folder, id);  // once more, now that nobody else is at it
        if (!lock || !container || forgotten(*container).empty()) continue;
        const std::string_view why = forgotten(*container);
        if (const auto gone = destroy(settings, *container, 0); gone)
            swept.push_back(fmt::format("removed container {} {}", id, why));
        else
            log(LogLevel::Warn, error_line(gone.error()), {{"id", id}});
    }
    return swept;
}

void sweep_now_and_then(const Settings& settings) {
    constexpr std::time_t kEverySeconds = 60;
    const std::string stamp = settings.run_folder + "/swept-" + host::sha256_hex(settings.state_root).substr(0, 16);
    struct stat info;
    const std::time_t now = std::time(nullptr);
    const bool lately =
        ::stat(stamp.c_str(), &info) == 0 && info.st_mtime <= now && now - info.st_mtime < kEverySeconds;
    if (lately && read_small_file(stamp, 64).value_or("") == boot_id()) return;
    for (const std::string& line : sweep_forgotten(settings)) log(LogLevel::Info, line);
    if (make_folders(settings.run_folder)) (void)replace_file(stamp, boot_id(), 0600);
}

void sweep_firmware(const Settings& settings) {
    const FirmwareIndex index = settings.index();
    std::vector<std::string> gone;
    index.for_each([&](const std::string& path, const std::string& owner) {
        if (::access(owner.c_str(), F_OK) != 0 && errno == ENOENT) gone.push_back(path);
    });
    if (gone.empty()) return;
    std::vector<std::string> loaded;  // by cores that still run: recovery would load the file again
    if (const auto devices = list_devices(settings.paths))
        for (const Device& device : *devices)
            if (read_state(device).value_or(CoreState::Offline) != CoreState::Offline)
                loaded.push_back(read_attribute(device, "firmware").value_or(""));
    for (const std::string& path : gone) {
        if (std::ranges::find(loaded, path.substr(path.rfind('/') + 1)) != loaded.end()) continue;
        if (remove_firmware(path, index))
            log(LogLevel::Info, "removed a firmware copy without container", {{"path", path}});
    }
}

std::vector<std::string> container_ids(const Settings& settings) {
    std::vector<std::string> ids;
    for (auto& name : entries(settings.state_root))
        if (check_id(name) && std::ranges::any_of(std::array{kStateFileName, kDetailsFileName}, [&](auto file) {
                return ::access((settings.state_folder(name) + "/" + std::string(file)).c_str(), F_OK) == 0;
            }))
            ids.push_back(std::move(name));
    return ids;
}

}  // namespace talpa::remoteproc
