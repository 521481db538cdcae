// One function a command. What it returns is the exit status; errors become records on standard error.
#pragma once

#include <expected>

#include "topo/cli/parse.h"
#include "topo/engine/engine.h"
#include "topo/target/target.h"

namespace talpa::topo {

/// A failure with the status that it ends in.
struct Failure {
    host::Error error;
    int status = 1;
    Failure(host::Error e, int s = 1) : error(std::move(e)), status(s) {}  // NOLINT(google-explicit-constructor): TRY
};
using Done = std::expected<int, Failure>;

[[nodiscard]] std::unexpected<Failure> wrong_usage(std::string message, std::string hint = {});

[[nodiscard]] Done run_clone(const Invocation& invocation);
[[nodiscard]] Done run_configure(const Invocation& invocation);
[[nodiscard]] Done run_lint(const Invocation& invocation);
[[nodiscard]] Done run_describe(const Invocation& invocation);
[[nodiscard]] Done run_projects(const Invocation& invocation);
[[nodiscard]] Done run_health(const Invocation& invocation);
[[nodiscard]] Done run_deploy(const Invocation& invocation);
[[nodiscard]] Done run_rollback(const Invocation& invocation);
[[nodiscard]] Done run_ps(const Invocation& invocation);
[[nodiscard]] Done run_stop(const Invocation& invocation);
[[nodiscard]] Done run_down(const Invocation& invocation);
[[nodiscard]] Done run_logs(const Invocation& invocation);
[[nodiscard]] Done run_setup_keys(const Invocation& invocation);
[[nodiscard]] Done run_migrate_ssh(const Invocation& invocation);
[[nodiscard]] Done run_install(const Invocation& invocation);
[[nodiscard]] Done run_completion(const Invocation& invocation);
[[nodiscard]] Done run_status(const Invocation& invocation);
[[nodiscard]] Done run_prune(const Invocation& invocation);
[[nodiscard]] Done run_new(const Invocation& invocation);
[[nodiscard]] Done run_doctor(const Invocation& invocation);
[[nodiscard]] Done run_upgrade(const Invocation& invocation);
[[nodiscard]] Done run_man(const Invocation& invocation);

/// Writes to standard output; what ends without a line end gets one.
void print(std::string_view text);

// Flags that several commands have.
/// The target, or nothing if none is given.
[[nodiscard]] std::expected<std::optional<Destination>, Failure> optional_target(const Invocation& invocation);
/// Wrong usage if none is given.
[[nodiscard]] std::expected<Destination, Failure> needed_target(const Invocation& invocation);
[[nodiscard]] std::expected<Milliseconds, Failure> timeout_of(const Invocation& invocation, std::string_view flag,
                                                              const char* otherwise);

/// --connect-timeout, for commands that may ask on the terminal.
[[nodiscard]] std::expected<ConnectOptions, Failure> connect_options(const Invocation& invocation);

/// --engine.
[[nodiscard]] std::expected<std::optional<EngineKind>, Failure> engine_flag(const Invocation& invocation);
/// -f, or the one in this folder; warns if there are two.
[[nodiscard]] std::expected<std::filesystem::path, Failure> compose_file(const Invocation& invocation);

}  // namespace talpa::topo
