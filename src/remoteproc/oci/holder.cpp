#include "remoteproc/oci/holder.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <memory>

namespace talpa::remoteproc {

std::optional<std::string> busy_with(const CoreOwners& owners, const Device& device, const Container& container) {
    const auto owner = owners.read(device);
    if (!owner || !owner->alive()) return std::nullopt;
    if (owner->state_folder == container.folder) return std::nullopt;
    if (::access(owner->state_folder.c_str(), F_OK) != 0 && errno == ENOENT)
        return fmt::format("container {} (its folder {} is gone; `remoteproc-runtime gc` ends its process {})",
                           owner->id, owner->state_folder, owner->pid);
    return "container " + owner->id;
}

std::optional<std::string> stranger_on(const Settings& settings, const Device& device) {
    const std::string of_root = settings.paths.below("/run/remoteproc-runtime");
    if (settings.run_folder != of_root)
        if (const auto owner = CoreOwners(of_root).read(device); owner && owner->alive())
            return fmt::format("container {} of user 0", owner->id);
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc"), ::closedir);
    if (!dir) return std::nullopt;
    const std::string wanted = std::string("\0proxy\0--device-path\0", 21) + device.folder + '\0';
    while (const dirent* entry = ::readdir(dir.get())) {
        const std::string_view name = entry->d_name;
        pid_t pid = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (error != std::errc{} || end != name.data() + name.size()) continue;
        const std::string arguments = process_arguments(pid);
        if (arguments.find(wanted) == std::string::npos) continue;
        struct stat info, theirs, mine;
        const bool known = ::stat(fmt::format("/proc/{}", pid).c_str(), &info) == 0;
        // One of our own user that has the core has a record as well, so this one waits; but the original's has none.
        if (known && info.st_uid == ::geteuid() && !arguments.ends_with(wanted)) continue;
        // Not one of another board on this machine, which shows another core at the same path. Others' view may be
        // hidden.
        const bool seen = ::stat(fmt::format("/proc/{}/root{}", pid, device.folder).c_str(), &theirs) == 0;
        if (!seen && errno != EACCES) continue;
        if (seen &&
            (::stat(device.folder.c_str(), &mine) != 0 || mine.st_dev != theirs.st_dev || mine.st_ino != theirs.st_ino))
            continue;
        return known ? fmt::format("process {} of user {}", pid, info.st_uid) : fmt::format("process {}", pid);
    }
    return std::nullopt;
}

}  // namespace talpa::remoteproc
