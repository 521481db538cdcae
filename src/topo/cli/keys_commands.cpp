// setup-keys and migrate-ssh (topo spec, sections 9.2 and 9.3).
#include "topo/cli/commands.h"
#include "topo/system/text.h"
#include "topo/target/ssh_keys.h"

namespace talpa::topo {

Done run_setup_keys(const Invocation& invocation) {
    TRY_ASSIGN(const Destination destination, needed_target(invocation));
    KeyOptions options{.type = invocation.text("--key-type", "ed25519"), .path = invocation.value("--key-path")};
    if (options.type != "ed25519" && options.type != "rsa")
        return wrong_usage(fmt::format("unsupported key type \"{}\", supported types: ed25519, rsa", options.type));
    if (destination.is_plain_localhost()) return wrong_usage("localhost needs no SSH key");
    TRY(setup_keys(destination, options));
    if (invocation.json()) print(fmt::format("{{\"target\":{}}}", json_text(destination.uri())));
    return 0;
}

Done run_migrate_ssh(const Invocation& invocation) {
    const std::filesystem::path folder = std::filesystem::path(environment("HOME")) / ".ssh";
    TRY(migrate_ssh(folder));
    if (invocation.json()) print(fmt::format("{{\"file\":{}}}", json_text((folder / "topo_config").string())));
    return 0;
}

}  // namespace talpa::topo
