#include "board/host/namespaces.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/host/file.h"
#include "board/host/covers.h"
#include "board/host/mounts.h"

namespace talpa::board {

namespace fs = std::filesystem;

namespace {

struct DeviceNode {
    const char* name;
    unsigned major, minor, mode;
};
constexpr DeviceNode kDevices[] = {{"null", 1, 3, 0666},    {"zero", 1, 5, 0666},      {"full", 1, 7, 0666},
                                   {"random", 1, 8, 0666},  {"urandom", 1, 9, 0666},   {"tty", 5, 0, 0666},
                                   {"fuse", 10, 229, 0666}, {"net/tun", 10, 200, 0666}};
constexpr struct {
    const char *name, *target;
} kDeviceLinks[] = {{"ptmx", "pts/ptmx"},
                    {"fd", "/proc/self/fd"},
                    {"stdin", "/proc/self/fd/0"},
                    {"stdout", "/proc/self/fd/1"},
                    {"stderr", "/proc/self/fd/2"}};

host::Result<void> make_device(const fs::path& dev, const DeviceNode& node) {
    const fs::path path = dev / node.name, original = fs::path("/dev") / node.name;
    if (path.parent_path() != dev) TRY(make_folder(path.parent_path()));
    if (::mknod(path.c_str(), S_IFCHR | node.mode, makedev(node.major, node.minor)) == 0) {
        ::chmod(path.c_str(), node.mode);
        return {};
    }
    if (::access(original.c_str(), F_OK) != 0) return {};  // this machine has none
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) ::close(fd);
    return bind_mount(original, path);
}

/// A /dev of its own: a late node in it is seen at once by everybody who has it, containers included.
host::Result<void> build_dev() {
    const fs::path dev = fs::path(kCorner) / "dev";
    TRY(make_folder(dev));
    TRY(mount_tmpfs(dev, "mode=755", MS_NOSUID));
    for (const DeviceNode& node : kDevices) TRY(make_device(dev, node));
    for (const auto& link : kDeviceLinks) (void)!::symlink(link.target, (dev / link.name).c_str());
    TRY(make_folder(dev / "pts"));
    TRY(make_folder(dev / "shm"));
    if (auto pts = mount_type("devpts", dev / "pts", "newinstance,ptmxmode=0666,mode=0620,gid=5",
                              MS_NOSUID | MS_NOEXEC);
        !pts)  // in a user namespace there is no group 5
        TRY(mount_type("devpts", dev / "pts", "newinstance,ptmxmode=0666,mode=0620", MS_NOSUID | MS_NOEXEC));
    TRY(mount_tmpfs(dev / "shm", "mode=1777", MS_NOSUID | MS_NODEV));
    return bind_mount(dev, "/dev", true);
}

host::Result<void> write_map(const char* file, const std::string& text) {
    const int fd = ::open(file, O_WRONLY | O_CLOEXEC);
    const bool good = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int why = errno;
    if (fd >= 0) ::close(fd);
    if (!good) return host::failure(ErrorCode::AccessFailed, "cannot write {}: {}", file, std::strerror(why));
    return {};
}

host::Result<void> open_loopback() {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    const bool good = fd >= 0 && ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    const int why = errno;
    if (fd >= 0) ::close(fd);
    if (!good)
        return host::failure(ErrorCode::AccessFailed, "cannot open the loopback interface: {}", std::strerror(why));
    return {};
}

std::unexpected<host::Error> refused() {
    return std::unexpected(host::Error(ErrorCode::AccessFailed,
                                       fmt::format("namespaces are refused here: {}", std::strerror(errno)),
                                       "talpa board up --root DIR does without them"));
}

/// Classes or buses that sysfs may not have: sysfs refuses new folders, an overlay over it does not.
host::Result<void> add_to_sysfs(const fs::path& folder, std::initializer_list<const char*> names,
                                const fs::path& shown) {
    std::error_code error;
    for (const char* name : names) {
        if (!fs::exists(folder / name, error)) {
            if (!is_mount_point(folder)) TRY(overlay(folder, folder, fs::path(kCorner) / "upper" / folder.filename()));
            TRY(make_folder(folder / name));
        }
        TRY(bind_mount(shown / name, folder / name));
    }
    return {};
}

/// What tells a board's disk from a folder of the user's that has the board's name. All of a disk goes with its board.
constexpr const char* kDiskMark = ".talpa-board";

host::Result<fs::path> own_disk(const fs::path& disk) {
    std::error_code error;
    const auto what = fs::symlink_status(disk, error).type();
    const bool free =
        what == fs::file_type::not_found || (what == fs::file_type::directory && fs::is_empty(disk, error));
    if (!free && !(what == fs::file_type::directory && fs::exists(disk / kDiskMark, error)))
        return std::unexpected(
            host::Error(ErrorCode::InvalidState,
                        fmt::format("{} is there and no board made it; a board's disk is removed with "
                                    "the board",
                                    disk.string()),
                        "--name another, or set TALPA_BOARD_DISK to another folder"));
    TRY(make_folder(disk));
    TRY(host::write_text(disk / kDiskMark, "the disk of a talpa board: it is removed by talpa board down\n"));
    return disk;
}

}  // namespace

