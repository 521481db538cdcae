// topo install (topo spec, section 9.1).
#include "topo/cli/commands.h"
#include "topo/target/install.h"

namespace talpa::topo {

Done run_install(const Invocation& invocation) {
    if (invocation.arguments[0] != "remoteproc-runtime")
        return wrong_usage(
            fmt::format("unknown component \"{}\": only remoteproc-runtime can be installed", invocation.arguments[0]));
    TRY_ASSIGN(const Destination destination, needed_target(invocation));
    TRY_ASSIGN(const ConnectOptions connect, connect_options(invocation));
    const Target target(destination, connect);
    TRY_ASSIGN(const std::vector<Installed> installed, install_runtime(target, invocation.value("--from")));
    print(invocation.json() ? installed_json(installed) : installed_plain(installed));
    return 0;
}

}  // namespace talpa::topo
