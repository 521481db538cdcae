// ps, stop, down, logs: what runs on a target (topo spec, sections 8.4 and 8.5).
#include <algorithm>
#include <charconv>

#include "base/host/json.h"
#include "topo/cli/opened.h"
#include "topo/deploy/apply.h"
#include "topo/deploy/pipeline.h"
#include "topo/deploy/project_lock.h"
#include "topo/deploy/record.h"
#include "topo/system/next_command.h"
#include "topo/system/text.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {
namespace {

using host::Json;

bool is_ipv6(std::string_view host) {
    return host.find(':') != std::string_view::npos;
}

// Podman publishes on IPv4 alone, and so does Docker where its IPv6 is off (topo spec, section 18.4).
bool only_ipv4(const Container& c, const PublishedPort& port) {
    return port.host_ip == "0.0.0.0" && std::none_of(c.ports.begin(), c.ports.end(), [&](const PublishedPort& other) {
               return other.host_ip == "::" && other.host_port == port.host_port && other.protocol == port.protocol;
           });
}

// The name of a target by which a browser reaches it; of a target that is named by an IPv6 address its IPv4 one too.
struct Reached {
    std::string host, ipv4;
};

host::Result<Reached> reached(const Target& target, const std::vector<Container>& containers) {
    Reached r;
    TRY_ASSIGN(r.host, target.host_name());
    const bool asks = is_ipv6(r.host) && std::any_of(containers.begin(), containers.end(), [](const Container& c) {
                          return std::any_of(c.ports.begin(), c.ports.end(),
                                             [&](const PublishedPort& port) { return only_ipv4(c, port); });
                      });
    if (!asks) return r;
    if (r.host == "::1") {
        r.ipv4 = "127.0.0.1";
        return r;
    }
    Command command = target.shell(
        "ip -4 -o addr show scope global 2>/dev/null | sed -n 's/.* inet \\([0-9.]*\\).*/\\1/p'; "
        "hostname -I 2>/dev/null | tr ' ' '\\n'");
    command.timeout = Milliseconds(10'000);
    TRY_ASSIGN(const Outcome outcome, capture(command));
    for (const std::string& line : lines_of(outcome.out)) {
        const bool address =
            line.find('.') != std::string::npos && line.find_first_not_of("0123456789.") == std::string::npos;
        if (address && r.ipv4.empty() && line.size() <= 15) r.ipv4 = line;
    }
    return r;
}

// "board:3001, [::]:3001": where it can be reached. The protocol is shown when it is not tcp, and what only the target
// itself can reach says so.
std::string address_of(const Container& c, const Reached& where) {
    const std::string& host = where.host;
    std::vector<std::string> parts;
    if (c.state != "running" && c.state != "restarting" && c.state != "paused") return {};  // nobody listens
    if (c.host_network) parts.push_back(host + " (host network)");
    const std::string shown_host = is_ipv6(host) ? "[" + host + "]" : host;
    for (const PublishedPort& port : c.ports) {
        std::string ip = port.host_ip;
        const bool everywhere = ip == "0.0.0.0" || ip == "::" || ip.empty();
        if (everywhere && is_ipv6(host) && only_ipv4(c, port))
            ip = where.ipv4.empty() ? "0.0.0.0" : where.ipv4;  // no IPv4 address is known: what it listens on
        else if (everywhere)
            ip = shown_host;
        else if (ip.find(':') != std::string::npos)
            ip = "[" + ip + "]";
        std::string part = fmt::format("{}:{}", ip, port.host_port);
        if (port.protocol != "tcp") part += "/" + port.protocol;
        if (port.host_ip.starts_with("127.") || port.host_ip == "::1") part += " (on the target only)";
        if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
    }
    return joined(parts, ", ");
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (widths.size() <= i) widths.push_back(0);
            widths[i] = std::max(widths[i], columns(row[i]));
        }
    std::string out;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i)
            line += row[i] + std::string(i + 1 < row.size() ? widths[i] - columns(row[i]) + 3 : 0, ' ');
        out += line + "\n";
    }
    return out;
}

std::string ps_text(const std::vector<Container>& containers, const Reached& host, bool json) {
    if (json) {
        Json document = {{"containers", Json::array()}};
        for (const Container& c : containers)
            document["containers"].push_back({{"id", c.id.substr(0, 12)},
                                              {"names", c.name},
                                              {"image", c.image},
                                              {"state", c.state},
                                              {"status", c.status},
                                              {"processingDomain", c.processing_domain()},
                                              {"address", address_of(c, host)}});
        return document.dump(2, ' ', false, Json::error_handler_t::replace);
    }
    std::vector<std::vector<std::string>> rows = {
        {"Container ID", "Names", "Image", "Status", "Processing Domain", "Address"}};
    for (const Container& c : containers) {
        std::vector<std::string> row = {c.id.substr(0, 12), c.name, c.image, c.status, c.processing_domain(),
                                        address_of(c, host)};
        for (std::string& cell : row) cell = printable(cell, LineEnds::Replace);
        rows.push_back(std::move(row));
    }
    return table(rows);
}

