// describe and projects: what the target is, and which projects of the catalogue fit it (topo spec, sections 4 and 10).
#include "base/host/terminal.h"
#include "topo/cli/commands.h"
#include "topo/project/catalogue.h"
#include "topo/system/download.h"
#include "topo/system/text.h"
#include "topo/target/probe.h"

#include <cstdio>

namespace talpa::topo {
namespace {

host::Result<Hardware> hardware_of(const Destination& destination, Milliseconds timeout) {
    const Target target(destination, {.timeout = timeout, .batch = true, .accept_new_host_keys = false});
    TRY_ASSIGN(const ProbeAnswers answers, probe(target, hardware_checks(), timeout));
    return hardware_from(answers, target.is_local());
}

}  // namespace

Done run_describe(const Invocation& invocation) {
    TRY_ASSIGN(const Destination destination, needed_target(invocation));
    TRY_ASSIGN(const Milliseconds timeout, timeout_of(invocation, "--timeout", "5s"));
    TRY_ASSIGN(const Hardware hardware, hardware_of(destination, timeout));
    print(invocation.json() ? hardware_json(hardware) : hardware_yaml(hardware));
    return 0;
}

Done run_projects(const Invocation& invocation) {
    TRY_ASSIGN(const auto destination, optional_target(invocation));
    TRY_ASSIGN(const Milliseconds timeout, timeout_of(invocation, "--timeout", "5s"));
    TRY_ASSIGN(const std::string text, download(invocation.text("--source", kDefaultCatalogue), timeout));
    TRY_ASSIGN(std::vector<CatalogueProject> projects, parse_catalogue(text));
    std::vector<Compatibility> compatible;
    if (destination) {
        TRY_ASSIGN(const Hardware hardware, hardware_of(*destination, timeout));
        const std::vector<std::string> have = hardware.feature_names();
        // Every feature must be there: "any of them", as the original has it, marks a project fit that is not.
        for (const CatalogueProject& p : projects) {
            std::vector<std::string> missing = missing_features(p.features, have);
            compatible.push_back({.supported = missing.empty(), .missing = std::move(missing)});
        }
    }
    if (invocation.on("--compatible")) {
        if (!destination) return wrong_usage("--compatible needs a target: use --target or set TOPO_TARGET");
        for (std::size_t i = projects.size(); i-- > 0;)
            if (!compatible[i].supported) {
                projects.erase(projects.begin() + static_cast<std::ptrdiff_t>(i));
                compatible.erase(compatible.begin() + static_cast<std::ptrdiff_t>(i));
            }
    }
    print(invocation.json() ? catalogue_json(projects, compatible)
                            : catalogue_plain(projects, compatible, host::Style(stdout).colours()));
    return 0;
}

}  // namespace talpa::topo
