#include "board/host/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace talpa::board {

namespace fs = std::filesystem;

namespace {

host::Result<void> do_mount(const char* source, const fs::path& at, const char* type, unsigned long flags,
                            const char* options) {
    if (::mount(source, at.c_str(), type, flags, options) == 0) return {};
    return host::failure(ErrorCode::AccessFailed, "cannot mount {} on {}: {}", type != nullptr ? type : source,
                         at.string(), std::strerror(errno));
}

/// As overlayfs reads its options.
std::string escaped(const fs::path& path) {
    std::string out;
    for (const char c : path.native()) {
        if (c == ':' || c == ',' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

host::Result<void> mount_type(const char* type, const fs::path& at, const std::string& options, unsigned long flags) {
    return do_mount(type, at, type, flags, options.c_str());
}

host::Result<void> mount_tmpfs(const fs::path& at, const std::string& options, unsigned long flags) {
    return mount_type("tmpfs", at, options, flags);
}

host::Result<void> bind_mount(const fs::path& from, const fs::path& at, bool recursive) {
    return do_mount(from.c_str(), at, nullptr,
                    static_cast<unsigned long>(MS_BIND) | (recursive ? static_cast<unsigned long>(MS_REC) : 0),
                    nullptr);
}

host::Result<void> overlay(const fs::path& lower, const fs::path& at, const fs::path& upper) {
    const fs::path changes = upper / "changes", work = upper / "work";
    TRY(make_folder(changes));
    TRY(make_folder(work));
    // What the overlay's own top folder shows is the upper's mode and owner.
    struct stat st{};
    if (::stat(lower.c_str(), &st) == 0) {
        ::chmod(changes.c_str(), st.st_mode & 07777);
        (void)!::chown(changes.c_str(), st.st_uid, st.st_gid);
    }
    const std::string options =
        fmt::format("lowerdir={},upperdir={},workdir={}", escaped(lower), escaped(changes), escaped(work));
    if (::mount("overlay", at.c_str(), "overlay", 0, options.c_str()) == 0) return {};
    // In a user namespace trusted attributes are out of reach.
    return do_mount("overlay", at, "overlay", 0, (options + ",userxattr").c_str());
}

host::Result<void> make_read_only(const fs::path& at) {
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    if (::mount_setattr(AT_FDCWD, at.c_str(), AT_RECURSIVE, &attributes, sizeof attributes) == 0) return {};
    if (errno == ENOSYS && ::mount(nullptr, at.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0)
        return {};
    return host::failure(ErrorCode::AccessFailed, "cannot make {} read-only: {}", at.string(), std::strerror(errno));
}

host::Result<void> set_propagation(const fs::path& at, unsigned long kind) {
    if (::mount(nullptr, at.c_str(), nullptr, kind | MS_REC, nullptr) == 0) return {};
    return host::failure(ErrorCode::AccessFailed, "cannot change how mounts below {} propagate: {}", at.string(),
                         std::strerror(errno));
}

host::Result<void> make_folder(const fs::path& path, unsigned mode) {
    std::error_code error;
    fs::create_directories(path, error);
    if (error || ::chmod(path.c_str(), mode) != 0)
        return host::failure(ErrorCode::AccessFailed, "cannot create {}: {}", path.string(),
                             error ? error.message() : std::strerror(errno));
    return {};
}

}  // namespace talpa::board
