// errno as the text that engines and users search for, and the names of base/host that every file here speaks with.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "base/host/error.h"
#include "base/host/fd.h"
#include "base/host/printable.h"

namespace talpa::remoteproc {

template <typename T>
using Result = host::Result<T>;

using host::Fd;
using host::printable;
using host::read_fd;
using host::write_all;

/// "device or resource busy": strerror with a small first letter, as the runtimes that engines know print it.
[[nodiscard]] std::string errno_text(int error);

/// Whether an errno says that the device behind a file is no more: ENOENT, ENODEV, and ENOTCONN or ECONNABORTED of a
/// board's file system that was killed.
[[nodiscard]] inline bool is_gone(int error) {
    return error == ENOENT || error == ENODEV || error == ENOTCONN || error == ECONNABORTED;
}

/// "open /x: no such file or directory". The code follows the errno; EACCES and EPERM carry a hint.
[[nodiscard]] host::Error os_error(std::string_view verb, std::string_view what, int error);
[[nodiscard]] inline std::unexpected<host::Error> os_failure(std::string_view verb, std::string_view what, int error) {
    return std::unexpected<host::Error>(os_error(verb, what, error));
}

/// The error as one line without talpa's code name: "context: message".
[[nodiscard]] std::string error_line(const host::Error& error);

}  // namespace talpa::remoteproc
