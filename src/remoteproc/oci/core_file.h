// A core through an open `state` attribute: no path is walked any more, so it works in any mount namespace and without
// privileges. Used by the proxy and the guard, which must stay small.
#pragma once

#include <optional>

#include "remoteproc/sysfs/device.h"

namespace talpa::remoteproc {

class CoreFile {
  public:
    explicit CoreFile(int fd) : fd_(fd) {}

    struct Reading {
        std::optional<CoreState> state;  ///< nothing: an unknown word
        int error = 0;                   ///< errno of the read
    };
    [[nodiscard]] Reading read() const;
    /// Writes a word; 0 or an errno.
    [[nodiscard]] int write(std::string_view word) const;
    /// Stops the core and sees it stopped, however often that takes. 0 or an errno.
    [[nodiscard]] int stop() const;

  private:
    int fd_;
};

/// Appends "UNIX-NANOSECONDS text\n" in one write.
void note_event(int events_fd, std::string_view text);

/// What may happen again and again: left out once the file has `kIncidentLimit` bytes, so that those who read the first
/// MiB of it still find how the firmware ended.
constexpr std::size_t kIncidentLimit = 512 * 1024;
void note_incident(int events_fd, std::string_view text);

}  // namespace talpa::remoteproc
