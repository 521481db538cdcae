#include "base/host/fd.h"

#include <algorithm>
#include <cerrno>

namespace talpa::host {

std::expected<std::string, int> read_fd(int fd, std::size_t limit_bytes) {
    std::string text;
    char buffer[4096];
    while (text.size() < limit_bytes) {
        const ssize_t n =
            ::pread(fd, buffer, std::min(sizeof buffer, limit_bytes - text.size()), static_cast<off_t>(text.size()));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return std::unexpected(errno);
        if (n == 0) break;
        text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
}

std::expected<void, int> write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return std::unexpected(errno);
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
}

}  // namespace talpa::host
