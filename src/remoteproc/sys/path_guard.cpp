#include "remoteproc/sys/path_guard.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <climits>
#include <deque>
#include <vector>

namespace talpa::remoteproc {
namespace {

constexpr int kMaxLinks = 40;  // the kernel's own limit

std::deque<std::string> split(std::string_view path) {
    std::deque<std::string> parts;
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string_view part = path.substr(0, slash);
        if (!part.empty() && part != ".") parts.emplace_back(part);
        if (slash == std::string_view::npos) break;
        path.remove_prefix(slash + 1);
    }
    return parts;
}

std::expected<Fd, int> walk_by_hand(int root_fd, std::string_view path, int flags) {
    std::vector<Fd> folders;  // from the root down to where the walk stands
    const auto here = [&] { return folders.empty() ? root_fd : folders.back().get(); };
    std::deque<std::string> todo = split(path);
    int links = 0;
    if (todo.empty()) todo.emplace_back(".");
    while (!todo.empty()) {
        const std::string part = std::move(todo.front());
        todo.pop_front();
        if (part == "..") {
            if (!folders.empty()) folders.pop_back();
            if (todo.empty()) todo.emplace_back(".");
            continue;
        }
        // What it is, without following it: the same file is then opened through the handle or by name with O_NOFOLLOW.
        const Fd handle(::openat(here(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        if (!handle) return std::unexpected(errno);
        struct stat info;
        if (::fstat(handle.get(), &info) != 0) return std::unexpected(errno);
        if (S_ISLNK(info.st_mode)) {
            if (++links > kMaxLinks) return std::unexpected(ELOOP);
            char target[PATH_MAX];
            const ssize_t n = ::readlinkat(handle.get(), "", target, sizeof target);
            if (n < 0) return std::unexpected(errno);
            const std::string_view text(target, static_cast<std::size_t>(n));
            if (text.starts_with('/')) folders.clear();
            std::deque<std::string> more = split(text);
            todo.insert(todo.begin(), more.begin(), more.end());
            if (todo.empty()) todo.emplace_back(".");
            continue;
        }
        if (!todo.empty()) {
            if (!S_ISDIR(info.st_mode)) return std::unexpected(ENOTDIR);
            folders.emplace_back(::openat(here(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
            if (!folders.back()) return std::unexpected(errno);
            continue;
        }
        Fd file(::openat(here(), part.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
        if (!file) return std::unexpected(errno);
        return file;
    }
    return std::unexpected(ENOENT);
}

}  // namespace

std::expected<Fd, int> open_in_root(int root_fd, std::string_view path, int flags, Walk walk) {
    if (walk == Walk::Kernel) {
        open_how how{};
        how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
        how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
        const std::string text(path.empty() ? "." : path);
        for (int attempt = 0; attempt < 16; ++attempt) {
            const long fd = ::syscall(SYS_openat2, root_fd, text.c_str(), &how, sizeof how);
            if (fd >= 0) return Fd(static_cast<int>(fd));
            if (errno != EAGAIN) break;  // EAGAIN: something was renamed meanwhile
        }
        if (errno != ENOSYS && errno != EPERM) return std::unexpected(errno);
    }
    return walk_by_hand(root_fd, path, flags);
}

std::expected<std::string, int> clean_below_root(std::string_view path) {
    std::vector<std::string> parts;
    for (auto& part : split(path)) {
        if (part != "..") {
            parts.push_back(std::move(part));
        } else if (parts.empty()) {
            return std::unexpected(EXDEV);
        } else {
            parts.pop_back();
        }
    }
    std::string out;
    for (const auto& part : parts) out += "/" + part;
    return out.empty() ? "/" : out;
}

std::string clean_path(std::string_view path) {
    const bool absolute = path.starts_with('/');
    std::vector<std::string> parts;
    for (auto& part : split(path)) {
        if (part == ".." && !parts.empty() && parts.back() != "..")
            parts.pop_back();
        else if (part != ".." || !absolute)
            parts.push_back(std::move(part));
    }
    std::string out;
    for (const auto& part : parts) out += (out.empty() && !absolute ? "" : "/") + part;
    if (out.empty()) return absolute ? "/" : ".";
    return out;
}

std::string absolute_path(std::string_view path) {
    if (path.starts_with('/')) return clean_path(path);
    char folder[PATH_MAX];
    const char* here = ::getcwd(folder, sizeof folder);
    return clean_path((here == nullptr ? std::string("/") : std::string(here)) + "/" + std::string(path));
}

}  // namespace talpa::remoteproc
