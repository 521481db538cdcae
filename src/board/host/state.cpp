#include "board/host/state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/program.h"
#include "link/crc32.h"

namespace talpa::board {

namespace fs = std::filesystem;

std::string name_for_root(const fs::path& root) {
    std::error_code error;
    const std::string path = fs::weakly_canonical(root, error).string();
    return fmt::format("root-{:08x}", link::crc32({reinterpret_cast<const std::uint8_t*>(path.data()), path.size()}));
}

fs::path temporary_folder() {
    return fmt::format("/tmp/talpa-{}", ::geteuid());
}

namespace {
/// Did somebody else make it, or may they write in it? What lies there cannot be believed then.
bool is_foreign(const fs::path& folder) {
    struct stat st{};
    if (::lstat(folder.c_str(), &st) != 0) return false;
    return !S_ISDIR(st.st_mode) || st.st_uid != ::geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}
}  // namespace

host::Result<fs::path> own_temporary_folder() {
    const fs::path folder = temporary_folder();
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
        return host::failure(ErrorCode::AccessFailed, "cannot create {}: {}", folder.string(), std::strerror(errno));
    if (is_foreign(folder))
        return std::unexpected(host::Error(
            ErrorCode::AccessFailed, fmt::format("{} is not a folder of yours alone", folder.string()),
            "somebody else may have made it: remove it, or set HOME, or XDG_RUNTIME_DIR and XDG_CACHE_HOME"));
    return folder;
}

fs::path boards_folder() {
    if (const char* set = std::getenv("TALPA_BOARDS"); set != nullptr && *set != '\0') return set;
    if (::geteuid() == 0) return "/run/talpa/boards";
    if (const char* run = std::getenv("XDG_RUNTIME_DIR"); run != nullptr && *run != '\0')
        return fs::path(run) / "talpa/boards";
    const fs::path folder = temporary_folder();
    // Below what is no folder nothing is found.
    return is_foreign(folder) ? fs::path("/dev/null/boards") : folder / "boards";
}

namespace {

/// Does a process hold the lock?
bool locked(const fs::path& file) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    ::close(fd);
    return held;
}

void unmount(const fs::path& at) {
    while (::umount2(at.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
    }
    if (errno != EPERM) return;
    const auto child =
        host::start_program({.arguments = {"fusermount3", "-u", "-z", "-q", at.string()}, .in = host::kOurs});
    if (child) (void)host::wait_for_end(*child);
}

/// Control groups that engines make at the top of each hierarchy.
constexpr const char* kEngineGroups[] = {"libpod_parent", "docker", "k8s.io"};

/// Control groups that engines on the board made: they are empty when the board is dead.
void remove_groups(const fs::path& folder) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.is_directory(error) && !entry.is_symlink(error)) remove_groups(entry.path());
    ::rmdir(folder.c_str());
}

}  // namespace

BoardRecord look_up(const std::string& name) {
    BoardRecord record;
    record.name = name;
    record.folder = boards_folder() / name;
    record.alive = locked(record.lock_file());
    if (const auto text = host::read_text(record.record_file(), 1 << 20)) {
        const host::Json json = host::Json::parse(*text, nullptr, false);
        if (json.is_object()) {
            // It may have been claimed, and its record written, between the two looks.
            if (!record.alive) record.alive = locked(record.lock_file());
            record.root = json.value("root", std::string());
            record.disk = json.value("disk", std::string());
            record.pid = json.value("pid", 0);
            record.ssh_port = json.value("ssh_port", 0);
            record.ssh = json.value("ssh", false);
            record.up = json.value("up", true);
            record.death = json.value("death", std::string());
            for (const auto& folder : json.value("made", host::Json::array()))
                if (folder.is_string()) record.made.emplace_back(folder.get<std::string>());
            for (const auto& port : json.value("published", host::Json::array()))
                if (port.is_object())
                    record.published.push_back(
                        {port.value("outside", std::uint16_t{0}), port.value("inside", std::uint16_t{0})});
        }
    }
    return record;
}