ApplyEvents shown_events(bool json) {
    return [json](const std::string& name, std::string_view what) {
        if (!json && logging().least <= Level::Info)
            print(fmt::format("{}  {}", printable(name, LineEnds::Replace), what));
    };
}

std::string json_of_names(const char* key, const std::vector<Container>& containers) {
    std::string out;
    for (const Container& c : containers) out += (out.empty() ? "" : ",") + json_text(c.name);
    return fmt::format("{{\"{}\":[{}]}}", key, out);
}

// Follows the logs of all containers; ends what it started when its standard input ends, that is, when we are gone.
std::string follow_script(const Engine& engine, const std::vector<Container>& containers,
                          const std::vector<std::string>& words) {
    std::string script = "exec 3<&0\np=\n";
    for (std::size_t i = 0; i < containers.size(); ++i) {
        std::vector<std::string> all = {std::string(name_of(engine.kind()))};
        all.insert(all.end(), words.begin(), words.end());
        // Of what does not run any more nothing comes; Podman would wait for it all the same.
        const std::string& state = containers[i].state;
        if (state != "running" && state != "restarting" && state != "paused") std::erase(all, "--follow");
        all.push_back(containers[i].id);
        script += fmt::format(
            "{0} 2>&1 3<&- | while IFS= read -r l || [ -n \"$l\" ]; do printf '%s\\n' \"{1} $l\"; done 3<&- & p=\"$p "
            "$!\"\n",
            shell_quoted(all), i);
    }
    // On this machine the group is ours, and a signal ends all; a session of sshd has a group of its own.
    if (!engine.target().is_local()) script += "{ cat <&3 >/dev/null; kill -TERM 0; } >/dev/null 2>&1 & w=$!\n";
    return script + "exec 3<&-\nwait $p\n" + (engine.target().is_local() ? "" : "kill $w 2>/dev/null\n") + "exit 0\n";
}

}  // namespace

std::expected<Opened, Failure> open_project(const Invocation& invocation) {
    TRY_ASSIGN(const Destination destination, needed_target(invocation));
    DeployOptions options;
    TRY_ASSIGN(options.file, compose_file(invocation));
    TRY_ASSIGN(options.engine, engine_flag(invocation));
    options.profiles = {"*"};
    TRY_ASSIGN(const ConnectOptions connect, connect_options(invocation));
    const Target target(destination, connect);
    TRY_ASSIGN(Project project, load_for_target(options, target));
    TRY(target.connect());
    TRY_ASSIGN(Engine engine, engine_of(target, options.engine));
    return Opened{std::move(project), std::move(engine)};
}

Done run_ps(const Invocation& invocation) {
    TRY_ASSIGN(const Opened o, open_project(invocation));
    TRY_ASSIGN(std::vector<Container> containers, o.engine.containers(o.project.name));
    if (!invocation.on("--all"))
        std::erase_if(containers, [](const Container& c) {
            return c.state != "running" && c.state != "restarting" && c.state != "paused";
        });
    TRY_ASSIGN(const Reached host, reached(o.engine.target(), containers));
    print(ps_text(containers, host, invocation.json()));
    return 0;
}

Done run_stop(const Invocation& invocation) {
    TRY_ASSIGN(const Opened o, open_project(invocation));
    TRY_ASSIGN(const ProjectLock lock, ProjectLock::take(o.engine.target(), o.project.name, "stop"));
    if (!invocation.json()) header("Stop services");
    TRY_ASSIGN(std::vector<Container> containers, o.engine.containers(o.project.name));
    TRY(stop_containers(o.engine, containers, shown_events(invocation.json())));
    if (invocation.json()) print(json_of_names("stopped", containers));
    return 0;
}

Done run_down(const Invocation& invocation) {
    TRY_ASSIGN(const Opened o, open_project(invocation));
    TRY_ASSIGN(const ProjectLock lock, ProjectLock::take(o.engine.target(), o.project.name, "down"));
    if (!invocation.json()) header("Remove services");
    TRY_ASSIGN(const std::vector<Container> containers, o.engine.containers(o.project.name));
    const ApplyEvents events = shown_events(invocation.json());
    TRY(remove_containers(o.engine, containers, events));
    for (const Resource& resource : resources(o.project)) {
        const bool volume = std::string_view(resource.kind) == "volume";
        if (resource.external || (volume && !invocation.on("--volumes"))) continue;
        TRY_ASSIGN(const bool there, o.engine.exists(resource.kind, resource.name));
        if (!there) continue;
        TRY(o.engine.run({resource.kind, "rm", resource.name}));
        events(resource.name, "Removed");
    }
    TRY(remove_records(o.engine.target(), o.project.name));
    if (invocation.json()) print(json_of_names("removed", containers));
    return 0;
}

