#include "remoteproc/oci/core_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <ctime>

#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc {

CoreFile::Reading CoreFile::read() const {
    char text[64];
    ssize_t n;
    do n = ::pread(fd_, text, sizeof text, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0) return {std::nullopt, errno};
    return {parse_state(std::string_view(text, static_cast<std::size_t>(n))), 0};
}

int CoreFile::write(std::string_view word) const {
    ssize_t n;
    do n = ::pwrite(fd_, word.data(), word.size(), 0);
    while (n < 0 && errno == EINTR);
    return n < 0 ? errno : 0;
}

int CoreFile::stop() const {
    int error = 0;
    for (int attempt = 0; attempt < 200; ++attempt) {
        const Reading now = read();
        if (now.error != 0) return is_gone(now.error) ? 0 : now.error;
        if (now.state && !is_live(*now.state)) return 0;
        error = write("stop");
        if (error == EACCES || error == EPERM) return error;
        if (error != 0) {
            const timespec wait{0, 20'000'000};
            ::nanosleep(&wait, nullptr);
        }
    }
    return error != 0 ? error : EBUSY;
}

void note_event(int events_fd, std::string_view text) {
    if (events_fd < 0) return;
    (void)write_all(events_fd, fmt::format("{} {}\n", unix_ns_now(), text));
}

void note_incident(int events_fd, std::string_view text) {
    struct stat info{};
    if (events_fd >= 0 && ::fstat(events_fd, &info) == 0 && info.st_size < static_cast<off_t>(kIncidentLimit))
        note_event(events_fd, text);
}

}  // namespace talpa::remoteproc
