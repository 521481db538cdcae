#include <cstdio>

#include "topo/cli/commands.h"
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

std::expected<std::optional<Destination>, Failure> optional_target(const Invocation& invocation) {
    const std::string given = chosen_target(invocation.text("--target"));
    if (given.empty()) return std::nullopt;
    auto destination = parse_destination(given);
    if (!destination) return wrong_usage(destination.error().message, destination.error().hint);
    TRY(bring_up_board(*destination));
    return *destination;
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
