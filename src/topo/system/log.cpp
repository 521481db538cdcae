#include "topo/system/log.h"

#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <mutex>

#include "base/host/terminal.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

Logging g_logging;
std::mutex g_mutex;

struct LevelName {
    const char *name, *colour;
};

LevelName name_of(Level level) {
    switch (level) {
        case Level::Debug:
            return {"DEBUG", "2"};
        case Level::Info:
            return {"INFO", "34"};
        case Level::Warn:
            return {"WARN", "33"};
        case Level::Error:
            return {"ERROR", "31"};
    }
    return {"ERROR", "31"};
}

std::string clock() {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

void write_record(Level level, std::string_view text, std::string_view code, std::string_view hint) {
    const LevelName name = name_of(level);
    std::string record;
    if (g_logging.format == Format::Json) {
        record = fmt::format(R"({{"time":"{}","level":"{}","msg":{})", clock(), name.name, json_text(text));
        if (!code.empty()) record += fmt::format(R"(,"code":"{}")", code);
        if (!hint.empty()) record += fmt::format(R"(,"hint":{})", json_text(hint));
        record += "}\n";
    } else {
        std::string shown = printable(text);
        if (!hint.empty()) shown += "\n  " + printable(hint);
        record = host::Style(stderr).colours()
                     ? fmt::format("\033[2m{}\033[0m \033[{}m{}\033[0m {}\n", clock(), name.colour, name.name, shown)
                     : fmt::format("{} {} {}\n", clock(), name.name, shown);
    }
    const std::lock_guard lock(g_mutex);
    host::say(record);
}

}  // namespace

void set_logging(Logging logging) {
    g_logging = logging;
}

Logging logging() {
    return g_logging;
}

void log(Level level, std::string_view text) {
    if (level >= g_logging.least) write_record(level, text, {}, {});
}

void log_error(const host::Error& error) {
    const std::string text = error.context.empty() ? error.message : error.context + ": " + error.message;
    write_record(Level::Error, text, error_name(error.code), error.hint);
}

void header(std::string_view title) {
    if (g_logging.least > Level::Info || g_logging.format == Format::Json) return;
    // 60 - 7 - length - 1 strokes, of which the original pads; the visible line is 56 columns (section 1.2).
    const std::size_t used = 8 + title.size();
    std::string line;
    for (std::size_t i = used; i < 60; ++i) line += "─";
    fmt::print("\n┌─ {} {}\n", printable(title, LineEnds::Replace), line);
    std::fflush(stdout);
}

std::string json_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : printable(text)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            out += fmt::format("\\{}", c);
        else if (c == '\n')
            out += "\\n";
        else if (byte < 0x20 || c == '<' || c == '>' || c == '&')
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
        else
            out += c;
    }
    return out + "\"";
}

}  // namespace talpa::topo
