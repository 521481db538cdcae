#include "webapp/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "base/host/exit_status.h"
#include "base/host/terminal.h"

namespace talpa::webapp {
namespace {

constexpr const char* kFooter = R"(Examples:
  talpa-webapp --program mobilenet_v2.pte --labels imagenet_labels.txt
  talpa-webapp --listen 127.0.0.1:8080 --root /tmp/imx93 --program mobilenet_v2.pte

Serves a page on which a picture is classified by the board's Cortex-M33 and NPU. The board is this machine (an i.MX 93,
real or virtual, privileged), or the tree below --root. API: /api/openapi.json
Exit status: 0 stopped by SIGTERM or SIGINT, 1 it could not serve, 2 wrong usage.)";

}  // namespace

std::optional<std::pair<std::string, std::uint16_t>> parse_listen(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    std::string address = colon == std::string::npos ? "" : text.substr(0, colon);
    const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
    if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
    const unsigned long number = std::stoul(port);
    if (number > 65535) return std::nullopt;
    if (address.size() > 2 && address.front() == '[' && address.back() == ']')
        address = address.substr(1, address.size() - 2);
    else if (address.find(':') != std::string::npos)
        return std::nullopt;
    if (address.empty()) address = "0.0.0.0";
    if (address == "localhost") address = "127.0.0.1";
    return std::pair{address, static_cast<std::uint16_t>(number)};
}

std::optional<int> parse_options(int argc, const char* const* argv, Options& o) {
    CLI::App app("Pick a picture, press Classify, see what the NPU saw: the web application of an i.MX 93.",
                 "talpa-webapp");
    app.set_version_flag("--version", std::string("talpa-webapp ") + TALPA_VERSION);
    app.get_formatter()->column_width(40);
    app.footer(kFooter);
    const auto option = [&](const char* flag, auto& to, const char* help, const char* type) {
        std::string variable = "TALPA_WEBAPP_";
        for (const char* c = flag + 2; *c != '\0'; ++c)
            variable += *c == '-' ? '_' : static_cast<char>(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
        return app.add_option(flag, to, help)->type_name(type)->envname(variable);
    };
    option("--listen", o.listen, "Address and port to serve on", "ADDRESS:PORT")->capture_default_str();
    option("--program", o.programs, "Program made by ExecuTorch for an Ethos-U65; again for more to choose from",
           "FILE.pte")
        ->allow_extra_args(false);
    option("--labels", o.labels, "Names of the classes, one a line", "FILE");
    option("--label-offset", o.label_offset, "The label of class 0 stands in this line, counted from 0", "N");
    option("--samples", o.samples, "Folder of pictures that the page offers", "DIR");
    option("--root", o.root, "The board's files (/dev, /sys) are below this folder", "DIR");
    option("--memory", o.memory, "Memory device", "DEVICE")->capture_default_str();
    option("--tty", o.tty, "RPMsg tty (default: the first usable /dev/ttyRPMSG*)", "DEVICE");
    option("--remoteproc", o.remoteproc, "Name of the remote processor", "NAME")->capture_default_str();
    option("--device-tree", o.device_tree,
           "Device tree (default: /sys/firmware/devicetree/base, else /proc/device-tree)", "DIR");
    option("--ethosu", o.ethosu, "NPU device", "DEVICE")->capture_default_str();
    option("--remoteproc-class", o.remoteproc_class, "Remote processors", "DIR")->capture_default_str();
    option("--debug-class", o.debug_class, "Their trace buffers", "DIR")->capture_default_str();
    option("--timeout", o.timeout_s, "How long a run may take, in seconds", "S")
        ->check(CLI::Range(0.01, 3600.0).description(""))
        ->capture_default_str();
    option("--queue", o.queue, "How many pictures may wait", "N")
        ->check(CLI::Range(1, 10000).description(""))
        ->capture_default_str();
    option("--top", o.top, "How many classes to answer with", "N")
        ->check(CLI::Range(1, 1000).description(""))
        ->capture_default_str();
    option("--uploads", o.uploads, "How many uploaded models are kept", "N")
        ->check(CLI::Range(0, 64).description(""))
        ->capture_default_str();
    option("--upload-limit", o.upload_limit_mib, "Largest upload, in MiB", "MIB")
        ->check(CLI::Range(0.01, 64.0).description(""))
        ->capture_default_str();
    option("--pixel-limit", o.pixel_limit_mp, "Largest picture, in million pixels", "MP")
        ->check(CLI::Range(0.01, 500.0).description(""))
        ->capture_default_str();
    option("--token", o.token, "Clients must know this; better by TALPA_WEBAPP_TOKEN, which `ps` does not show",
           "TEXT");
    option("--allow-host", o.allow_hosts, "Another host name that this server has; '*' for any", "NAME")
        ->allow_extra_args(false);
    option("--user", o.user, "User id to become", "UID")->capture_default_str();
    option("--group", o.group, "Group id to become", "GID")->capture_default_str();
    app.add_flag("!--no-sandbox", o.sandbox, "Keep all privileges (for debuggers)");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& help_or_version) {
        return app.exit(help_or_version);
    } catch (const CLI::ParseError& e) {
        host::say(fmt::format("talpa-webapp: {}\n  talpa-webapp --help\n", e.what()));
        return host::kExitUsage;
    }
    // An empty token is one that somebody meant to set.
    if (const char* const token = std::getenv("TALPA_WEBAPP_TOKEN");
        o.token.empty() && (app.count("--token") != 0 || token != nullptr)) {
        host::say("talpa-webapp: the token is empty: give one, or neither --token nor TALPA_WEBAPP_TOKEN\n");
        return host::kExitUsage;
    }
    if (!parse_listen(o.listen)) {
        host::say(
            fmt::format("talpa-webapp: --listen wants ADDRESS:PORT, not '{}'\n  talpa-webapp --help\n", o.listen));
        return host::kExitUsage;
    }
    return std::nullopt;
}

host::Json Options::json() const {
    return {{"listen", listen},
            {"programs", programs},
            {"labels", labels},
            {"label_offset", label_offset},
            {"samples", samples},
            {"root", root},
            {"memory", memory},
            {"tty", tty},
            {"remoteproc", remoteproc},
            {"device_tree", device_tree},
            {"ethosu", ethosu},
            {"remoteproc_class", remoteproc_class},
            {"debug_class", debug_class},
            {"timeout_s", timeout_s},
            {"queue", queue},
            {"top", top},
            {"uploads", uploads},
            {"upload_limit_mib", upload_limit_mib},
            {"pixel_limit_mp", pixel_limit_mp},
            {"token", token.empty() ? "none" : "set"},
            {"allow_hosts", allow_hosts},
            {"user", user},
            {"group", group},
            {"sandbox", sandbox}};
}

}  // namespace talpa::webapp
