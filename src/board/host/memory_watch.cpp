#include "board/host/memory_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "board/machine/memory_file.h"
#include "link/memory_map.h"

namespace talpa::board {

MemoryWatch::MemoryWatch(KernelLog& log)
    : log_(log), changes_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), end_(::eventfd(0, EFD_CLOEXEC)) {}

MemoryWatch::~MemoryWatch() {
    const std::uint64_t one = 1;
    (void)!::write(end_, &one, sizeof one);
    if (thread_.joinable()) thread_.join();
    for (const Watched& file : files_) ::close(file.file);
    for (const int fd : {changes_, end_})
        if (fd >= 0) ::close(fd);
}

void MemoryWatch::add(const std::filesystem::path& file) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    const int descriptor = fd < 0 ? -1 : ::inotify_add_watch(changes_, file.c_str(), IN_MODIFY);
    if (descriptor >= 0)
        files_.push_back({descriptor, file, fd});
    else if (fd >= 0)
        ::close(fd);
}

void MemoryWatch::begin() {
    if (!files_.empty()) thread_ = std::thread([this] { watch(); });
}

void MemoryWatch::watch() {
    for (;;) {
        pollfd fds[] = {{changes_, POLLIN, 0}, {end_, POLLIN, 0}};
        if (::poll(fds, 2, -1) < 0 && errno != EINTR) return;
        if (fds[1].revents != 0) return;
        alignas(inotify_event) char events[4096];
        while (::read(changes_, events, sizeof events) > 0) {
        }
        // Few files: all of them, whichever it was.
        for (const Watched& file : files_) look(file);
    }
}

void MemoryWatch::look(const Watched& file) {
    struct stat st{};
    if (::fstat(file.file, &st) != 0) return;
    auto size = static_cast<std::uint64_t>(st.st_size);
    if (size < kMemoryFileBytes && ::ftruncate(file.file, static_cast<off_t>(kMemoryFileBytes)) != 0) return;
    if (const auto cut = take_cut(st.st_ino)) size = std::min(size, *cut);  // the M33 or the NPU was there first
    if (size >= kMemoryFileBytes) return;
    log_.line(
        "board: {} was truncated at 0x{:X}: what lay behind is zeros now{}", file.path.filename().string(), size,
        size < link::kDtcmSystem + link::kDtcm.size ? ", the M33's code among it: stop it and start it again" : "");
}

}  // namespace talpa::board
