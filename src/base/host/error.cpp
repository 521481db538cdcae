#include "base/host/error.h"

#include <array>

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
    // File names, operators and methods in it may be a stranger's: nothing that could drive a terminal gets through.
    for (char& c : text)
        if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F) c = '?';
    return text;
}

}  // namespace talpa::host
