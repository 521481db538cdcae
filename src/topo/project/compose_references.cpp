#include "topo/project/compose_references.h"

#include <algorithm>
#include <set>

namespace talpa::topo {
namespace {

Checked<void> check_service(const std::string& file, const Project& project, const Service& service,
                            const Findings& findings) {
    const auto undefined = [&](Mark mark, std::string message, std::string fix = {}) {
        return findings.take(finding("compose.reference", file, mark,
                                     fmt::format("service \"{}\"{}", service.name, message), std::move(fix)));
    };
    const auto is_inactive = [&](const std::string& name) {
        return std::find(project.inactive.begin(), project.inactive.end(), name) != project.inactive.end();
    };
    for (const Dependency& d : service.depends_on)
        if (project.find(d.service) == nullptr && d.required && !is_inactive(d.service))
            TRY(undefined(d.mark, fmt::format(" depends on undefined service \"{}\"", d.service)));
    constexpr std::string_view kService = "service:";
    if (service.build)
        for (const auto& [context, source] : service.build->additional_contexts)
            if (source.starts_with(kService) && project.find(source.substr(kService.size())) == nullptr)
                TRY(undefined(service.build->mark,
                              fmt::format(": the build context \"{}\" names the undefined service \"{}\"", context,
                                          source.substr(kService.size()))));
    if (service.network_mode.starts_with(kService)) {
        const std::string other = service.network_mode.substr(kService.size());
        if (project.find(other) == nullptr && !is_inactive(other))
            TRY(undefined(service.mark, fmt::format(": its network_mode names the undefined service \"{}\"", other)));
    }
    for (const Mount& mount : service.mounts) {
        const bool named_volume = mount.type == Mount::Type::Volume && !mount.source.empty();
        const bool known = std::any_of(project.volumes.begin(), project.volumes.end(),
                                       [&](const NamedVolume& v) { return v.key == mount.source; });
        if (named_volume && !known)
            TRY(undefined(mount.mark, fmt::format(" refers to undefined volume {}", mount.source),
                          fmt::format("add `{}:` below the root key `volumes`", mount.source)));
    }
    for (const std::string& network : service.networks)
        if (network != "default" && std::none_of(project.networks.begin(), project.networks.end(),
                                                 [&](const Network& n) { return n.key == network; }))
            TRY(undefined(service.mark, fmt::format(" refers to undefined network {}", network)));
    return {};
}

Checked<void> check_cycles(const std::string& file, const Project& project) {
    std::set<std::string> done;
    bool moved = true;
    while (moved) {
        moved = false;
        for (const Service& service : project.services) {
            if (done.contains(service.name)) continue;
            const bool ready = std::all_of(
                service.depends_on.begin(), service.depends_on.end(),
                [&](const Dependency& d) { return done.contains(d.service) || project.find(d.service) == nullptr; });
            if (ready) done.insert(service.name), moved = true;
        }
    }
    for (const Service& service : project.services)
        if (!done.contains(service.name))
            return finding("compose.cycle", file, service.mark,
                           fmt::format("service \"{}\" depends on itself, by way of its depends_on", service.name));
    return {};
}

}  // namespace

Checked<void> check_references(const std::string& file, const Project& project, const Findings& findings) {
    for (const Service& service : project.services) TRY(check_service(file, project, service, findings));
    return findings.take(check_cycles(file, project));
}

}  // namespace talpa::topo
