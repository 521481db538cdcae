#include "topo/project/compose_references.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <map>
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

/// An address to listen at; with :: and 0.0.0.0 all of its kind.
struct Listening {
    int family = AF_UNSPEC;  ///< AF_UNSPEC: every one, or no address at all
    std::array<unsigned char, sizeof(in6_addr)> bytes{};

    explicit Listening(const std::string& text) {
        for (const int one : {AF_INET, AF_INET6})
            if (::inet_pton(one, text.c_str(), bytes.data()) == 1) {
                family = one;
                return;
            }
    }
    [[nodiscard]] bool is_every() const { return bytes == decltype(bytes){}; }
};

/// Would one be in the other's way? An address that is not said is every one.
bool are_one_address(const std::string& a, const std::string& b) {
    if (a == b || a.empty() || b.empty()) return true;
    const Listening one(a), other(b);
    return one.family == other.family && (one.bytes == other.bytes || one.is_every() || other.is_every());
}

/// Whatever profiles are chosen? Those of different profiles may be each other's alternative.
bool run_together(const Service& a, const Service& b) {
    if (a.profiles.empty() || b.profiles.empty()) return a.profiles.empty() && b.profiles.empty();
    return std::any_of(a.profiles.begin(), a.profiles.end(), [&](const std::string& profile) {
        return std::find(b.profiles.begin(), b.profiles.end(), profile) != b.profiles.end();
    });
}

/// Those that `first` waits for, itself included, by way of depends_on.
std::set<const Service*> waited_for(const Project& project, const Service& first) {
    std::set<const Service*> found = {&first};
    std::vector<const Service*> left = {&first};
    while (!left.empty()) {
        const Service& service = *left.back();
        left.pop_back();
        for (const Dependency& d : service.depends_on)
            if (const Service* other = project.find(d.service); other != nullptr && found.insert(other).second)
                left.push_back(other);
    }
    return found;
}

/// Does `later`, or what it waits for, start only when `earlier` has come to its end?
bool follows(const Project& project, const Service& later, const Service& earlier) {
    const std::set<const Service*> before = waited_for(project, later);
    return std::any_of(before.begin(), before.end(), [&](const Service* service) {
        return std::any_of(service->depends_on.begin(), service->depends_on.end(), [&](const Dependency& d) {
            return d.condition == Dependency::Condition::Completed && d.service == earlier.name;
        });
    });
}

Checked<void> check_scale(const std::string& file, const Service& service, const Findings& findings) {
    if (service.scale < 2) return {};
    if (!service.container_name.empty())
        TRY(findings.take(finding(
            "compose.clash", file, service.mark,
            fmt::format("service \"{}\" has a container_name, so it cannot run {} times", service.name, service.scale),
            "leave container_name out, or the scale at 1")));
    for (const Port& port : service.ports)
        if (port.published != 0 && service.publishes_ports())
            TRY(findings.take(finding("compose.clash", file, port.mark,
                                      fmt::format("service \"{}\" runs {} times, and each wants port {} of the target",
                                                  service.name, service.scale, port.published),
                                      fmt::format("write \"{}\", so that the engine chooses a port for each, or leave "
                                                  "the scale at 1",
                                                  port.target))));
    return {};
}

/// The first service that waits for itself, by way of others: `wanted` calls its second argument with each name that
/// the first waits for.
template <typename Wanted>
const Service* in_a_circle(const Project& project, const Wanted& wanted) {
    for (const Service& service : project.services) {
        std::set<std::string> reached;
        std::vector<const Service*> left = {&service};
        while (!left.empty()) {
            const Service& one = *left.back();
            left.pop_back();
            wanted(one, [&](const std::string& name) {
                const Service* other = project.find(name);
                if (other != nullptr && reached.insert(name).second) left.push_back(other);
            });
        }
        if (reached.contains(service.name)) return &service;
    }
    return nullptr;
}

Checked<void> check_cycles(const std::string& file, const Project& project, const Findings& findings) {
    const Service* starts = in_a_circle(project, [](const Service& service, const auto& waits_for) {
        for (const Dependency& d : service.depends_on) waits_for(d.service);
    });
    if (starts != nullptr)
        TRY(findings.take(
            finding("compose.cycle", file, starts->mark,
                    fmt::format("service \"{}\" depends on itself, by way of its depends_on", starts->name))));
    constexpr std::string_view kService = "service:";
    const Service* builds = in_a_circle(project, [&](const Service& service, const auto& waits_for) {
        if (!service.build) return;
        for (const auto& [context, source] : service.build->additional_contexts)
            if (source.starts_with(kService)) waits_for(source.substr(kService.size()));
    });
    if (builds != nullptr)
        TRY(findings.take(
            finding("compose.cycle", file, builds->build->mark,
                    fmt::format("the build contexts of service \"{}\" lead back to itself", builds->name))));
    return {};
}

}  // namespace

Checked<void> check_references(const std::string& file, const Project& project, const Findings& findings) {
    for (const Service& service : project.services) TRY(check_service(file, project, service, findings));
    return check_cycles(file, project, findings);
}

Checked<void> check_clashes(const std::string& file, const Project& project, bool every_profile,
                            const Findings& findings) {
    const auto together = [&](const Service& a, const Service& b) {
        return (!every_profile || run_together(a, b)) && !follows(project, a, b) && !follows(project, b, a);
    };
    const auto clash = [&](Mark mark, std::string message, std::string fix) {
        return findings.take(finding("compose.clash", file, mark, std::move(message), std::move(fix)));
    };
    std::multimap<std::pair<std::uint16_t, std::string>, std::pair<const Service*, const Port*>> published;
    for (auto service = project.services.begin(); service != project.services.end(); ++service) {
        if (service->scale == 0) continue;
        TRY(check_scale(file, *service, findings));
        // A container that has come to its end keeps its name, so that here it does not matter who waits for whom.
        for (auto other = project.services.begin(); other != service; ++other)
            if (other->scale != 0 && !service->container_name.empty() &&
                service->container_name == other->container_name && (!every_profile || run_together(*service, *other)))
                TRY(clash(service->mark,
                          fmt::format("services \"{}\" and \"{}\" have one container_name, \"{}\"", other->name,
                                      service->name, service->container_name),
                          "give each its own"));
        for (const Port& port : service->ports) {
            if (port.published == 0 || !service->publishes_ports()) continue;
            const auto [from, to] = published.equal_range({port.published, port.protocol});
            const auto holder = std::find_if(from, to, [&](const auto& entry) {
                const auto& [other, their] = entry.second;
                if (!are_one_address(their->host_ip, port.host_ip)) return false;
                return other == &*service ? their->target != port.target : together(*other, *service);
            });
            if (holder != to)
                TRY(clash(port.mark,
                          fmt::format("service \"{}\" wants port {} of the target, which service \"{}\" has already",
                                      service->name, port.published, holder->second.first->name),
                          "publish another port"));
            published.insert({{port.published, port.protocol}, {&*service, &port}});
        }
    }
    return {};
}

}  // namespace talpa::topo
