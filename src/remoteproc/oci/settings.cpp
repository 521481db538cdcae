#include "remoteproc/oci/settings.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <initializer_list>

#include "base/host/environment.h"
#include "remoteproc/sys/files.h"
#include "remoteproc/sys/path_guard.h"

namespace talpa::remoteproc {
namespace {

bool usable(const std::string& folder) {
    return make_folders(folder).has_value() && ::access(folder.c_str(), W_OK) == 0;
}

}  // namespace

std::string home_folder() {
    // /etc/passwd by hand: the C library's own look-up needs shared libraries at run time, and this program is static.
    const std::string uid = std::to_string(::geteuid());
    const auto users = read_small_file("/etc/passwd", 4 << 20);
    for (std::size_t at = 0; users && at < users->size();) {
        const std::size_t end = std::min(users->find('\n', at), users->size());
        const std::string line = users->substr(at, end - at);
        std::vector<std::string> fields;  // name:password:uid:gid:comment:home:shell
        for (std::size_t from = 0; from <= line.size();) {
            const std::size_t colon = std::min(line.find(':', from), line.size());
            fields.push_back(line.substr(from, colon - from));
            from = colon + 1;
        }
        if (fields.size() >= 6 && fields[2] == uid && fields[5].starts_with('/')) return fields[5];
        at = end + 1;
    }
    const std::string home = host::environment("HOME");
    return home.starts_with('/') ? home : "/";
}

Settings make_settings(const std::string& prefix, const std::string& root_option) {
    Settings s;
    s.paths.root = prefix;
    if (prefix == "~" || prefix.starts_with("~/")) s.paths.root = clean_path(home_folder() + prefix.substr(1));
    const std::string runtime_folder = host::environment("XDG_RUNTIME_DIR");
    const std::string own = !runtime_folder.empty() ? runtime_folder : home_folder() + "/.local/run";
    if (!root_option.empty()) {
        s.state_root = absolute_path(root_option);
        s.runc_style = true;
    } else {
        s.state_root = clean_path(own + "/remoteproc-runtime");
    }
    const std::string system_run = s.paths.below("/run/remoteproc-runtime");
    const std::string system_index = s.paths.below("/var/lib/remoteproc-runtime/firmware");
    const bool root = ::geteuid() == 0;
    // Service users have no home: then beside the state, wherever that was put.
    const auto first_usable = [](const std::string& wanted, std::initializer_list<std::string> others) {
        if (usable(wanted)) return wanted;
        for (const std::string& other : others)
            if (usable(other)) return other;
        return wanted;  // the error that follows names it
    };
    const std::string beside = clean_path(own + "/remoteproc-runtime");
    s.run_folder = root && usable(system_run) ? system_run : first_usable(beside + ".cores", {s.state_root + ".cores"});
    s.index_folder = root && usable(system_index)
                         ? system_index
                         : first_usable(home_folder() + "/.local/state/remoteproc-runtime/firmware",
                                        {beside + ".firmware", s.state_root + ".firmware"});
    // conmon (podman, CRI-O) says so by its pipe; runc-style callers hand over the container's output as their own.
    if (s.runc_style || !host::environment("_OCI_SYNCPIPE").empty()) s.output = {0, 1, 2};
    // Our shim names descriptors, because it wants to read standard error itself: "3,4,5".
    std::array<int, 3> given{};
    if (std::sscanf(host::environment("REMOTEPROC_OUTPUT").c_str(), "%d,%d,%d", &given[0], &given[1], &given[2]) == 3 &&
        ::fcntl(given[0], F_GETFD) >= 0 && ::fcntl(given[1], F_GETFD) >= 0 && ::fcntl(given[2], F_GETFD) >= 0)
        s.output = given;
    s.caller_guards = host::environment("REMOTEPROC_GUARD") == "caller";
    s.namespace_name = host::environment("REMOTEPROC_NAMESPACE");
    const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
    if (s.namespace_name.size() > 80 || !std::ranges::all_of(s.namespace_name, plain)) s.namespace_name.clear();
    return s;
}

std::string Settings::state_folder(const std::string& id) const {
    if (!namespace_name.empty() && ::access(own_folder(id).c_str(), F_OK) == 0) return own_folder(id);
    return plain_folder(id);
}

std::uint64_t unix_ns_now() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

std::string rfc3339(std::uint64_t unix_ns) {
    const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000u);
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec, unix_ns % 1'000'000'000u);
}

}  // namespace talpa::remoteproc
