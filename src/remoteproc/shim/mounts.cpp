#include "remoteproc/shim/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace talpa::remoteproc::shim {
namespace {

struct Flag {
    std::string_view word;
    bool clear;
    unsigned long flags;
};
constexpr std::array<Flag, 25> kFlags{{
    {"async", true, MS_SYNCHRONOUS},
    {"atime", true, MS_NOATIME},
    {"bind", false, MS_BIND},
    {"rbind", false, MS_BIND | MS_REC},
    {"defaults", false, 0},
    {"dev", true, MS_NODEV},
    {"diratime", true, MS_NODIRATIME},
    {"dirsync", false, MS_DIRSYNC},
    {"exec", true, MS_NOEXEC},
    {"mand", false, MS_MANDLOCK},
    {"noatime", false, MS_NOATIME},
    {"nodev", false, MS_NODEV},
    {"nodiratime", false, MS_NODIRATIME},
    {"noexec", false, MS_NOEXEC},
    {"nomand", true, MS_MANDLOCK},
    {"norelatime", true, MS_RELATIME},
    {"nostrictatime", true, MS_STRICTATIME},
    {"nosuid", false, MS_NOSUID},
    {"relatime", false, MS_RELATIME},
    {"remount", false, MS_REMOUNT},
    {"ro", false, MS_RDONLY},
    {"rw", true, MS_RDONLY},
    {"strictatime", false, MS_STRICTATIME},
    {"suid", true, MS_NOSUID},
    {"sync", false, MS_SYNCHRONOUS},
}};

constexpr std::size_t kPage = 4096;
constexpr std::string_view kLower = "lowerdir=";

Result<void> mount_one(const Mount& m, const std::string& target) {
    MountOptions options = split_options(m.options);
    std::string folder;
    if (m.type == "overlay" && options.data.size() >= kPage) options.data = shorten_overlay(options.data, folder);
    if (options.data.size() >= kPage)
        return host::failure(ErrorCode::OutOfResources, "mount {}: its options have {} bytes, {} fit", target,
                             options.data.size(), kPage - 1);
    // Relative lower directories count from the working folder; there is one thread, so it can be borrowed.
    const Fd here(::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder.empty() && ::chdir(folder.c_str()) != 0) return os_failure("chdir", folder, errno);
    const int done = ::mount(m.source.c_str(), target.c_str(), m.type.c_str(), options.flags, options.data.c_str());
    const int error = errno;
    if (!folder.empty()) (void)!::fchdir(here.get());
    if (done != 0) return os_failure("mount", m.type + " on " + target, error);
    // A bind mount takes its other flags only when it is mounted again.
    constexpr unsigned long kBind = MS_BIND | MS_REC;
    if ((options.flags & MS_BIND) != 0 && (options.flags & ~kBind) != 0 &&
        ::mount("", target.c_str(), "", (options.flags & ~static_cast<unsigned long>(MS_REC)) | MS_REMOUNT, nullptr) !=
            0)
        return os_failure("remount", target, errno);
    return {};
}

}  // namespace

MountOptions split_options(const std::vector<std::string>& options) {
    MountOptions out;
    for (const std::string& option : options) {
        const auto found = std::ranges::find(kFlags, std::string_view(option), &Flag::word);
        if (found == kFlags.end())
            out.data += (out.data.empty() ? "" : ",") + option;
        else if (found->clear)
            out.flags &= ~found->flags;
        else
            out.flags |= found->flags;
    }
    return out;
}

std::string shorten_overlay(const std::string& data, std::string& folder) {
    const std::size_t at = data.find(kLower);
    if (at == std::string::npos) return data;
    const std::size_t begin = at + kLower.size(), end = std::min(data.find(',', begin), data.size());
    std::vector<std::string> lower;
    for (std::size_t from = begin; from <= end;) {
        const std::size_t colon = std::min(data.find(':', from), end);
        lower.push_back(data.substr(from, colon - from));
        from = colon + 1;
    }
    std::string common = lower.front();
    for (const std::string& path : lower) {
        const auto differ = std::ranges::mismatch(common, path).in1;
        common.erase(differ, common.end());
    }
    common.erase(common.rfind('/') == std::string::npos ? 0 : common.rfind('/') + 1);
    if (common.size() < 2) return data;
    folder = common;
    std::string out = data.substr(0, begin);
    for (std::size_t i = 0; i < lower.size(); ++i) out += (i == 0 ? "" : ":") + lower[i].substr(common.size());
    return out + data.substr(end);
}

Result<void> mount_all(const std::vector<Mount>& mounts, const std::string& target) {
    if (!mounts.empty() && ::mkdir(target.c_str(), 0711) != 0 && errno != EEXIST)
        return os_failure("mkdir", target, errno);
    for (const Mount& m : mounts)
        if (auto done = mount_one(m, target); !done) {
            unmount_all(target);
            return std::unexpected(std::move(done.error()).with_context("failed to mount rootfs component"));
        }
    return {};
}

void unmount_all(const std::string& target) {
    for (int i = 0; i < 64; ++i)
        if (::umount2(target.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) return;
}

}  // namespace talpa::remoteproc::shim
