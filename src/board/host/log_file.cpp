#include "board/host/log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

namespace talpa::board {

LogFile::LogFile(const std::filesystem::path& folder, std::string name) : name_(std::move(name)) {
    folder_ = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    open();
}

LogFile::~LogFile() {
    for (const int fd : {fd_, folder_})
        if (fd >= 0) ::close(fd);
}

void LogFile::open() {
    fd_ = ::openat(folder_, name_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat st{};
    size_ = fd_ >= 0 && ::fstat(fd_, &st) == 0 ? static_cast<std::size_t>(st.st_size) : 0;
}

void LogFile::append(std::string_view line) {
    if (size_ > kLimitBytes) {
        ::close(fd_);
        (void)!::renameat(folder_, name_.c_str(), folder_, (name_ + ".old").c_str());
        open();
    }
    const std::string text = std::string(line) + "\n";
    if (const ssize_t n = ::write(fd_, text.data(), text.size()); n > 0) size_ += static_cast<std::size_t>(n);
}

}  // namespace talpa::board
