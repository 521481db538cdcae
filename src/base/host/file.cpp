#include "base/host/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/host/fd.h"
#include "base/host/interrupt.h"

namespace talpa::host {
namespace {

std::unexpected<Error> errno_error(const std::filesystem::path& path, const char* doing, int e = errno) {
    const auto code = e == ENOENT || e == ENOTDIR ? ErrorCode::NotFound : ErrorCode::AccessFailed;
    return failure(code, "{} {}: {}", doing, path.string(), std::strerror(e));
}

Result<int> open_for_reading(const std::filesystem::path& path, struct ::stat& info) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        std::unexpected<Error> failed = errno_error(path, "cannot open");
        if (path == "-") failed.error().hint = "/dev/stdin is the standard input";
        return failed;
    }
    if (::fstat(fd, &info) != 0) {
        auto failed = errno_error(path, "cannot look at");
        ::close(fd);
        return failed;
    }
    if (S_ISDIR(info.st_mode)) {
        ::close(fd);
        return failure(ErrorCode::AccessFailed, "{} is a folder, not a file", path.string());
    }
    return fd;
}

std::unexpected<Error> too_large(const std::filesystem::path& path, const struct ::stat& info, std::uint64_t limit) {
    return failure(ErrorCode::OutOfResources, "{} has {} bytes, more than the limit of {}", path.string(), info.st_size,
                   limit);
}

Result<std::vector<std::uint8_t>> read_all(int fd, const std::filesystem::path& path, std::uint64_t limit) {
    std::vector<std::uint8_t> bytes;
    constexpr std::size_t kChunk = 1 << 16;
    std::size_t used = 0;
    for (;;) {
        bytes.resize(used + kChunk);
        const ssize_t n = ::read(fd, bytes.data() + used, kChunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno_error(path, "cannot read");
        used += static_cast<std::size_t>(n);
        if (used > limit)
            return failure(ErrorCode::OutOfResources, "{} is larger than the limit of {} bytes", path.string(), limit);
        if (n == 0) break;
    }
    bytes.resize(used);
    return bytes;
}

}  // namespace

Result<std::vector<std::uint8_t>> read_file(const std::filesystem::path& path, std::uint64_t limit_bytes) {
    struct ::stat info{};
    TRY_ASSIGN(const int raw, open_for_reading(path, info));
    const Fd fd(raw);
    if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > limit_bytes)
        return too_large(path, info, limit_bytes);
    return read_all(fd.get(), path, limit_bytes);
}

Result<std::string> read_text(const std::filesystem::path& path, std::uint64_t limit_bytes) {
    TRY_ASSIGN(const auto bytes, read_file(path, limit_bytes));
    return std::string(bytes.begin(), bytes.end());
}

namespace {

std::string_view text_of(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A device, a pipe: there is nothing to replace, the bytes go into it.
Result<void> write_into(const std::filesystem::path& path, Bytes bytes) {
    const int raw = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (raw < 0) return errno_error(path, "cannot open");
    Fd fd(raw);
    if (const auto written = write_all(fd.get(), text_of(bytes)); !written)
        return errno_error(path, "cannot write", written.error());
    if (::close(fd.release()) != 0) return errno_error(path, "cannot finish writing");
    return {};
}

}  // namespace

Result<void> write_file(const std::filesystem::path& given, Bytes bytes) {
    struct ::stat there{};
    const bool exists = ::stat(given.c_str(), &there) == 0;
    if (exists && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) return write_into(given, bytes);
    // What a link points to is replaced, not the link.
    std::error_code no_link;
    const std::filesystem::path target = exists ? std::filesystem::canonical(given, no_link) : given;
    const std::filesystem::path& path = no_link ? given : target;
    std::string temporary = path.string() + ".XXXXXX";
    const int raw = ::mkostemp(temporary.data(), O_CLOEXEC);
    if (raw < 0) return errno_error(path, "cannot write beside");
    Fd fd(raw);
    const TemporaryFileGuard guard(temporary);
    const auto give_up = [&](const char* doing, int error = errno) {
        auto failed = errno_error(path, doing, error);
        ::unlink(temporary.c_str());
        return failed;
    };
    if (const auto written = write_all(fd.get(), text_of(bytes)); !written)
        return give_up("cannot write", written.error());
    // mkostemp gives 0600; a new file gets what the umask allows, an old one keeps its mode.
    struct ::stat old{};
    mode_t mode = 0;
    if (::stat(path.c_str(), &old) == 0) {
        mode = old.st_mode & 07777;
    } else {
        const mode_t mask = ::umask(0);
        ::umask(mask);
        mode = 0666 & ~mask;
    }
    if (::fchmod(fd.get(), mode) != 0) return give_up("cannot set the mode of");
    if (::close(fd.release()) != 0) return give_up("cannot finish writing");
    if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up("cannot replace");
    return {};
}

Result<void> write_text(const std::filesystem::path& path, std::string_view text) {
    return write_file(path, Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path, std::uint64_t limit_bytes) {
    struct ::stat info{};
    TRY_ASSIGN(const int raw, open_for_reading(path, info));
    const Fd fd(raw);
    MappedFile file;
    if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > limit_bytes)
        return too_large(path, info, limit_bytes);
    if (S_ISREG(info.st_mode) && info.st_size > 0) {
        const auto size = static_cast<std::size_t>(info.st_size);
        void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
        if (mapping != MAP_FAILED) {
            file.mapping_ = mapping;
            file.mapping_size_ = size;
            file.bytes_ = Bytes(static_cast<const std::uint8_t*>(mapping), size);
            return file;
        }
    }
    TRY_ASSIGN(file.copy_, read_all(fd.get(), path, std::min(limit_bytes, kReadLimitBytes)));
    file.bytes_ = file.copy_;
    return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
    *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    if (this == &other) return *this;
    if (mapping_ != nullptr) ::munmap(mapping_, mapping_size_);
    copy_ = std::move(other.copy_);
    mapping_ = std::exchange(other.mapping_, nullptr);
    mapping_size_ = std::exchange(other.mapping_size_, 0);
    bytes_ = std::exchange(other.bytes_, {});
    return *this;
}

MappedFile::~MappedFile() {
    if (mapping_ != nullptr) ::munmap(mapping_, mapping_size_);
}

}  // namespace talpa::host
