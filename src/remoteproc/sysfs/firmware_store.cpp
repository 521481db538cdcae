#include "remoteproc/sysfs/firmware_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <ctime>
#include <memory>

#include "base/host/sha256.h"
#include "remoteproc/sys/files.h"
#include "remoteproc/sys/path_guard.h"

namespace talpa::remoteproc {
namespace {

constexpr std::size_t kSuffixLength = 1 + 8 + 1 + 6 + 1 + 8;  // _YYYYmmdd_HHMMSS_hex8

std::pair<std::string_view, std::string_view> stem_and_extension(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return {name, {}};
    return {name.substr(0, dot), name.substr(dot)};
}

std::string_view base_name(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string stored_name(std::string_view name) {
    const auto [stem, extension] = stem_and_extension(name);
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y%m%d_%H%M%S", &local);
    std::uint32_t random = 0;
    (void)!::getrandom(&random, sizeof random, 0);
    return fmt::format("{}_{}_{:08x}{}", stem, stamp, random, extension);
}

std::unexpected<host::Error> store_failure(const FirmwareSource& source, const std::string& folder, host::Error error) {
    return std::unexpected(std::move(error).with_context(
        fmt::format("failed to store firmware file {} to {}", printable(source.path), folder)));
}

}  // namespace

FirmwareBytes FirmwareSource::bytes() const {
    const int fd = file.get();
    return {identity.size, [fd](std::uint64_t offset, std::span<std::uint8_t> out) {
                while (!out.empty()) {
                    const ssize_t n = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
                    if (n < 0 && errno == EINTR) continue;
                    if (n <= 0) return false;
                    offset += static_cast<std::uint64_t>(n);
                    out = out.subspan(static_cast<std::size_t>(n));
                }
                return true;
            }};
}

Result<FirmwareSource> open_firmware(const std::string& root_folder, std::string_view argument,
                                     std::uint64_t limit_bytes) {
    const auto refuse = [&](std::string_view why) {
        return host::failure(ErrorCode::InvalidArgument, "firmware path {:?} {}", printable(argument), why);
    };
    if (argument.empty()) return refuse("is empty");
    if (argument.size() >= PATH_MAX) return refuse("is too long");
    if (std::ranges::any_of(argument, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }))
        return refuse("holds control characters");
    const auto inside = clean_below_root(argument);
    if (!inside) return refuse("leads out of the container's root");
    const std::string_view name = base_name(*inside);
    if (*inside == "/" || argument.ends_with('/') || argument.ends_with("/.")) return refuse("names a directory");
    if (name.size() + kSuffixLength > NAME_MAX) return refuse("has a name that is too long to be stored");
    FirmwareSource source;
    source.path = clean_path(root_folder + *inside);
    const Fd root(::open(root_folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root) return os_failure("stat", root_folder, errno);
    // The argument as it was given: ".." after a link counts from where the link leads, as for any process in that
    // root.
    auto file = open_in_root(root.get(), argument, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!file && (file.error() == EXDEV || file.error() == ELOOP))
        return refuse("follows a link that leads out of the container's root, or in circles");
    if (!file && file.error() == ENXIO) return refuse("is not a regular file");
    if (!file) return os_failure("stat", source.path, file.error());
    source.file = std::move(*file);
    struct stat info;
    if (::fstat(source.file.get(), &info) != 0) return os_failure("stat", source.path, errno);
    if (S_ISDIR(info.st_mode)) return refuse("is a directory");
    if (!S_ISREG(info.st_mode)) return refuse("is not a regular file");
    source.identity = {info.st_dev, info.st_ino, static_cast<std::uint64_t>(info.st_size),
                       static_cast<std::uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000u +
                           static_cast<std::uint64_t>(info.st_mtim.tv_nsec)};
    source.mode = (info.st_mode & 0644) | 0600;
    if (source.identity.size > limit_bytes)
        return host::failure(ErrorCode::OutOfResources,
                             "firmware {} has {} bytes, more than the {} allowed (annotation remoteproc.max-size)",
                             printable(source.path), source.identity.size, limit_bytes);
    return source;
}

std::string firmware_folder(const SystemPaths& paths) {
    const Fd fd(::open(paths.firmware_parameter().c_str(), O_RDONLY | O_CLOEXEC));
    std::string text = fd ? read_fd(fd.get(), 4096).value_or("") : "";
    text = text.substr(0, text.find('\n'));
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    text.erase(0, text.find_first_not_of(" \t\r"));
    // A custom path is not below the build's prefix, in the original either.
    return text.empty() ? paths.default_firmware() : clean_path(text);
}

Result<void> FirmwareIndex::add(const std::string& stored, const std::string& state_folder) const {
    TRY(make_folders(folder_));
    return replace_file(folder_ + "/" + std::string(base_name(stored)), stored + "\n" + state_folder + "\n", 0600);
}

void FirmwareIndex::forget(const std::string& stored) const {
    ::unlink((folder_ + "/" + std::string(base_name(stored))).c_str());
}

bool FirmwareIndex::owns(const std::string& stored) const {
    const auto text = read_small_file(folder_ + "/" + std::string(base_name(stored)), 16384);
    return text && text->starts_with(stored + "\n");
}

void FirmwareIndex::for_each(const std::function<void(const std::string&, const std::string&)>& visit) const {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder_.c_str()), ::closedir);
    if (!dir) return;
    while (const dirent* entry = ::readdir(dir.get())) {
        const auto text = read_small_file(folder_ + "/" + entry->d_name, 16384);
        if (!text || std::string_view(entry->d_name).ends_with(".tmp")) continue;
        const std::size_t line = text->find('\n');
        if (line == std::string::npos) continue;
        const std::string stored = text->substr(0, line);
        std::string owner = text->substr(line + 1);
        if (!owner.empty() && owner.back() == '\n') owner.pop_back();
        if (base_name(stored) == entry->d_name) visit(stored, owner);
    }
}

