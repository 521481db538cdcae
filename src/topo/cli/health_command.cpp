// topo health (topo spec, section 5).
#include "base/host/terminal.h"
#include "topo/cli/look_at_target.h"
#include "topo/target/health.h"

namespace talpa::topo {

Done run_health(const Invocation& invocation) {
    TRY_ASSIGN(const auto destination, given_target(invocation));
    HealthOptions options;
    TRY_ASSIGN(options.timeout, timeout_of(invocation, "--timeout", "5s"));
    options.accept_new_host_keys = invocation.on("--accept-new-host-keys");
    Health health;
    {
        host::Progress spinner("Checking", 0);
        health.host = check_host(options);
        if (destination) health.target = look_at_target(*destination, options);
    }
    print(invocation.json() ? health_json(health) : health_plain(health));
    return invocation.on("--strict") && health.has_errors() ? 1 : 0;
}

}  // namespace talpa::topo
