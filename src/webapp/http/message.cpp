#include "webapp/http/message.h"

namespace talpa::webapp::http {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::string percent_decoded(std::string_view text, bool plus_is_space) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
            out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else {
            out += plus_is_space && text[i] == '+' ? ' ' : text[i];
        }
    }
    return out;
}

bool parse_target(std::string_view target, Head& head) {
    if (target.empty() || target.front() != '/') return false;
    const std::size_t question = target.find('?');
    head.path = percent_decoded(target.substr(0, question), false);
    if (question == std::string_view::npos) return true;
    for (std::string_view rest = target.substr(question + 1); !rest.empty();) {
        const std::size_t end = std::min(rest.find('&'), rest.size());
        const std::string_view pair = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const std::size_t equals = std::min(pair.find('='), pair.size());
        if (equals == 0) continue;
        head.query[percent_decoded(pair.substr(0, equals), true)] =
            percent_decoded(pair.substr(std::min(equals + 1, pair.size())), true);
    }
    return true;
}

}  // namespace talpa::webapp::http
