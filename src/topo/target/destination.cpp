#include "topo/target/destination.h"

#include <algorithm>

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

bool is_port(std::string_view text) {
    if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
    const int port = std::stoi(std::string(text));
    return port >= 1 && port <= 65535;
}

}  // namespace

std::string Destination::uri() const {
    return board ? "board://" + host : ssh_uri();
}

std::string Destination::ssh_uri() const {
    std::string out = "ssh://";
    if (!user.empty()) out += user + "@";
    out += host.find(':') != std::string::npos ? "[" + host + "]" : host;
    if (!port.empty()) out += ":" + port;
    return out;
}

bool Destination::is_localhost() const {
    return lower(host) == "localhost" || host == "127.0.0.1";
}

bool Destination::is_plain_localhost() const {
    return !board && is_localhost() && user.empty() && port.empty();
}

std::string Destination::known_hosts_name() const {
    return port.empty() || port == "22" ? host : "[" + host + "]:" + port;
}

std::string Destination::slug() const {
    std::string out = ssh_uri().substr(6);
    for (char& c : out) {
        const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                          c == '_' || c == '.';
        if (!kept) c = '_';
    }
    return out;
}

host::Result<Destination> parse_destination(std::string_view text) {
    const std::string shown = printable(text, LineEnds::Replace);
    const auto bad = [&](std::string_view why) {
        return std::unexpected(host::Error(ErrorCode::InvalidArgument,
                                           fmt::format("invalid target \"{}\": {}", shown, why),
                                           "a target is [USER@]HOST[:PORT], an IPv6 address in brackets"));
    };
    std::string_view rest = trimmed(text);
    if (rest.starts_with("board://")) {
        const std::string_view name = rest.substr(8);
        if (name.empty() || name.starts_with('-') ||
            name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != name.npos)
            return bad("a board's name has letters, digits, '.', '_' and '-'");
        return Destination{.host = std::string(name), .board = true};
    }
    if (rest.starts_with("ssh://")) rest.remove_prefix(6);
    while (rest.ends_with('/')) rest.remove_suffix(1);
    Destination d;
    if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
        d.user = rest.substr(0, at);
        rest.remove_prefix(at + 1);
    }
    if (rest.starts_with('[')) {
        const std::size_t close = rest.find(']');
        if (close == std::string_view::npos) return bad("a bracket is not closed");
        d.host = rest.substr(1, close - 1);
        rest.remove_prefix(close + 1);
        if (!rest.empty() && !rest.starts_with(':')) return bad("after the bracket comes a port");
        if (!rest.empty()) d.port = rest.substr(1);
        if (!rest.empty() && !is_port(d.port)) return bad("the port is no number from 1 to 65535");
    } else if (std::count(rest.begin(), rest.end(), ':') == 1) {
        d.host = rest.substr(0, rest.find(':'));
        d.port = rest.substr(rest.find(':') + 1);
        if (!is_port(d.port)) return bad("the port is no number from 1 to 65535");
    } else {
        d.host = rest;
    }
    if (d.host.empty()) return bad("it names no host");
    for (const std::string& part : {d.user, d.host}) {
        if (part.starts_with('-')) return bad("a name cannot start with '-'");
        for (const char c : part)
            if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7F ||
                std::string_view("'\"`$\\;&<>|(){}").find(c) != std::string_view::npos)
                return bad(fmt::format("the character '{}' is not allowed",
                                       printable(std::string_view(&c, 1), LineEnds::Replace)));
    }
    return d;
}

std::string chosen_target(std::string_view flag) {
    const std::string_view given = trimmed(flag);
    return given.empty() ? std::string(trimmed(environment("TOPO_TARGET"))) : std::string(given);
}

}  // namespace talpa::topo
