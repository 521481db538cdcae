#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/host/exit_status.h"
#include "base/host/terminal.h"

namespace talpa::cli {
namespace {

using host::Error;
using host::Result;

void report(const Error& error) {
    host::say(fmt::format("{} {}\n", host::Style(stderr).red("talpa:"), error.describe()));
}

}  // namespace

void add_normalisation(CLI::App& command, PictureOptions& o) {
    command.add_option("--mean", o.mean, "Subtract this from the scaled values: one number or three (red,green,blue)")
        ->type_name("M[,M,M]");
    command.add_option("--std", o.std, "Then divide by this")->type_name("S[,S,S]");
    command
        .add_option("--range", o.range,
                    "Scale bytes 0..255 to this range first (default: -1,1; 0,1 with --mean or --std)")
        ->type_name("LOW,HIGH");
}

CLI::Validator between(int low, int high) {
    return CLI::Range(low, high).description("");
}

int usage_error(const Error& error, const char* command) {
    report(error.hint.empty() ? Error(error).with_hint(fmt::format("talpa {} --help", command)) : error);
    return host::kExitUsage;
}

int finish(Result<int> status, int trouble) {
    if (status && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
        status = host::failure(ErrorCode::AccessFailed, "cannot write to standard output");
    if (status) return *status;
    report(status.error());
    return trouble;
}

Result<int> succeed(Result<void> result) {
    TRY(std::move(result));
    return host::kExitSuccess;
}

}  // namespace talpa::cli
