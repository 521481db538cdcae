#include "topo/deploy/listeners.h"

#include <algorithm>
#include <charconv>

#include "topo/system/text.h"

namespace talpa::topo {

std::vector<Listener> listeners(const std::string& tables) {
    constexpr std::string_view kListen = "0A";
    std::vector<Listener> all;
    for (const std::string& line : lines_of(tables)) {
        // "  0: 00000000:0BB9 00000000:0000 0A …"
        std::vector<std::string> fields;
        for (const std::string& field : split(line, " "))
            if (!field.empty()) fields.push_back(field);
        if (fields.size() < 4 || fields[3] != kListen) continue;
        const std::size_t colon = fields[1].rfind(':');
        if (colon == std::string::npos) continue;
        unsigned port = 0;
        const char* end = fields[1].data() + fields[1].size();
        const auto [stop, error] = std::from_chars(fields[1].data() + colon + 1, end, port, 16);
        if (error != std::errc() || stop != end || port == 0 || port > 65535) continue;
        all.push_back({fields[1].substr(0, colon), static_cast<std::uint16_t>(port)});
    }
    return all;
}

std::vector<std::uint16_t> parse_listening(const std::string& tables) {
    std::vector<std::uint16_t> ports;
    for (const Listener& one : listeners(tables))
        if (std::find(ports.begin(), ports.end(), one.port) == ports.end()) ports.push_back(one.port);
    return ports;
}

std::vector<std::string> exposed_listeners(const std::string& tables, int port) {
    constexpr std::string_view kLoopback[] = {"0100007F", "00000000000000000000000001000000",
                                              "0000000000000000FFFF00000100007F"};
    std::vector<std::string> exposed;
    for (const Listener& one : listeners(tables))
        if (one.port == port &&
            std::find(std::begin(kLoopback), std::end(kLoopback), one.address) == std::end(kLoopback))
            exposed.push_back(one.address);
    return exposed;
}

}  // namespace talpa::topo
