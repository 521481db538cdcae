// Variables for Compose files: the process's environment before the project's .env file, and `${…}` interpolation as
// Compose does it ($NAME, ${NAME}, ${NAME:-default}, ${NAME-default}, ${NAME:?error}, ${NAME?error}, ${NAME:+other},
// ${NAME+other}, $$, nested in the second parts).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topo/project/finding.h"

namespace talpa::topo {

class Variables {
  public:
    /// Sees the process's environment when `with_environment`.
    explicit Variables(bool with_environment = true) : with_environment_(with_environment) {}
    [[nodiscard]] std::optional<std::string> find(const std::string& name) const;
    /// Wins over everything.
    void set(std::string name, std::string value) { over_[std::move(name)] = std::move(value); }
    /// What counts where the environment says nothing: the .env file.
    void set_default(std::string name, std::string value) { under_[std::move(name)] = std::move(value); }
    /// Names that were asked for, without a default, and are nowhere set (Compose warns about them).
    [[nodiscard]] const std::set<std::string>& missing() const { return missing_; }
    void note_missing(const std::string& name) const { missing_.insert(name); }

  private:
    bool with_environment_;
    std::map<std::string, std::string> over_, under_;
    mutable std::set<std::string> missing_;
};

/// Findings: compose.interpolation.
[[nodiscard]] Checked<std::string> interpolate(std::string_view text, const Variables& variables,
                                               const std::string& file, Mark mark);

/// An env file: NAME=value lines, comments, `export`, quotes; values interpolated as Compose does. Findings:
/// env.syntax.
[[nodiscard]] Checked<std::vector<std::pair<std::string, std::string>>> parse_env_file(std::string_view text,
                                                                                       const std::string& file,
                                                                                       const Variables& variables);
/// Reads FOLDER/.env into the defaults, if there is one.
[[nodiscard]] Checked<void> load_dotenv(const std::filesystem::path& folder, Variables& variables);

}  // namespace talpa::topo
