#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "topo/cli/commands.h"
#include "topo/cli/look_at_target.h"
#include "topo/system/text.h"

namespace talpa::topo {

std::unexpected<Failure> wrong_usage(std::string message, std::string hint) {
    return std::unexpected(Failure(host::Error(ErrorCode::InvalidArgument, std::move(message), std::move(hint)), 2));
}

void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!text.empty() && text.back() != '\n') std::fputc('\n', stdout);
    std::fflush(stdout);
}

namespace {

// Only what puts something on a board brings it up: elsewhere a typing error in its name would make a new one.
bool may_start_a_board(const Invocation& invocation) {
    if (invocation.command->name == "deploy") return !invocation.on("--plan");
    return invocation.command->name == "install";
}

host::Result<void> board_is_up(const std::string& name) {
    std::error_code ignored;
    const std::filesystem::path beside =
        std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "talpa";
    const std::string talpa = std::filesystem::exists(beside, ignored) ? beside.string() : "talpa";
    TRY_ASSIGN(const Outcome answer,
               capture({.argv = {talpa, "board", "ssh-config", "--name", name}, .timeout = Milliseconds(20'000)}));
    if (answer.ok()) return {};
    return std::unexpected(host::Error(ErrorCode::NotFound, fmt::format("the board \"{}\" is not up", name),
                                       "talpa board up --name " + name));
}

}  // namespace

std::expected<std::optional<Destination>, Failure> given_target(const Invocation& invocation) {
    const std::vector<std::string> all = invocation.all("--target");
    if (std::any_of(all.begin(), all.end(), [&](const std::string& one) { return one != all.front(); }))
        return wrong_usage(fmt::format("topo {} takes one --target (deploy takes several)", invocation.command->name));
    const std::string given = chosen_target(invocation.text("--target"));
    if (given.empty()) return std::nullopt;
    auto destination = parse_destination(given);
    if (!destination) return wrong_usage(destination.error().message, destination.error().hint);
    return *destination;
}

std::expected<std::optional<Destination>, Failure> optional_target(const Invocation& invocation) {
    TRY_ASSIGN(const auto destination, given_target(invocation));
    if (!destination) return std::nullopt;
    if (destination->board && !may_start_a_board(invocation)) TRY(board_is_up(destination->host));
    TRY(bring_up_board(*destination));
    return destination;
}

TargetHealth look_at_target(const Destination& destination, const HealthOptions& options) {
    if (!destination.board) return check_target(destination, options);
    auto up = board_is_up(destination.host);
    if (up) up = bring_up_board(destination);  // it is up: only how it is reached is written down
    if (up) return check_target(destination, options);
    return {.destination = destination,
            .connectivity = {"Connectivity", Status::Error, up.error().message, Fix{kBringUp, up.error().hint}},
            .dependencies = {},
            .driver = {std::string(kDriverCheck), Status::Info, "not asked", {}}};
}

std::expected<Destination, Failure> needed_target(const Invocation& invocation) {
    TRY_ASSIGN(const auto destination, optional_target(invocation));
    if (!destination)
        return wrong_usage(
            "target not specified: use --target with an SSH destination (e.g. user@example.local) or set TOPO_TARGET");
    return *destination;
}

std::expected<ConnectOptions, Failure> connect_options(const Invocation& invocation) {
    ConnectOptions options{.timeout = {}, .batch = false, .accept_new_host_keys = false};
    TRY_ASSIGN(options.timeout, timeout_of(invocation, "--connect-timeout", "30s"));
    return options;
}

std::expected<Milliseconds, Failure> timeout_of(const Invocation& invocation, std::string_view flag,
                                                const char* otherwise) {
    const std::string text = invocation.text(flag, otherwise);
    const auto value = parse_duration(text);
    if (!value)
        return wrong_usage(
            fmt::format("invalid argument \"{}\" for \"{}\" flag: write a duration such as 5s or 1m30s", text, flag));
    return *value;
}

}  // namespace talpa::topo
