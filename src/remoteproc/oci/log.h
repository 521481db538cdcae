// The runtime's log: structured text on standard error; with --log FILE also there, as text or JSON, because engines of
// the runc kind show the user what they find in that file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace talpa::remoteproc {

enum class LogLevel : std::uint8_t { Debug, Info, Warn, Error };
using LogFields = std::vector<std::pair<std::string_view, std::string>>;

struct LogSettings {
    LogLevel level = LogLevel::Info;
    std::string file;  ///< empty: none
    bool json = false;
};
void set_log(LogSettings settings);

void log(LogLevel level, std::string_view message, const LogFields& fields = {});
/// A reported error, into --log FILE only (standard error gets "Error: …" from main).
void log_error_to_file(std::string_view message);

/// Text as a JSON string, quotes included; bytes that are not UTF-8 become '?'.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace talpa::remoteproc
