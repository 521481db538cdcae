// The board's kernel log on disk, of bounded size: when it has grown too long, what there was becomes log.old.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace talpa::board {

class LogFile {
  public:
    /// Opens `name` in `folder`, and keeps both open: the board covers the folder with one of its own.
    LogFile(const std::filesystem::path& folder, std::string name);
    ~LogFile();
    LogFile(const LogFile&) = delete;
    LogFile& operator=(const LogFile&) = delete;

    /// One line, its newline added. What cannot be written is lost.
    void append(std::string_view line);

    static constexpr std::size_t kLimitBytes = std::size_t{4} << 20;

  private:
    void open();

    std::string name_;
    int folder_ = -1, fd_ = -1;
    std::size_t size_ = 0;
};

}  // namespace talpa::board
