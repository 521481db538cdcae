// What topo says beside its results: log records on standard error, plain or JSON (topo spec, section 1.2), section
// headers, and how an error becomes a record.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/host/error.h"

namespace talpa::topo {

enum class Format { Plain, Json };
enum class Level { Debug, Info, Warn, Error };

struct Logging {
    Format format = Format::Plain;
    Level least = Level::Info;  ///< -q: Warn, -v: Debug
};
void set_logging(Logging logging);
[[nodiscard]] Logging logging();

/// "HH:MM:SS LEVEL text", or one line of JSON. Control characters of the text are replaced.
void log(Level level, std::string_view text);
inline void info(std::string_view text) {
    log(Level::Info, text);
}
inline void warn(std::string_view text) {
    log(Level::Warn, text);
}

/// An ERROR record; its hint is a second line, in JSON the fields `code` and `hint`.
void log_error(const host::Error& error);

/// An empty line and "┌─ Title ───…" of 56 columns, on standard output. Silent with -q, and in JSON.
void header(std::string_view title);

/// A JSON string with its quotes; <, >, & as \u003c, … (as the original writes them).
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace talpa::topo
