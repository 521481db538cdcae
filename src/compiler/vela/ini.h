// Configuration files as Vela reads them (its OPTIONS.md, "Configuration File"): sections of keys and values in the
// syntax of Python's ConfigParser. Sections may inherit from others, later files add to earlier ones.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host/error.h"

namespace talpa::compiler::vela {

/// In small letters, as keys are compared.
[[nodiscard]] std::string lower(std::string_view s);

/// A value and where it stands, for messages.
struct Setting {
    std::string value, file, section, key;  ///< the key as written
    std::size_t line = 0;

    /// "file.ini:12: [System_Config.X] core_clock"
    [[nodiscard]] std::string where() const;
};

class Ini {
  public:
    /// Adds a file's text: keys of a section that was there before are replaced. Errors name file and line: text
    /// outside a section, a line without '=' or ':', a section or key that stands twice, interpolation ("%(name)s").
    [[nodiscard]] host::Result<void> add(std::string_view text, const std::string& file);

    [[nodiscard]] bool has(std::string_view section) const { return sections_.contains(std::string(section)); }
    /// Names behind a prefix: of "System_Config." those that --system-config can be.
    [[nodiscard]] std::vector<std::string> names(std::string_view prefix) const;

    /// All that a section says, what it inherits included; keys in small letters. Errors: no such section, a section
    /// to inherit from that there is not, sections that inherit from each other in a circle.
    [[nodiscard]] host::Result<std::map<std::string, Setting>> settings(const std::string& section) const;

  private:
    std::map<std::string, std::map<std::string, Setting>> sections_;
    std::map<std::string, Setting> defaults_;  ///< [DEFAULT]: of every section
};

}  // namespace talpa::compiler::vela
