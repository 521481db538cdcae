// The command line of talpa: what it understands, its help, and how it ends.
#pragma once

#include <optional>

namespace CLI {
class App;
}

namespace talpa::cli {

/// Commands beyond those that every talpa has.
class MoreCommands {
  public:
    virtual ~MoreCommands() = default;
    virtual void add(CLI::App& app) = 0;
    /// One of them in use, a line for talpa's own help.
    [[nodiscard]] virtual const char* example() const = 0;
    /// After parsing: the exit status, or nothing if none of these commands was given.
    [[nodiscard]] virtual std::optional<int> run(const CLI::App& app) = 0;
};

/// Parses, runs, prints errors; returns the exit status (base/host/exit_status.h).
[[nodiscard]] int run_app(int argc, const char* const* argv, MoreCommands* more);

}  // namespace talpa::cli