std::vector<BoardRecord> all_boards() {
    std::vector<BoardRecord> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(boards_folder(), error))
        if (entry.is_directory(error)) out.push_back(look_up(entry.path().filename()));
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return out;
}

host::Result<void> save(const BoardRecord& record) {
    host::Json published = host::Json::array();
    for (const PublishedPort& port : record.published)
        published.push_back({{"outside", port.outside}, {"inside", port.inside}});
    host::Json made = host::Json::array();
    for (const fs::path& folder : record.made) made.push_back(folder.string());
    const host::Json json{{"name", record.name},
                          {"root", record.root.string()},
                          {"disk", record.disk.string()},
                          {"made", std::move(made)},
                          {"pid", record.pid},
                          {"up", record.up},
                          {"death", record.death},
                          {"ssh", record.ssh},
                          {"ssh_port", record.ssh_port},
                          {"published", std::move(published)}};
    TRY(host::write_text(record.record_file(), json.dump(2) + "\n"));
    return host::write_text(record.folder / "pid", fmt::format("{}\n", record.pid));
}

namespace {
/// Has a board put it into its /dev?
bool is_board_device(std::string_view name) {
    if (name == "ethosu0" || name.starts_with("ttyRPMSG")) return true;
    return name.starts_with("mem") && name.find_first_not_of("0123456789", 3) == std::string_view::npos;
}
}  // namespace

std::error_code make_folders(const fs::path& folder, std::vector<fs::path>& made) {
    std::error_code error;
    std::vector<fs::path> missing;
    for (fs::path at = folder; !at.empty() && !fs::exists(fs::symlink_status(at, error)); at = at.parent_path())
        missing.push_back(at);
    error.clear();
    for (auto at = missing.rbegin(); at != missing.rend(); ++at) {
        if (fs::create_directory(*at, error)) made.push_back(*at);
        if (error) return error;
    }
    if (!error && !fs::is_directory(folder, error) && !error) error = std::make_error_code(std::errc::not_a_directory);
    return error;
}

void remove_made(const std::vector<fs::path>& made) {
    for (auto folder = made.rbegin(); folder != made.rend(); ++folder) ::rmdir(folder->c_str());
}

host::Result<void> clean_up(const BoardRecord& record) {
    std::error_code error;
    if (!record.root.empty()) {
        unmount(record.root / "sys");
        for (const auto& entry : fs::directory_iterator(record.root / "dev", error)) {
            const std::string name = entry.path().filename();
            if (is_board_device(name)) fs::remove(entry.path(), error);
        }
        const fs::path tree = record.root / "proc/device-tree";
        if (fs::read_symlink(tree, error) == kDeviceTreeLink) ::unlink(tree.c_str());
    }
    if (!record.disk.empty()) {
        for (const auto& hierarchy : fs::directory_iterator("/sys/fs/cgroup", error))
            for (const char* engine : kEngineGroups) remove_groups(hierarchy.path() / engine);
        fs::remove_all(record.disk, error);
        if (error)
            return host::failure(ErrorCode::AccessFailed, "cannot remove {}: {}", record.disk.string(),
                                 error.message());
    }
    remove_made(record.made);
    // The lock goes last: until then the board counts as there. (Somebody may claim the name again at once.)
    for (const auto& entry : fs::directory_iterator(record.folder, error))
        if (entry.path() != record.lock_file()) fs::remove_all(entry.path(), error);
    ::unlink(record.lock_file().c_str());
    if (::rmdir(record.folder.c_str()) != 0 && errno != ENOENT && errno != ENOTEMPTY)
        return host::failure(ErrorCode::AccessFailed, "cannot remove {}: {}", record.folder.string(),
                             std::strerror(errno));
    return {};
}

}  // namespace talpa::board
