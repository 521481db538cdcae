// A file descriptor that closes itself, and whole reads and writes of small files through one.
#pragma once

#include <unistd.h>

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace talpa::host {

class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    void reset() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }

  private:
    int fd_ = -1;
};

/// What a small file holds now: pread(2) from offset 0 until the end, at most `limit_bytes`; errno on failure.
[[nodiscard]] std::expected<std::string, int> read_fd(int fd, std::size_t limit_bytes);
/// All of `text` in as few write(2) as the kernel takes; errno on failure.
[[nodiscard]] std::expected<void, int> write_all(int fd, std::string_view text);

}  // namespace talpa::host
