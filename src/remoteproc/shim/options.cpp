#include "remoteproc/shim/options.h"

#include <climits>
#include <cstdlib>

namespace talpa::remoteproc::shim {

Result<ShimOptions> parse_shim_options(std::span<const std::string> arguments) {
    ShimOptions o;
    struct Text {
        std::string_view name;
        std::string* value;
    };
    struct Switch {
        std::string_view name;
        bool* value;
    };
    const Text texts[] = {{"namespace", &o.namespace_name},      {"id", &o.id},         {"address", &o.address},
                          {"publish-binary", &o.publish_binary}, {"bundle", &o.bundle}, {"socket", &o.socket},
                          {"debug-socket", &o.debug_socket}};
    const Switch switches[] = {{"debug", &o.debug}, {"v", &o.version}, {"version", &o.version},
                               {"info", &o.info},   {"h", &o.help},    {"help", &o.help}};
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        std::string_view argument = arguments[i];
        if (!argument.starts_with('-')) {
            if (!o.action.empty())
                return host::failure(ErrorCode::InvalidArgument, "one action is wanted, {} is a second",
                                     printable(argument));
            o.action = argument;
            continue;
        }
        argument.remove_prefix(argument.starts_with("--") ? 2 : 1);
        const std::size_t equals = argument.find('=');
        const std::string_view name = argument.substr(0, equals);
        bool known = false;
        for (const Switch& s : switches)
            if (name == s.name) {
                *s.value = equals == std::string_view::npos || argument.substr(equals + 1) == "true";
                known = true;
            }
        for (const Text& t : texts)
            if (name == t.name) {
                if (equals == std::string_view::npos && i + 1 == arguments.size())
                    return host::failure(ErrorCode::InvalidArgument, "flag needs an argument: -{}", name);
                *t.value = equals == std::string_view::npos ? arguments[++i] : std::string(argument.substr(equals + 1));
                known = true;
            }
        if (!known)
            return host::failure(ErrorCode::InvalidArgument, "flag provided but not defined: -{}", printable(name));
    }
    return o;
}

std::string shim_usage() {
    return "containerd-shim-remoteproc-v1 is started by containerd for --runtime io.containerd.remoteproc.v1.\n\n"
           "Usage: containerd-shim-remoteproc-v1 -namespace NS -id ID -address SOCKET [-bundle DIR] [-debug] "
           "start|delete\n"
           "       containerd-shim-remoteproc-v1 -v | -info\n\n"
           "Install it beside remoteproc-runtime in a folder of containerd's PATH.\n\n"
           "Example:\n  ctr run -d --runtime io.containerd.remoteproc.v1 --annotation remoteproc.name=imx-rproc IMAGE "
           "c1\n";
}

std::string find_runtime() {
    char self[PATH_MAX];
    const ssize_t n = ::readlink("/proc/self/exe", self, sizeof self);
    if (n > 0) {
        std::string beside(self, static_cast<std::size_t>(n));
        beside = beside.substr(0, beside.rfind('/') + 1) + "remoteproc-runtime";
        if (::access(beside.c_str(), X_OK) == 0) return beside;
    }
    const char* path = std::getenv("PATH");
    std::string_view rest = path == nullptr ? "" : path;
    while (!rest.empty()) {
        const std::size_t colon = rest.find(':');
        const std::string candidate = std::string(rest.substr(0, colon)) + "/remoteproc-runtime";
        if (candidate.starts_with('/') && ::access(candidate.c_str(), X_OK) == 0) return candidate;
        if (colon == std::string_view::npos) break;
        rest.remove_prefix(colon + 1);
    }
    return {};
}

}  // namespace talpa::remoteproc::shim
