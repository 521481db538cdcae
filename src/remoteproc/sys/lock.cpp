#include "remoteproc/sys/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace talpa::remoteproc {

Result<FileLock> FileLock::take(const std::string& path, int timeout_ms) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
    for (;;) {
        Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!fd) return os_failure("open", path, errno);
        if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
            // The holder before may have deleted the file: then the lock is on nothing that others see.
            struct stat mine, now;
            if (::fstat(fd.get(), &mine) == 0 && ::stat(path.c_str(), &now) == 0 && mine.st_ino == now.st_ino &&
                mine.st_dev == now.st_dev)
                return FileLock(std::move(fd));
            continue;
        }
        if (errno != EWOULDBLOCK && errno != EINTR) return os_failure("lock", path, errno);
        if (Clock::now() >= until)
            return host::failure(ErrorCode::Timeout, "lock {}: held by another process for {} ms", path, timeout_ms);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
}

}  // namespace talpa::remoteproc