Result<StoredFirmware> store_firmware(const FirmwareSource& source, const std::string& folder,
                                      const FirmwareIndex& index, const std::string& state_folder) {
    if (auto made = make_folders(folder); !made) return store_failure(source, folder, std::move(made.error()));
    struct statvfs space;
    if (::statvfs(folder.c_str(), &space) == 0 && source.identity.size > 0 &&
        source.identity.size / space.f_frsize >= space.f_bavail)
        return store_failure(source, folder, os_error("write", folder, ENOSPC));
    StoredFirmware stored;
    Fd target;
    for (int attempt = 0; attempt < 8 && !target; ++attempt) {
        stored.path = folder + "/" + stored_name(base_name(source.path));
        // Entered first: a kill between the two leaves an entry without a file, which harms nobody.
        if (auto added = index.add(stored.path, state_folder); !added)
            return store_failure(source, folder, std::move(added.error()));
        target = Fd(::open(stored.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, source.mode));
        if (!target && errno != EEXIST) {
            const int error = errno;
            index.forget(stored.path);
            return store_failure(source, folder, os_error("open", stored.path, error));
        }
    }
    if (!target) return store_failure(source, folder, os_error("open", stored.path, EEXIST));
    host::Sha256 digest;
    char buffer[65536];
    std::uint64_t copied = 0;
    int error = 0;
    while (error == 0) {
        const ssize_t n = ::pread(source.file.get(), buffer, sizeof buffer, static_cast<off_t>(copied));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) error = errno;
        if (n <= 0) break;
        const std::string_view part(buffer, static_cast<std::size_t>(n));
        copied += part.size();
        if (copied > source.identity.size) error = EFBIG;  // it grows while it is read
        digest.update(part);
        if (const auto written = write_all(target.get(), part); !written) error = written.error();
    }
    if (error == 0 && copied != source.identity.size) error = EIO;
    if (error != 0) {
        (void)remove_firmware(stored.path, index);
        return store_failure(source, folder, os_error("write", stored.path, error));
    }
    stored.sha256 = digest.finish();
    return stored;
}

bool is_stored_name(std::string_view path, std::string_view folder, std::string_view firmware) {
    if (!path.starts_with(folder) || path.size() <= folder.size() + 1 || path[folder.size()] != '/') return false;
    const std::string_view name = path.substr(folder.size() + 1);
    if (name.find('/') != std::string_view::npos) return false;
    const auto [stem, extension] = stem_and_extension(base_name(firmware));
    if (name.size() != stem.size() + kSuffixLength + extension.size()) return false;
    if (!name.starts_with(stem) || !name.ends_with(extension)) return false;
    constexpr std::string_view kShape = "_dddddddd_dddddd_xxxxxxxx";
    const std::string_view middle = name.substr(stem.size(), kSuffixLength);
    for (std::size_t i = 0; i < kShape.size(); ++i) {
        const auto c = static_cast<unsigned char>(middle[i]);
        if (kShape[i] == '_' ? c != '_' : kShape[i] == 'd' ? std::isdigit(c) == 0 : std::isxdigit(c) == 0) return false;
    }
    return true;
}

Result<void> remove_firmware(const std::string& stored, const FirmwareIndex& index) {
    const int error = ::unlink(stored.c_str()) == 0 ? 0 : errno;
    if (error != 0 && error != ENOENT && error != ENOTDIR)
        return std::unexpected(os_error("remove", stored, error).with_context("failed to remove firmware"));
    index.forget(stored);
    return {};
}

}  // namespace talpa::remoteproc
