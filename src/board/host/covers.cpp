#include "board/host/covers.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "board/host/mounts.h"

namespace talpa::board {

namespace fs = std::filesystem;

namespace {

/// Folders in which programs are installed. Those at the end are links into /usr on most machines.
constexpr const char* kOverlaid[] = {"/etc", "/opt", "/srv", "/usr", "/var", "/bin", "/lib", "/lib64", "/sbin"};
constexpr const char* kLocal = "/usr/local";  ///< may be a file system of its own, which an overlay over /usr hides
/// Where users keep what they work on.
constexpr const char* kReadOnly[] = {"/boot", "/home", "/media", "/mnt"};
/// Folders of engines that must not lie on an overlay.
constexpr const char* kRealFolders[] = {"/var/lib/containers", "/var/lib/containerd", "/var/lib/docker"};
/// The board has its own.
constexpr const char* kReplaced[] = {"/dev", "/proc", "/run", "/sys"};

bool below(const fs::path& path, const fs::path& folder) {
    const auto [end, ignored] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
    return end == folder.end();
}

template <std::size_t N>
bool below_any(const fs::path& path, const char* const (&folders)[N]) {
    return std::any_of(std::begin(folders), std::end(folders), [&](const char* f) { return below(path, f); });
}

bool is_real_folder(const fs::path& path) {
    std::error_code error;
    return fs::symlink_status(path, error).type() == fs::file_type::directory;
}

std::string name_of(const fs::path& folder) {
    std::string name = folder.string().substr(1);
    std::replace(name.begin(), name.end(), '/', '-');
    return name;
}

/// Where a home is seen as it is on the user's machine.
fs::path live_view(const fs::path& home) {
    return fs::path(kCorner) / ("live-" + name_of(home));
}

/// An overlay, on the board's disk where the kernel takes that for an upper layer, else in memory.
host::Result<void> cover(const fs::path& lower, const fs::path& at) {
    if (overlay(lower, at, fs::path(kBoardDisk) / name_of(at))) return {};
    return overlay(lower, at, fs::path(kCorner) / "upper" / name_of(at));
}

/// Outer ones first. A home that is covered or replaced with a folder around it is none.
std::vector<fs::path> homes() {
    std::vector<fs::path> out;
    const char* const set = std::getenv("HOME");
    for (const char* path : {"/root", set}) {
        if (path == nullptr || *path != '/') continue;
        std::error_code error;
        const fs::path home = fs::canonical(path, error);
        if (error || home == "/" || home == "/tmp" || ::access(home.c_str(), R_OK | X_OK) != 0) continue;
        if (!is_real_folder(home) || below_any(home, kOverlaid) || below_any(home, kReplaced)) continue;
        if (std::find(out.begin(), out.end(), home) == out.end()) out.push_back(home);
    }
    std::sort(out.begin(), out.end(),
              [](const auto& a, const auto& b) { return a.native().size() < b.native().size(); });
    return out;
}

/// What a user works on, as against what programs keep in his home.
bool is_work(const fs::path& entry) {
    return !entry.filename().native().starts_with('.') && is_real_folder(entry);
}

host::Result<void> cover_home(const fs::path& home) {
    const fs::path live = live_view(home);
    TRY(make_folder(live, 0700));
    TRY(bind_mount(home, live, true));
    TRY(make_read_only(live));
    if (!cover(home, home)) return bind_mount(live, home, true);  // of a file system that can be under no overlay
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(live, error))
        if (is_work(entry.path())) TRY(bind_mount(entry.path(), home / entry.path().filename(), true));
    return {};
}

void forget_old_names(const fs::path& folder) {
    struct statfs st{};
    if (::statfs(folder.c_str(), &st) == 0 && st.f_type == OVERLAYFS_SUPER_MAGIC)
        ::mount(nullptr, folder.c_str(), nullptr, MS_REMOUNT, nullptr);
}

bool same_folder(const fs::path& a, const fs::path& b) {
    struct stat one{}, other{};
    return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

}  // namespace

bool is_mount_point(const fs::path& path) {
    struct stat here{}, above{};
    return ::lstat(path.c_str(), &here) == 0 && ::lstat(path.parent_path().c_str(), &above) == 0 &&
           here.st_dev != above.st_dev;
}

bool is_hidden(const fs::path& path) {
    return below_any(path, kOverlaid) || below_any(path, kReplaced);
}

host::Result<void> check_shared(const fs::path& folder) {
    const auto refuse = [&](const char* because) {
        return std::unexpected(host::Error(ErrorCode::InvalidArgument,
                                           fmt::format("--share {}: {}", folder.string(), because),
                                           "share the folder below it that programs shall write in"));
    };
    if (below_any(folder, kReplaced)) return refuse("a board has its own");
    const auto covers = [&](const char* covered) { return below(covered, folder); };
    if (std::ranges::any_of(kReplaced, covers) || std::ranges::any_of(kOverlaid, covers) ||
        std::ranges::any_of(kReadOnly, covers))
        return refuse("a board shows its own view of it, or of what is in it");
    for (const fs::path& home : homes())
        if (below(home, folder))
            return refuse("it is a home, or homes lie in it, and a board shows its own view of those");
    return {};
}

SharedFolders::~SharedFolders() {
    for (const int fd : held_) ::close(fd);
}

host::Result<void> SharedFolders::hold() {
    for (const fs::path& path : paths_) {
        const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) return host::failure(ErrorCode::NotFound, "--share {}: {}", path.string(), std::strerror(errno));
        held_.push_back(fd);
    }
    return {};
}

