#include "topo/target/ssh_arguments.h"

namespace talpa::topo {

std::vector<std::string> ssh_arguments(const Destination& destination) {
    if (destination.host.find(':') == std::string::npos) return {"--", destination.ssh_uri()};
    std::vector<std::string> words;
    if (!destination.user.empty()) words.insert(words.end(), {"-l", destination.user});
    if (!destination.port.empty()) words.insert(words.end(), {"-p", destination.port});
    words.insert(words.end(), {"--", destination.host});
    return words;
}

}  // namespace talpa::topo
