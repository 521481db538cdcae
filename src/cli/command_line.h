// What the commands of talpa share: how they end, how errors of usage are told, flags that several have.
#pragma once

#include "base/host/error.h"
#include "cli/picture_options.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace talpa::cli {

inline constexpr const char* kExitFooter = "Exit status: 0 success, 1 the work failed, 2 wrong usage, 130 interrupted.";

/// --mean, --std, --range: how pictures become inputs.
void add_normalisation(CLI::App& command, PictureOptions& options);
/// Integers from `low` to `high`, without CLI11's own text for it in the help.
[[nodiscard]] CLI::Validator between(int low, int high);

/// Tells the error with the command's help as a hint; status 2.
[[nodiscard]] int usage_error(const host::Error& error, const char* command);
/// A run of a subcommand, its output flushed and known to have arrived; `trouble` is the status of an error.
[[nodiscard]] int finish(host::Result<int> status, int trouble);
[[nodiscard]] host::Result<int> succeed(host::Result<void> result);

}  // namespace talpa::cli
