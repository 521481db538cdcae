#include "remoteproc/sys/os_error.h"

#include <cctype>
#include <cerrno>
#include <cstring>

namespace talpa::remoteproc {

std::string errno_text(int error) {
    std::string text = std::strerror(error);
    if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0)
        text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    return text;
}

host::Error os_error(std::string_view verb, std::string_view what, int error) {
    ErrorCode code = ErrorCode::AccessFailed;
    if (is_gone(error) || error == ENOTDIR || error == ESRCH) code = ErrorCode::NotFound;
    if (error == EBUSY || error == EEXIST) code = ErrorCode::InvalidState;
    if (error == ENOMEM || error == ENOSPC || error == EMFILE || error == ENFILE) code = ErrorCode::OutOfResources;
    std::string text(verb);
    text += ' ';
    text += printable(what);
    text += ": " + errno_text(error);
    return {code, std::move(text)};
}

std::string error_line(const host::Error& error) {
    return error.context.empty() ? error.message : error.context + ": " + error.message;
}

}  // namespace talpa::remoteproc
