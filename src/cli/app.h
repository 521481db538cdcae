// The command line of talpa: what it understands, its help, and how it ends.
#pragma once

namespace talpa::cli {

/// Parses, runs, prints errors; returns the exit status (base/host/exit_status.h).
[[nodiscard]] int run_app(int argc, const char* const* argv);

}  // namespace talpa::cli
