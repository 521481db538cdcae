#include "remoteproc/oci/log.h"

#include <fcntl.h>

#include <array>

#include "base/host/printable.h"
#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc {
namespace {

LogSettings& settings() {
    static LogSettings instance;
    return instance;
}

constexpr std::array<std::string_view, 4> kUpper{"DEBUG", "INFO", "WARN", "ERROR"};
constexpr std::array<std::string_view, 4> kLower{"debug", "info", "warning", "error"};

std::string text_line(LogLevel level, std::string_view message, const LogFields& fields) {
    // Millisecond stamps, as the original's logger prints them.
    const std::string now = rfc3339(unix_ns_now());
    std::string line = fmt::format("time={}Z level={} msg={}", now.substr(0, 23),
                                   kUpper[static_cast<std::size_t>(level)], json_quoted(message));
    for (const auto& [key, value] : fields) line += fmt::format(" {}={}", key, json_quoted(value));
    return line + "\n";
}

std::string json_line(LogLevel level, std::string_view message, const LogFields& fields) {
    std::string line =
        fmt::format("{{\"level\":\"{}\",\"msg\":{},\"time\":\"{}\"", kLower[static_cast<std::size_t>(level)],
                    json_quoted(message), rfc3339(unix_ns_now()));
    for (const auto& [key, value] : fields) line += fmt::format(",\"{}\":{}", key, json_quoted(value));
    return line + "}\n";
}

void to_file(LogLevel level, std::string_view message, const LogFields& fields) {
    const LogSettings& s = settings();
    if (s.file.empty()) return;
    // O_NONBLOCK: the file may be a FIFO that nobody reads.
    const Fd fd(::open(s.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
    if (fd) (void)write_all(fd.get(), s.json ? json_line(level, message, fields) : text_line(level, message, fields));
}

}  // namespace

void set_log(LogSettings s) {
    settings() = std::move(s);
}

void log(LogLevel level, std::string_view message, const LogFields& fields) {
    if (level < settings().level) return;
    (void)write_all(2, text_line(level, message, fields));
    to_file(level, message, fields);
}

void log_error_to_file(std::string_view message) {
    to_file(LogLevel::Error, message, {});
}

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte == '"' || byte == '\\') {
            out += '\\';
            out += text[i];
        } else if (byte == '\n') {
            out += "\\n";
        } else if (byte < 0x20 || byte == 0x7F) {
            out += fmt::format("\\u{:04x}", byte);
        } else if (const std::size_t length = host::utf8_length(text.substr(i)); length > 0) {
            out += text.substr(i, length);
            i += length - 1;
        } else {
            out += '?';
        }
    }
    return out + "\"";
}

}  // namespace talpa::remoteproc
