#include "topo/project/compose_forms.h"

#include <arpa/inet.h>

#include <algorithm>
#include <span>
#include <vector>

#include "topo/system/text.h"

namespace talpa::topo {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLower = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool only(std::string_view text, std::string_view alphabet, std::string_view more = {}) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return alphabet.find(c) != std::string_view::npos || more.find(c) != std::string_view::npos;
    });
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

// A word for the engine's command line: no option, and nothing that separates.
bool is_word(std::string_view text) {
    return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) > ' ' && c != '\x7f';
    });
}

bool is_bytes(std::string_view text) {
    const std::size_t digits = text.find_first_not_of("0123456789.");
    const std::string_view number = text.substr(0, digits);
    if (!only(number, kDigits, ".") || number.front() == '.' || std::count(number.begin(), number.end(), '.') > 1 ||
        number.size() > 18)
        return false;
    const std::string unit = digits == std::string_view::npos ? "" : lower(trimmed(text.substr(digits)));
    return one_of(unit, {"", "b", "k", "kb", "kib", "m", "mb", "mib", "g", "gb", "gib", "t", "tb", "tib"});
}

bool is_bytes_or_none(std::string_view text) {
    return text == "-1" || is_bytes(text);
}

bool is_decimal(std::string_view text) {
    return only(text, kDigits, ".") && text != "." && std::count(text.begin(), text.end(), '.') <= 1 &&
           text.size() <= 18;
}

bool is_plain_count(std::string_view text) {
    return is_count(text, false);
}

bool is_limit(std::string_view text) {
    return is_count(text, true);
}

bool is_percent(std::string_view text) {
    return is_limit(text) && (text.size() < 3 || text == "100");
}

bool is_oom_score(std::string_view text) {
    const std::string_view number = text.starts_with('-') ? text.substr(1) : text;
    return is_plain_count(number) && (number.size() < 4 || number == "1000");
}

bool is_cpu_time(std::string_view text) {
    return is_limit(text) || parse_duration(text).has_value();
}

bool is_cpu_list(std::string_view text) {
    return only(text, kDigits, ",-") && kDigits.find(text.front()) != std::string_view::npos &&
           kDigits.find(text.back()) != std::string_view::npos;
}

// signal(7); a name with or without SIG, or a number.
bool is_signal(std::string_view text) {
    if (is_plain_count(text)) return text.size() <= 2 && text != "0" && text != "00" && text <= "99";
    std::string name = lower(text);
    if (name.starts_with("sig")) name.erase(0, 3);
    if (name.starts_with("rtmin") || name.starts_with("rtmax")) {
        const std::string_view rest = std::string_view(name).substr(5);
        return rest.empty() ||
               ((rest[0] == '+' || rest[0] == '-') && is_plain_count(rest.substr(1)) && rest.size() <= 3);
    }
    return one_of(name,
                  {"abrt", "alrm", "bus",  "chld", "cld",  "cont", "fpe",    "hup",   "ill",    "int", "io",   "iot",
                   "kill", "pipe", "poll", "prof", "pwr",  "quit", "segv",   "stop",  "stkflt", "sys", "term", "trap",
                   "tstp", "ttin", "ttou", "urg",  "usr1", "usr2", "vtalrm", "winch", "xcpu",   "xfsz"});
}

bool is_absolute_path(std::string_view text) {
    return text.starts_with('/');
}

bool is_pull_policy(std::string_view text) {
    return one_of(text, {"always", "never", "missing", "if_not_present", "build", "daily", "weekly", "newer"}) ||
           (text.starts_with("every_") && text.size() > 6);
}

bool is_host_name(std::string_view text) {
    return only(text, kLetters, ".-_") && text.front() != '-' && text.size() <= 253;
}

bool is_capability(std::string_view text) {
    return only(text, kLetters, "_");
}

bool is_mac_address(std::string_view text) {
    const std::vector<std::string> parts = split(text, text.find(':') != std::string_view::npos ? ":" : "-");
    return parts.size() == 6 && std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
               return part.size() == 2 && only(part, "0123456789abcdefABCDEF");
           });
}

struct Rule {
    std::string_view key;
    bool (*right)(std::string_view);
    std::string_view wanted;
};

constexpr std::string_view kSize = "a size such as 64m";
constexpr std::string_view kWord = "a word";
constexpr std::string_view kNumber = "a number";

