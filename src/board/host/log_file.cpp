#include "board/host/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace talpa::board {

LogFile::LogFile(std::filesystem::path path) : path_(std::move(path)) {
    open();
}

LogFile::~LogFile() {
    if (fd_ >= 0) ::close(fd_);
}

void LogFile::open() {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct stat st{};
    size_ = fd_ >= 0 && ::fstat(fd_, &st) == 0 ? static_cast<std::size_t>(st.st_size) : 0;
}

void LogFile::append(std::string_view line) {
    if (size_ > kLimitBytes) {
        ::close(fd_);
        std::error_code error;
        std::filesystem::rename(path_, path_.string() + ".old", error);
        open();
    }
    const std::string text = std::string(line) + "\n";
    if (const ssize_t n = ::write(fd_, text.data(), text.size()); n > 0) size_ += static_cast<std::size_t>(n);
}

}  // namespace talpa::board