namespace {

// `logs` and what an engine is told behind it.
std::expected<std::vector<std::string>, Failure> log_words(const Invocation& invocation) {
    std::vector<std::string> words = {"logs"};
    if (invocation.on("--follow")) words.emplace_back("--follow");
    if (const auto tail = invocation.value("--tail")) {
        const bool number =
            !tail->empty() && tail->size() <= 9 && tail->find_first_not_of("0123456789") == std::string::npos;
        if (!number && *tail != "all")
            return wrong_usage(
                fmt::format("invalid argument \"{}\" for \"--tail\" flag: a number of lines, or all", *tail));
        words.insert(words.end(), {"--tail", *tail});
    }
    return words;
}

/// Shows what containers say; the first trouble with it is kept.
class Logs {
  public:
    Logs(const Engine& engine, const std::vector<Container>& containers, bool json)
        : engine_(engine), containers_(containers), json_(json) {}

    /// Firmware says what it says in the trace of its remote processor.
    void trace(const Container& c) const {
        const std::string script = fmt::format(
            "for d in /sys/class/remoteproc/remoteproc*; do [ \"$(cat \"$d/name\")\" = {} ] || continue; "
            "t=/sys/kernel/debug/remoteproc/${{d##*/}}/trace0; [ -r \"$t\" ] && cat \"$t\"; done",
            shell_quoted(c.remote_processor));
        (void)stream_lines(engine_.target().shell(script), [&](std::string_view line) {
            if (json_)
                print(fmt::format("{{\"container\":{},\"source\":\"trace\",\"line\":{}}}", json_text(c.name),
                                  json_text(line)));
            else
                print(printable(fmt::format("{}  | {}", c.remote_processor, line), LineEnds::Replace));
        });
    }

    void one(const Container& c, std::vector<std::string> words) {
        words.push_back(c.id);
        const auto ran = stream_lines(engine_.command(words), [&](std::string_view line) { show(c, line); });
        if (trouble || interrupted()) return;
        if (!ran)
            trouble = ran.error();
        else if (ran->status != 0)
            trouble = host::Error(ErrorCode::AccessFailed,
                                  fmt::format("`{} logs` of {} failed: exit status {}", name_of(engine_.kind()),
                                              printable(c.name, LineEnds::Replace), ran->status));
    }

    /// All in one session: sshd may allow only two of one connection. Each line comes behind its container's number.
    void follow(const std::vector<std::string>& words) {
        Command all = engine_.target().shell(follow_script(engine_, containers_, words));
        all.input_stays_open = true;
        const auto ran = stream_lines(all, [&](std::string_view line) {
            std::size_t index = 0;
            const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), index);
            const bool ours =
                error == std::errc() && end != line.data() + line.size() && *end == ' ' && index < containers_.size();
            if (ours)
                show(containers_[index], line.substr(static_cast<std::size_t>(end - line.data()) + 1));
            else
                print(printable(line, LineEnds::Replace));
        });
        if (interrupted()) return;
        if (!ran)
            trouble = ran.error();
        else if (ran->status == 255)
            trouble = ssh_error(engine_.target().destination(), "", ran->status, false);
    }

    std::optional<host::Error> trouble;

  private:
    void show(const Container& c, std::string_view line) const {
        if (json_)
            print(fmt::format("{{\"container\":{},\"line\":{}}}", json_text(c.name), json_text(line)));
        else
            print(printable((containers_.size() > 1 ? c.name + "  | " : "") + std::string(line), LineEnds::Replace));
    }

    const Engine& engine_;
    const std::vector<Container>& containers_;
    bool json_;
};

}  // namespace

Done run_logs(const Invocation& invocation) {
    TRY_ASSIGN(const Opened o, open_project(invocation));
    TRY_ASSIGN(std::vector<Container> containers, o.engine.containers(o.project.name));
    const auto& services = invocation.arguments;
    for (const std::string& service : services)
        if (o.project.find(service) == nullptr) return wrong_usage(fmt::format("no such service: {}", service));
    if (!services.empty())
        std::erase_if(containers, [&](const Container& c) {
            return std::find(services.begin(), services.end(), c.service) == services.end();
        });
    if (containers.empty())
        return std::unexpected(Failure(
            host::Error(ErrorCode::NotFound, "there are no containers to show logs of", next_command("deploy"))));
    TRY_ASSIGN(const std::vector<std::string> words, log_words(invocation));
    Logs logs(o.engine, containers, invocation.json());
    for (const Container& c : containers)
        if (c.processing_domain() != "Linux Host") logs.trace(c);
    if (invocation.on("--follow"))
        logs.follow(words);
    else
        for (const Container& c : containers) logs.one(c, words);
    if (logs.trouble) return std::unexpected(Failure(*logs.trouble));
    return 0;
}

}  // namespace talpa::topo