constexpr Rule kRules[] = {
    {"cap_add", is_capability, "a capability such as NET_ADMIN"},
    {"cap_drop", is_capability, "a capability such as NET_ADMIN"},
    {"cgroup_parent", is_word, kWord},
    {"cpu_period", is_cpu_time, "a number of microseconds"},
    {"cpu_quota", is_cpu_time, "a number of microseconds"},
    {"cpu_shares", is_plain_count, kNumber},
    {"cpus", is_decimal, "a number such as 0.5"},
    {"cpuset", is_cpu_list, "a list of processors such as 0-1,3"},
    {"dns", is_host_address, "an address in numbers"},
    {"group_add", is_word, kWord},
    {"hostname", is_host_name, "a host name"},
    {"image", is_image_reference, "an image reference ([HOST/]name[:TAG], the name in lower case)"},
    {"ipc", is_word, kWord},
    {"mac_address", is_mac_address, "a hardware address such as 02:00:00:00:00:01"},
    {"mem_limit", is_bytes, kSize},
    {"mem_reservation", is_bytes, kSize},
    {"mem_swappiness", is_percent, "a number from 0 to 100, or -1"},
    {"memswap_limit", is_bytes_or_none, "a size such as 64m, or -1"},
    {"network_mode", is_word, "none, host, bridge, service:NAME, container:NAME or the name of a network"},
    {"oom_score_adj", is_oom_score, "a number from -1000 to 1000"},
    {"pid", is_word, kWord},
    {"pids_limit", is_limit, "a number, or -1"},
    {"pull_policy", is_pull_policy, "a pull policy (always, missing, never, build)"},
    {"runtime", is_word, "the name of a runtime"},
    {"security_opt", is_word, kWord},
    {"shm_size", is_bytes, kSize},
    {"stop_signal", is_signal, "a signal such as SIGTERM"},
    {"tmpfs", is_absolute_path, "an absolute path in the container"},
    {"user", is_word, "a user: NAME, UID or UID:GID"},
    {"userns_mode", is_word, kWord},
    {"uts", is_word, kWord},
    {"working_dir", is_absolute_path, "an absolute path in the container"},
};

// One part of an image's name: lower-case letters and digits, with single separators between them ('.', '_', "__",
// any number of '-').
bool is_name_part(std::string_view part) {
    if (!only(part, kLower, "._-")) return false;
    const auto separator = [](char c) { return c == '.' || c == '_' || c == '-'; };
    if (separator(part.front()) || separator(part.back())) return false;
    for (std::size_t i = 0; i + 1 < part.size(); ++i) {
        if (!separator(part[i]) || !separator(part[i + 1])) continue;
        const bool dashes = part[i] == '-' && part[i + 1] == '-';
        const bool two_lines = part[i] == '_' && part[i + 1] == '_' && part.substr(i, 3) != "___";
        if (!dashes && !two_lines) return false;
    }
    return true;
}

}  // namespace

bool is_count(std::string_view text, bool minus_one) {
    return (minus_one && text == "-1") || (only(text, kDigits) && text.size() <= 18);
}

bool is_image_reference(std::string_view text) {
    if (text.size() > 500) return false;
    if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
        const std::string_view digest = text.substr(at + 1);
        const std::size_t colon = digest.find(':');
        if (colon == std::string_view::npos || !only(digest.substr(0, colon), kLetters, "+._-")) return false;
        if (!only(digest.substr(colon + 1), "0123456789abcdefABCDEF") || digest.size() - colon - 1 < 32) return false;
        text = text.substr(0, at);
    }
    const std::size_t slash = text.rfind('/');
    const std::size_t colon = text.find(':', slash == std::string_view::npos ? 0 : slash);
    if (colon != std::string_view::npos) {
        const std::string_view tag = text.substr(colon + 1);
        if (!only(tag, kLetters, "_.-") || tag.front() == '.' || tag.front() == '-' || tag.size() > 128) return false;
        text = text.substr(0, colon);
    }
    std::vector<std::string> parts = split(text, "/");
    // The first is a host if it looks like one.
    const bool host =
        parts.size() > 1 &&
        (parts[0] == "localhost" || parts[0].find_first_of(".:") != std::string::npos || lower(parts[0]) != parts[0]);
    if (host) {
        const std::size_t port = parts[0].find(':');
        if (port != std::string::npos && !is_plain_count(std::string_view(parts[0]).substr(port + 1))) return false;
        const std::string_view name = std::string_view(parts[0]).substr(0, port);
        if (!only(name, kLetters, ".-") || name.front() == '-' || name.find('.') == 0) return false;
        if (lower(name) != name && name.find('.') == std::string_view::npos && port == std::string::npos) return false;
        parts.erase(parts.begin());
    }
    return !parts.empty() && std::all_of(parts.begin(), parts.end(), is_name_part);
}

bool is_host_address(std::string_view text) {
    if (text == "host-gateway") return true;
    std::string address(text);
    if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
    in6_addr ignored{};
    return ::inet_pton(AF_INET, address.c_str(), &ignored) == 1 ||
           ::inet_pton(AF_INET6, address.c_str(), &ignored) == 1;
}

bool are_mount_options(std::string_view text) {
    const std::vector<std::string> options = split(text, ",");
    return std::all_of(options.begin(), options.end(), [](const std::string& option) {
        const bool has_value = option.starts_with("idmap") || option.starts_with("upperdir=") ||
                               option.starts_with("workdir=") || option.starts_with("size=");
        return has_value ||
               one_of(option, {"ro",       "rw",     "z",       "Z",      "cached",     "delegated",  "consistent",
                               "nocopy",   "copy",   "private", "shared", "rshared",    "slave",      "rslave",
                               "rprivate", "U",      "O",       "exec",   "noexec",     "dev",        "nodev",
                               "suid",     "nosuid", "bind",    "rbind",  "unbindable", "runbindable"});
    });
}

bool are_device_permissions(std::string_view text) {
    return only(text, "rwm") && text.size() <= 3;
}

std::optional<std::string> wrong_form(std::string_view key, std::string_view value) {
    for (const Rule& rule : kRules)
        if (rule.key == key) return rule.right(value) ? std::nullopt : std::optional(std::string(rule.wanted));
    return std::nullopt;
}

}  // namespace talpa::topo
