// status and prune: what runs and what remote processors do; what earlier deployments left behind (topo spec, section
// 14).
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <set>
#include <thread>

#include "base/host/json.h"
#include "topo/cli/commands.h"
#include "topo/cli/opened.h"
#include "topo/deploy/apply.h"
#include "topo/deploy/preflight.h"
#include "topo/deploy/project_lock.h"
#include "topo/deploy/record.h"
#include "topo/system/next_command.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Json;

struct Snapshot {
    std::vector<Container> containers;
    std::vector<RemoteProcessor> processors;
};

host::Result<Snapshot> look(const Opened& o) {
    Snapshot snapshot;
    TRY_ASSIGN(snapshot.containers, o.engine.containers(o.project.name));
    TRY_ASSIGN(const ProbeAnswers answers, probe(o.engine.target(), preflight_checks({}), Milliseconds(30'000)));
    snapshot.processors = parse_target_state(answers).remote_processors;
    return snapshot;
}

enum class Layout { Plain, Document, OneLine };

std::string status_text(const Opened& o, const Snapshot& s, Layout layout) {
    if (layout != Layout::Plain) {
        Json document = {
            {"project", o.project.name}, {"containers", Json::array()}, {"remoteProcessors", Json::array()}};
        for (const Container& c : s.containers)
            document["containers"].push_back({{"name", c.name},
                                              {"service", c.service},
                                              {"state", c.state},
                                              {"status", c.status},
                                              {"health", c.health},
                                              {"exitCode", c.exit_code},
                                              {"processingDomain", c.processing_domain()}});
        for (const RemoteProcessor& p : s.processors)
            document["remoteProcessors"].push_back({{"name", p.name}, {"state", p.state}, {"path", p.folder}});
        return document.dump(layout == Layout::Document ? 2 : -1, ' ', false, Json::error_handler_t::replace);
    }
    std::string out = fmt::format("{} on {}\n", o.project.name, o.engine.target().destination().uri());
    std::set<std::string> seen;
    for (const Container& c : s.containers) {
        seen.insert(c.service);
        out += printable(fmt::format("  {:<30} {}\n", c.name, c.status));
    }
    for (const Service& service : o.project.services)
        if (service.scale > 0 && !seen.contains(service.name))
            out += fmt::format("  {:<30} not deployed\n", service.name);
    for (const RemoteProcessor& p : s.processors)
        out += printable(fmt::format("  remote processor {:<13} {}\n", p.name, p.state));
    return out;
}

// Images of this project on the target that neither a container nor a record needs.
struct Leftovers {
    std::vector<Image> images;
    std::vector<Container> aside;
};

host::Result<Leftovers> find_leftovers(const Opened& o) {
    TRY_ASSIGN(const std::vector<Container> containers, o.engine.containers(o.project.name));
    TRY_ASSIGN(const std::vector<Image> images, o.engine.all_images());
    TRY_ASSIGN(const Records records, read_records(o.engine.target(), o.project.name));
    std::set<std::string> needed;
    Leftovers leftovers;
    // Of a deployment that was cut what it put aside is the good one.
    const bool cut = records.begun != Begun::No && was_cut(records, containers);
    for (const Container& c : containers) {
        if (is_aside(c) && !cut)
            leftovers.aside.push_back(c);
        else
            needed.insert(c.image_id);
    }
    for (const auto& record : {records.current, records.previous})
        if (record)
            for (const Desired& d : record->containers) needed.insert(d.image_id);
    for (const Image& image : images) {
        // Nameless images are what a newer one of the same name left; names of this project are ours too.
        bool ours = image.names.empty();
        for (const std::string& name : image.names)
            ours = ours || short_image_name(name).starts_with(o.project.name + "-");
        const bool shared = image.names.size() > 1;
        if (ours && !shared && !needed.contains(image.id)) leftovers.images.push_back(image);
    }
    return leftovers;
}

std::uint64_t size_of(const Leftovers& leftovers) {
    std::uint64_t bytes = 0;
    for (const Image& image : leftovers.images) bytes += image.size_bytes;
    return bytes;
}

void keep_only(Leftovers& asked, const Leftovers& now) {
    const auto gone = [](const auto& there) {
        return [&there](const auto& one) {
            return std::none_of(there.begin(), there.end(), [&](const auto& other) { return other.id == one.id; });
        };
    };
    std::erase_if(asked.images, gone(now.images));
    std::erase_if(asked.aside, gone(now.aside));
}

}  // namespace

bool confirmed(const std::string& question) {
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return false;
    std::fwrite(question.data(), 1, question.size(), stdout);
    std::fputs(" [y/N] ", stdout);
    std::fflush(stdout);
    std::string answer;
    if (!std::getline(std::cin, answer)) return false;
    const std::string word = lower(trimmed(answer));
    return word == "y" || word == "yes";
}

Done run_status(const Invocation& invocation) {
    TRY_ASSIGN(const Opened o, open_project(invocation));
    const Layout layout = !invocation.json()         ? Layout::Plain
                          : invocation.on("--watch") ? Layout::OneLine
                                                     : Layout::Document;
    for (;;) {
        TRY_ASSIGN(const Snapshot snapshot, look(o));
        if (invocation.on("--watch") && ::isatty(STDOUT_FILENO) != 0 && !invocation.json()) print("\033[H\033[2J");
        print(status_text(o, snapshot, layout));
        if (!invocation.on("--watch")) return 0;
        for (int i = 0; i < 20; ++i) {
            if (interrupted()) return 0;
            std::this_thread::sleep_for(Milliseconds(100));
        }
    }
}

Done run_prune(const Invocation& invocation) {
    TRY_ASSIGN(const Opened o, open_project(invocation));
    TRY_ASSIGN(Leftovers leftovers, find_leftovers(o));
    std::uint64_t bytes = size_of(leftovers);
    const bool json = invocation.json();
    if (leftovers.images.empty() && leftovers.aside.empty()) {
        if (json)
            print("{\"images\":[],\"containers\":[],\"bytes\":0}");
        else
            info("nothing to remove");
        return 0;
    }
    if (!invocation.on("--yes")) {
        const std::string what = fmt::format("Remove {} images ({}) and {} containers of earlier deployments from {}?",
                                             leftovers.images.size(), human_bytes(bytes), leftovers.aside.size(),
                                             o.engine.target().destination().uri());
        if (!confirmed(what))
            return std::unexpected(
                Failure(host::Error(ErrorCode::InvalidState, "nothing was removed", next_command("prune --yes"))));
    }
    // Nobody waits while we wait for an answer; so what goes is what was asked about and is still left over.
    TRY_ASSIGN(const ProjectLock lock, ProjectLock::take(o.engine.target(), o.project.name, "prune"));
    TRY_ASSIGN(const Leftovers now, find_leftovers(o));
    keep_only(leftovers, now);
    bytes = size_of(leftovers);
    TRY(remove_containers(o.engine, leftovers.aside, [](const std::string&, std::string_view) {}));
    std::string removed;
    for (const Image& image : leftovers.images) {
        TRY_ASSIGN(const Outcome ran, o.engine.run({"rmi", image.id}, Milliseconds(60'000), Engine::Check::Nothing));
        const std::string name = image.names.empty() ? image.id.substr(0, 12) : short_image_name(image.names[0]);
        if (!ran.ok()) {
            warn(fmt::format("{} stays: {}", name, one_line(ran.err)));
            continue;
        }
        removed += (removed.empty() ? "" : ",") + json_text(name);
        if (!json) print(fmt::format("{}  Removed", printable(name, LineEnds::Replace)));
    }
    (void)capture(o.engine.target().shell("rm -rf \"${XDG_CACHE_HOME:-$HOME/.cache}/topo/staging\""));
    if (json)
        print(
            fmt::format("{{\"images\":[{}],\"containers\":{},\"bytes\":{}}}", removed, leftovers.aside.size(), bytes));
    return 0;
}

}  // namespace talpa::topo
