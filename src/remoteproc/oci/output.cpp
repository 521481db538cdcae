#include "remoteproc/oci/output.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {
namespace {

constexpr std::size_t kPendingLimit = 256 * 1024,
                      kPipeChunk = 4096;  // PIPE_BUF: a writable pipe takes that much at once
constexpr off_t kLogLimit = 1 << 20;

}  // namespace

Output::Output(int log_fd) : log_fd_(log_fd) {
    struct stat info;
    to_stdout_ = ::fstat(1, &info) == 0 && !(S_ISCHR(info.st_mode) && info.st_rdev == 0x103);  // 1:3 is /dev/null
}

void Output::write(std::string_view text) {
    if (log_fd_ >= 0) {
        struct stat info;
        if (::fstat(log_fd_, &info) == 0 && info.st_size > kLogLimit && ::ftruncate(log_fd_, 0) == 0)
            (void)write_all(log_fd_, "[older lines dropped]\n");
        (void)write_all(log_fd_, text);
    }
    if (!to_stdout_) return;
    pending_ += text;
    if (pending_.size() > kPendingLimit) pending_.erase(0, pending_.size() - kPendingLimit);
    flush();
}

void Output::flush() {
    while (!pending_.empty()) {
        pollfd wait{1, POLLOUT, 0};
        if (::poll(&wait, 1, 0) <= 0 || (wait.revents & POLLOUT) == 0) return;
        const ssize_t n = ::write(1, pending_.data(), std::min(pending_.size(), kPipeChunk));
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR) pending_.clear();  // nobody reads any more
            return;
        }
        pending_.erase(0, static_cast<std::size_t>(n));
    }
}

void Output::finish(int timeout_ms) {
    for (int waited = 0; !pending_.empty() && waited < timeout_ms; waited += 5) {
        flush();
        const timespec wait{0, 5'000'000};
        if (!pending_.empty()) ::nanosleep(&wait, nullptr);
    }
}

}  // namespace talpa::remoteproc
