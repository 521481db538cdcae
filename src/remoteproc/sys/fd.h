// A file descriptor that closes itself, and errno as the text that engines and users search for.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/host/error.h"

namespace talpa::remoteproc {

template <typename T>
using Result = host::Result<T>;

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

/// "device or resource busy": strerror with a small first letter, as the runtimes that engines know print it.
[[nodiscard]] std::string errno_text(int error);

/// "open /x: no such file or directory". The code follows the errno; EACCES and EPERM carry a hint.
[[nodiscard]] host::Error os_error(std::string_view verb, std::string_view what, int error);
[[nodiscard]] inline std::unexpected<host::Error> os_failure(std::string_view verb, std::string_view what, int error) {
    return std::unexpected<host::Error>(os_error(verb, what, error));
}

/// A stranger's text made fit for one line of a log: control bytes become \xNN.
[[nodiscard]] std::string printable(std::string_view text);

/// The error as one line without talpa's code name: "context: message".
[[nodiscard]] std::string error_line(const host::Error& error);

/// What a small file holds now: read(2) from offset 0 until the end, at most `limit_bytes`; errno on failure.
[[nodiscard]] std::expected<std::string, int> read_fd(int fd, std::size_t limit_bytes);
/// All of `text` in as few write(2) as the kernel takes; errno on failure.
[[nodiscard]] std::expected<void, int> write_all(int fd, std::string_view text);

}  // namespace talpa::remoteproc