host::Result<void> SharedFolders::show() const {
    for (std::size_t i = 0; i < held_.size(); ++i)
        TRY(bind_mount(fmt::format("/proc/self/fd/{}", held_[i]), paths_[i], true));
    return {};
}

host::Result<void> cover_system() {
    const fs::path local = fs::path(kCorner) / "local";
    const bool own_local = is_mount_point(kLocal);
    if (own_local) {
        TRY(make_folder(local));
        TRY(bind_mount(kLocal, local));
    }
    for (const char* folder : kOverlaid)
        if (is_real_folder(folder)) TRY(cover(folder, folder));
    if (own_local) TRY(cover(local, kLocal));
    for (const char* folder : kRealFolders) {
        const fs::path real = fs::path(kBoardDisk) / fs::path(folder).filename();
        TRY(make_folder(real, 0711));
        // In a user namespace the folder above belongs to somebody unknown, and engines want root anyway.
        if (!make_folder(folder, 0711)) continue;
        TRY(bind_mount(real, folder));
    }
    for (const char* folder : kReadOnly) {
        if (!is_real_folder(folder)) continue;
        TRY(bind_mount(folder, folder, true));
        TRY(make_read_only(folder));
    }
    return {};
}

host::Result<void> cover_homes(const fs::path& disk) {
    const auto all = homes();
    for (const fs::path& home : all) TRY(cover_home(home));
    const auto in = [&](const fs::path& home) { return below(disk, home); };
    std::error_code error;
    if (std::any_of(all.begin(), all.end(), in) && fs::exists(disk.parent_path(), error))
        TRY(mount_tmpfs(disk.parent_path(), "mode=755,size=64k", MS_NOSUID | MS_NODEV));
    return {};
}

void look_again(const fs::path& folder) {
    for (const char* overlaid : kOverlaid) forget_old_names(overlaid);
    forget_old_names(kLocal);
    // The homes are those of the board's making, not of whoever enters it.
    fs::path home;
    for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
        if (!is_mount_point(live_view(at))) continue;
        forget_old_names(at);
        home = at;
        break;
    }
    if (home.empty() || home == folder) return;
    const fs::path entry = *folder.lexically_relative(home).begin();
    const fs::path live = live_view(home) / entry;
    if (is_work(live) && !same_folder(live, home / entry)) (void)bind_mount(live, home / entry, true);
}

}  // namespace talpa::board