host::Result<fs::path> disk_folder(const std::string& name, std::vector<fs::path>& made) {
    std::vector<fs::path> candidates;
    if (const char* set = std::getenv("TALPA_BOARD_DISK"); set != nullptr && *set != '\0') candidates.emplace_back(set);
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
        candidates.push_back(fs::path(cache) / "talpa/boards");
    if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/')
        candidates.push_back(fs::path(home) / ".cache/talpa/boards");
    candidates.emplace_back();  // the last resort is looked at, and made, only when its turn comes
    for (fs::path& candidate : candidates) {
        if (candidate.empty()) {
            auto own = own_temporary_folder();
            if (!own) {
                remove_made(made);
                return own;
            }
            candidate = *own / "disk";
        }
        std::error_code error = make_folders(candidate, made);
        const fs::path real = fs::canonical(candidate, error);
        if (error || is_hidden(real) || ::access(real.c_str(), W_OK) != 0) continue;
        auto disk = own_disk(real / name);
        if (!disk) remove_made(made);
        return disk;
    }
    remove_made(made);
    return std::unexpected(host::Error(ErrorCode::NotFound, "there is no folder on disk that the board could use",
                                       "set TALPA_BOARD_DISK to one outside of /etc, /opt, /srv, /usr, /var and /run"));
}

host::Result<void> unshare_pids() {
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    if (::unshare(CLONE_NEWPID | (user == 0 ? 0 : CLONE_NEWUSER)) != 0) return refused();
    if (user == 0) return {};
    TRY(write_map("/proc/self/setgroups", "deny"));
    TRY(write_map("/proc/self/uid_map", fmt::format("0 {} 1\n", user)));
    return write_map("/proc/self/gid_map", fmt::format("0 {} 1\n", group));
}

host::Result<BoardPlaces> build_file_system(const BoardRecord& record, const std::vector<fs::path>& shared) {
    const fs::path corner = kCorner, disk = kBoardDisk;
    if (::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) != 0) return refused();
    TRY(set_propagation("/", MS_PRIVATE));
    SharedFolders kept(shared);
    TRY(kept.hold());
    TRY(make_folder(record.disk / "ssh", 0700));
    TRY(mount_tmpfs("/run", "mode=755", MS_NOSUID | MS_NODEV));
    TRY(make_folder(corner));
    TRY(make_folder("/run/lock", 01777));
    TRY(make_folder("/run/sshd"));
    TRY(make_folder(disk));
    TRY(bind_mount(record.disk, disk));
    TRY(cover_system());
    TRY(cover_homes(record.disk));
    TRY(kept.show());
    // Where they are missing: made on the overlay. Nobody else's machine is ours to do that on.
    std::error_code error;
    if (fs::exists("/lib/firmware", error) || make_folder("/lib/firmware"))
        TRY(mount_tmpfs("/lib/firmware", "mode=755", MS_NOSUID | MS_NODEV));
    if (fs::exists("/root/.ssh", error) || make_folder("/root/.ssh", 0700)) TRY(bind_mount(disk / "ssh", "/root/.ssh"));
    TRY(mount_type("proc", "/proc", "", MS_NOSUID | MS_NODEV | MS_NOEXEC));
    TRY(build_dev());
    TRY(make_folder(corner / "sys"));
    BoardPlaces places;
    places.root = "/";
    places.sys = corner / "sys";
    places.dev = "/dev";
    places.ptmx = "/dev/pts/ptmx";
    return places;
}

host::Result<void> show_board(const BoardPlaces& places, const std::string& name) {
    TRY(add_to_sysfs("/sys/class", {"remoteproc", "devcoredump"}, places.sys / "class"));
    TRY(add_to_sysfs("/sys/bus", {"rpmsg"}, places.sys / "bus"));
    std::error_code error;
    if (fs::exists("/sys/kernel/debug", error)) TRY(bind_mount(places.sys / "kernel/debug", "/sys/kernel/debug"));
    TRY(bind_mount(places.sys / "firmware", "/sys/firmware"));
    const fs::path parameter = "module/firmware_class/parameters/path";
    if (fs::exists("/sys" / parameter, error)) TRY(bind_mount(places.sys / parameter, "/sys" / parameter));
    // What the boot loader gave the kernel; containers, with a /proc of their own, see the machine's.
    if (const auto bootargs = host::read_text(places.sys / "firmware/devicetree/base/chosen/bootargs", 1 << 12)) {
        const fs::path file = fs::path(kCorner) / "cmdline";
        TRY(host::write_text(file, std::string(bootargs->c_str()) + "\n"));
        ::chmod(file.c_str(), 0444);
        TRY(bind_mount(file, "/proc/cmdline"));
    }
    // With a version 2 tree beside version 1, crun refuses to work; without it, it takes the tree for version 1.
    if (is_mount_point("/sys/fs/cgroup/unified")) ::umount2("/sys/fs/cgroup/unified", MNT_DETACH);
    TRY(set_propagation("/", MS_SHARED));
    (void)!::sethostname(name.c_str(), name.size());
    return open_loopback();
}

}  // namespace talpa::board
