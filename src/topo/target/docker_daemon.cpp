#include "topo/target/docker_daemon.h"

#include "topo/system/text.h"

namespace talpa::topo {

// /usr/sbin is on few users' PATH.
const char* const kDockerDaemonScript =
    "for d in dockerd /usr/sbin/dockerd /usr/bin/dockerd /usr/local/bin/dockerd; do "
    "p=$(command -v $d 2>/dev/null) && [ -x \"$p\" ] && [ -f \"$p\" ] && { echo \"$p\"; exit 0; }; done; exit 1";

std::string docker_start_command(const Destination& destination) {
    const std::string start = "systemctl start docker";
    if (destination.is_plain_localhost() || destination.board) return start;
    return "ssh " + shell_quoted(destination.uri()) + " " + shell_quoted(start);
}

}  // namespace talpa::topo
