#include "base/host/error.h"

#include <array>

#include "base/host/printable.h"

namespace talpa::host {

Error::Error(const talpa::Error& e) : code(e.code) {
    std::array<char, 1024> buffer;
    message = std::string(e.render(buffer));
}

Error Error::with_context(std::string what) && {
    context = context.empty() ? std::move(what) : what + ": " + context;
    return std::move(*this);
}

Error Error::with_hint(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
}

std::string Error::describe() const {
    std::string text = context.empty() ? message : context + ": " + message;
    text += fmt::format(" ({})", error_name(code));
    if (!hint.empty()) text += "\n  " + hint;
    return printable(text, LineEnds::Keep);  // file names, operators and methods in it may be a stranger's
}

}  // namespace talpa::host
