#include "topo/cli/app.h"

#include <cstdio>
#include <new>

#include "base/host/exit_status.h"
#include "topo/cli/commands.h"
#include "topo/system/next_command.h"
#include "topo/target/target.h"

namespace talpa::topo {
namespace {

struct Handler {
    std::string_view name;
    Done (*run)(const Invocation&);
};

constexpr Handler kHandlers[] = {
    {"clone", run_clone},
    {"configure", run_configure},
    {"lint", run_lint},
    {"describe", run_describe},
    {"projects", run_projects},
    {"health", run_health},
    {"deploy", run_deploy},
    {"rollback", run_rollback},
    {"ps", run_ps},
    {"stop", run_stop},
    {"down", run_down},
    {"logs", run_logs},
    {"setup-keys", run_setup_keys},
    {"migrate-ssh", run_migrate_ssh},
    {"install", run_install},
    {"completion", run_completion},
    {"man", run_man},
    {"status", run_status},
    {"prune", run_prune},
    {"new", run_new},
    {"upgrade", run_upgrade},
    {"doctor", run_doctor},
};

// A board that was brought up for what has failed, or was interrupted, runs on unless somebody is told of it.
void tell_of_board() {
    if (const std::string name = board_brought_up(); !name.empty())
        warn(fmt::format("the board \"{}\" was brought up for this and runs; to end it: talpa board down --name {}",
                         name, name));
}

int fail_with(const Failure& failure) {
    tell_of_board();  // before the error, which is the last that is said
    if (interrupted()) {
        // What was undone, if there was anything to undo, stands behind the word.
        log_error(failure.error.message.starts_with("interrupted") ? failure.error : interruption());
        return host::kExitInterrupted;
    }
    log_error(failure.error);
    return failure.status;
}

std::string answer_json(const Invocation& invocation) {
    if (invocation.version)
        return fmt::format("{{\"version\":{},\"commit\":{}}}", json_text(TALPA_TOPO_VERSION),
                           json_text(TALPA_TOPO_COMMIT));
    return fmt::format("{{\"help\":{}}}", json_text(*invocation.answer));
}

// The status, unless what was to be said could not be.
int written(int status) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    return fail_with(host::Error(ErrorCode::AccessFailed, "cannot write to standard output"));
}

int dispatch(const Invocation& invocation) {
    for (const Handler& handler : kHandlers) {
        if (handler.name != invocation.command->name) continue;
        remember_given({invocation.text("--target"), invocation.text("--file"), invocation.text("--engine")});
        const Done done = handler.run(invocation);
        if (!done) return fail_with(done.error());
        const int status = interrupted() ? host::kExitInterrupted : *done;
        if (status != 0) tell_of_board();
        return written(status);
    }
    return fail_with(host::Error(ErrorCode::NotSupported, "this command is not built in"));
}

}  // namespace

int run_topo(int argc, const char* const* argv) {
    handle_interrupts();
    if (wants_json(argc, argv)) set_logging({.format = Format::Json, .least = Level::Info});
    try {
        const auto invocation = parse_command_line(argc, argv);
        if (!invocation)
            return fail_with({host::Error(ErrorCode::InvalidArgument, invocation.error(), usage_hint(argc, argv)),
                              host::kExitUsage});
        if (invocation->answer) {
            print(invocation->json() ? answer_json(*invocation) : *invocation->answer);
            return written(host::kExitSuccess);
        }
        set_logging(invocation->logging);
        return dispatch(*invocation);
    } catch (const std::bad_alloc&) {
        return fail_with(host::Error(ErrorCode::OutOfResources, "out of memory"));
    } catch (const std::exception& e) {
        return fail_with(host::Error(ErrorCode::Internal, e.what()));
    }
}

}  // namespace talpa::topo
