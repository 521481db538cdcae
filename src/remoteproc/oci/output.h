// Where the firmware's text goes: the container's standard output, without ever blocking on a reader that is slow or
// gone, and the container's own log file, which is kept short.
#pragma once

#include <string>
#include <string_view>

namespace talpa::remoteproc {

class Output {
  public:
    /// `log_fd` -1: no file. Standard output counts only if it is not /dev/null.
    explicit Output(int log_fd);

    void write(std::string_view text);
    /// Writes what waited; call it from time to time.
    void flush();
    /// Gives a slow reader that long to take the rest.
    void finish(int timeout_ms);

  private:
    int log_fd_;
    bool to_stdout_;
    std::string pending_;
};

}  // namespace talpa::remoteproc
