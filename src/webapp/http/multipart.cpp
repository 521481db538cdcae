#include "webapp/http/multipart.h"

#include <algorithm>

namespace talpa::webapp::http {
namespace {

constexpr std::size_t kMaxBoundary = 70;  // RFC 2046, section 5.1.1
constexpr std::size_t kMaxPartHead = 4096;

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    return out;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

std::unexpected<host::Error> malformed(std::size_t at, std::string_view what) {
    return host::failure(ErrorCode::InvalidArgument, "malformed form data at byte {}: {}", at, what);
}

/// What a browser gives as a name may be a whole path.
std::string base_name(std::string name) {
    const std::size_t slash = name.find_last_of("/\\");
    if (slash != std::string::npos) name.erase(0, slash + 1);
    return name;
}

}  // namespace

std::string header_parameter(std::string_view value, std::string_view name) {
    // Parameters stand behind semicolons, which a quoted value may hold too.
    std::size_t at = value.find(';');
    while (at != std::string_view::npos && at < value.size()) {
        ++at;
        const std::size_t equals = value.find('=', at);
        if (equals == std::string_view::npos) return {};
        const std::string key = lower(trimmed(value.substr(at, equals - at)));
        std::size_t v = equals + 1;
        while (v < value.size() && (value[v] == ' ' || value[v] == '\t')) ++v;
        std::string out;
        if (v < value.size() && value[v] == '"') {
            for (++v; v < value.size() && value[v] != '"'; ++v) {
                if (value[v] == '\\' && v + 1 < value.size() && (value[v + 1] == '"' || value[v + 1] == '\\')) ++v;
                out += value[v];
            }
            at = value.find(';', v);
        } else {
            at = value.find(';', v);
            out = trimmed(value.substr(v, at == std::string_view::npos ? at : at - v));
        }
        if (key == name) return out;
    }
    return {};
}

host::Result<std::vector<Part>> parse_multipart(std::string_view content_type, std::string_view body,
                                                std::size_t max_parts) {
    const std::string boundary = header_parameter(content_type, "boundary");
    if (boundary.empty() || boundary.size() > kMaxBoundary)
        return host::failure(ErrorCode::InvalidArgument, "the content type has no usable boundary");
    const std::string first = "--" + boundary, between = "\r\n--" + boundary;

    std::vector<Part> parts;
    // A preamble may stand in front.
    std::size_t at = body.starts_with(first) ? 0 : body.find(between);
    if (at == std::string_view::npos) return malformed(0, "the boundary is nowhere");
    at += at == 0 && body.starts_with(first) ? first.size() : between.size();
    for (;;) {
        if (body.substr(at, 2) == "--") return parts;
        // Padding may follow a boundary.
        while (at < body.size() && (body[at] == ' ' || body[at] == '\t')) ++at;
        if (body.substr(at, 2) != "\r\n") return malformed(at, "a boundary does not end its line");
        if (parts.size() == max_parts)
            return host::failure(ErrorCode::InvalidArgument, "more than {} parts of form data", max_parts);
        at += 2;
        Part part;
        for (std::size_t head = 0;;) {
            const std::size_t end = body.find("\r\n", at);
            if (end == std::string_view::npos) return malformed(at, "the head of a part does not end");
            const std::string_view line = body.substr(at, end - at);
            head += line.size() + 2;
            if (head > kMaxPartHead) return malformed(at, "the head of a part is too long");
            at = end + 2;
            if (line.empty()) break;
            const std::size_t colon = line.find(':');
            if (colon == std::string_view::npos) return malformed(at, "a line of a part's head has no colon");
            const std::string name = lower(trimmed(line.substr(0, colon)));
            const std::string_view value = trimmed(line.substr(colon + 1));
            if (name == "content-disposition") {
                part.name = header_parameter(value, "name");
                part.filename = base_name(header_parameter(value, "filename"));
            } else if (name == "content-type") {
                part.content_type = value;
            }
        }
        if (part.name.empty()) return malformed(at, "a part has no name");
        // The line end before a boundary belongs to it; an empty part may begin with the boundary itself.
        const bool empty = body.substr(at).starts_with(first);
        const std::size_t end = empty ? at : body.find(between, at);
        if (end == std::string_view::npos) return malformed(at, "the last part has no end");
        part.bytes = body.substr(at, end - at);
        at = end + (empty ? first.size() : between.size());
        parts.push_back(std::move(part));
    }
}

}  // namespace talpa::webapp::http
