#include "board/host/firmware_search.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace talpa::board {
namespace {

constexpr std::size_t kLongestPath = 256;                     // of the module parameter, its NUL included
constexpr std::size_t kLongestFile = 4096;                    // PATH_MAX: the name's buffer
constexpr off_t kLargestFirmware = off_t{256} * 1024 * 1024;  // far more than the M33 can hold

/// Does a component of the name climb out of its folder? Kernels since 6.12 refuse that, and so do we for all.
bool climbs(std::string_view name) {
    for (std::size_t from = 0; from <= name.size();) {
        const std::size_t slash = std::min(name.find('/', from), name.size());
        if (name.substr(from, slash - from) == "..") return true;
        from = slash + 1;
    }
    return false;
}

/// Reads a regular file whole. The error is -ENOENT for all that is not one, as the kernel goes on searching then.
FirmwareFile read_regular(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return {{}, errno == ENAMETOOLONG ? -ENAMETOOLONG : -ENOENT};
    FirmwareFile file;
    struct stat st{};
    if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        file.error = -ENOENT;
    } else if (st.st_size > kLargestFirmware) {
        file.error = -EFBIG;
    } else {
        file.bytes.resize(static_cast<std::size_t>(st.st_size));
        for (std::size_t done = 0; done < file.bytes.size();) {
            const ssize_t n = ::read(fd, file.bytes.data() + done, file.bytes.size() - done);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) {  // it shrank under our hands, or the disk fails
                file.error = -EIO;
                break;
            }
            done += static_cast<std::size_t>(n);
        }
    }
    ::close(fd);
    return file;
}

}  // namespace

FirmwareFile FirmwareSearch::find(const std::string& name) const {
    if (name.empty() || climbs(name)) return {{}, -EINVAL};
    std::vector<std::string> folders;
    {
        const std::lock_guard lock(mutex_);
        if (!path_.empty()) folders.push_back(path_);
    }
    utsname kernel{};
    ::uname(&kernel);
    const std::string release = kernel.release;
    for (const char* folder : {"/lib/firmware/updates/", "/lib/firmware/updates", "/lib/firmware/", "/lib/firmware"})
        folders.push_back(std::string(folder).ends_with('/') ? folder + release : folder);
    for (const std::string& folder : folders) {
        const std::string path = root_.string() + "/" + folder + "/" + name;
        if (path.size() >= kLongestFile) return {{}, -ENAMETOOLONG};
        FirmwareFile file = read_regular(path);
        if (file.error != -ENOENT) return file;
    }
    return {{}, -ENOENT};
}

std::string FirmwareSearch::read_path() const {
    const std::lock_guard lock(mutex_);
    return path_ + "\n";
}

int FirmwareSearch::write_path(std::string_view text) {
    if (text.size() >= kLongestPath) return -ENOSPC;
    if (!keep_newline_) text = text.substr(0, text.find('\n'));
    const std::lock_guard lock(mutex_);
    path_ = text;
    return 0;
}

}  // namespace talpa::board
