#include "remoteproc/sys/files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

namespace talpa::remoteproc {

Result<void> make_folders(const std::string& path) {
    for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
        if (::mkdir(path.substr(0, slash).c_str(), 0755) != 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
            return os_failure("mkdir", path.substr(0, slash), errno);
    if (::mkdir(path.c_str(), 0755) != 0) {
        const int error = errno;
        struct stat info;
        if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return os_failure("mkdir", path, error);
    }
    return {};
}

Result<void> replace_file(const std::string& path, std::string_view text, unsigned mode) {
    const std::string temporary = path + ".tmp";
    ::unlink(temporary.c_str());
    Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!fd) return os_failure("open", temporary, errno);
    const auto written = write_all(fd.get(), text);
    fd.reset();
    if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
        const int error = written ? errno : written.error();
        ::unlink(temporary.c_str());
        return os_failure("write", path, error);
    }
    return {};
}

Result<std::string> read_small_file(const std::string& path, std::size_t limit_bytes) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!fd) return os_failure("open", path, errno);
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) return os_failure("stat", path, errno);
    if (!S_ISREG(info.st_mode)) return host::failure(ErrorCode::InvalidArgument, "{} is not a regular file", path);
    if (static_cast<std::uint64_t>(info.st_size) > limit_bytes)
        return host::failure(ErrorCode::OutOfResources, "{} has {} bytes, more than the {} that are read", path,
                             static_cast<std::uint64_t>(info.st_size), limit_bytes);
    auto text = read_fd(fd.get(), limit_bytes);
    if (!text) return os_failure("read", path, text.error());
    return std::move(*text);
}

}  // namespace talpa::remoteproc
