#include "topo/project/compose_model.h"

#include <algorithm>

#include "topo/project/compose_keys.h"
#include "topo/project/compose_load.h"
#include "topo/project/compose_references.h"
#include "topo/project/compose_service.h"
#include "topo/project/compose_values.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using yaml::Entry;
using yaml::Node;

bool external(const Node& node) {
    const Node* value = node.own("external");
    return value != nullptr && (value->is_mapping() || lower(value->value) == "true");
}

std::string named(const Node& node, const std::string& key, const std::string& project) {
    if (const Node* name = node.own("name"); name != nullptr && !name->value.empty()) return name->value;
    return external(node) ? key : project + "_" + key;
}

Checked<void> read_volumes(const Node& tree, const std::string& file, Project& project) {
    const Node* volumes = tree.own("volumes");
    if (volumes == nullptr) return {};
    for (const Entry& entry : volumes->entries) {
        const Node& node = *entry.value;
        const Place place{file, "volumes." + entry.key->value};
        NamedVolume volume{.key = entry.key->value,
                           .name = named(node, entry.key->value, project.name),
                           .external = external(node),
                           .driver = {},
                           .driver_options = {},
                           .labels = {}};
        if (const Node* driver = node.own("driver")) volume.driver = driver->value;
        if (const Node* options = node.own("driver_opts")) {
            TRY_ASSIGN(volume.driver_options, read_pairs(*options, place, nullptr));
        }
        if (const Node* labels = node.own("labels"); labels != nullptr && labels->is_mapping()) {
            TRY_ASSIGN(volume.labels, read_pairs(*labels, place, nullptr));
        }
        project.volumes.push_back(std::move(volume));
    }
    return {};
}

void read_networks(const Node& tree, Project& project) {
    const Node* networks = tree.own("networks");
    if (networks == nullptr) return;
    for (const Entry& entry : networks->entries) {
        const Node& node = *entry.value;
        project.networks.push_back({entry.key->value, named(node, entry.key->value, project.name), external(node)});
        for (const Entry& option : node.entries)
            if (option.key->value != "name" && option.key->value != "external" && option.key->value != "driver" &&
                option.key->value != "labels")
                project.not_honoured.push_back(
                    {fmt::format("networks.{}.{}", entry.key->value, option.key->value), option.key->mark});
    }
}

// The key `name`, COMPOSE_PROJECT_NAME, or the folder.
Checked<void> name_project(const Node& tree, const std::string& file, const Variables& variables, Project& project) {
    const Node* name = tree.own("name");
    project.name = name != nullptr ? name->value : variables.find("COMPOSE_PROJECT_NAME").value_or("");
    if (const auto forced = variables.find("COMPOSE_PROJECT_NAME"); forced && !forced->empty()) project.name = *forced;
    if (project.name.empty()) project.name = normalised_project_name(project.folder.filename().string());
    if (project.name.empty())
        return finding("compose.name", file, {},
                       fmt::format("the folder \"{}\" gives the project no name: it has no letter from a to z and no "
                                   "digit",
                                   project.folder.filename().string()),
                       "set the root key `name`");
    if (normalised_project_name(project.name) != project.name)
        return finding(
            "compose.name", file, name == nullptr ? Mark{} : name->mark,
            fmt::format("\"{}\" is no project name: it must start with a letter or digit and hold only lower-case "
                        "letters, digits, '-' and '_'",
                        project.name),
            "set the root key `name`");
    return {};
}

Checked<void> read_services(const Node& tree, const std::vector<std::string>& profiles, const ServiceContext& context) {
    const Node* services = tree.own("services");
    if (services == nullptr) return {};
    const auto wanted = [&](const std::string& profile) {
        return std::any_of(profiles.begin(), profiles.end(),
                           [&](const std::string& one) { return one == profile || one == "*"; });
    };
    for (const Entry& entry : services->entries) {
        auto read = read_service(entry.key->value, *entry.value, context);
        if (!read) {
            TRY(context.findings.take(std::unexpected(std::move(read.error()))));
            continue;
        }
        Service service = std::move(*read);
        service.mark = entry.key->mark;
        if (service.profiles.empty() || std::any_of(service.profiles.begin(), service.profiles.end(), wanted))
            context.project.services.push_back(std::move(service));
        else
            context.project.inactive.push_back(service.name);
    }
    return {};
}

}  // namespace

bool Service::is_firmware() const {
    return lower(trimmed(runtime)).find("remoteproc") != std::string::npos;
}

bool Service::publishes_ports() const {
    return !is_firmware() && network_mode != "host" && network_mode != "none" &&
           !network_mode.starts_with("service:") && !network_mode.starts_with("container:");
}

const Service* Project::find(std::string_view service) const {
    for (const Service& s : services)
        if (s.name == service) return &s;
    return nullptr;
}

std::string Project::image_of(const Service& service) const {
    return service.image.empty() ? name + "-" + service.name : service.image;
}

std::string normalised_project_name(std::string_view name) {
    std::string out;
    for (const char c : lower(name)) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (letter || ((c == '-' || c == '_') && !out.empty())) out += c;
    }
    return out;
}

Checked<Project> load_project(const LoadOptions& options) {
    Project project;
    project.file = std::filesystem::absolute(options.file).lexically_normal();
    project.folder = project.file.parent_path();
    const std::string file = options.file.string();
    Variables variables;
    for (const auto& [name, value] : options.variables) variables.set(name, value);
    TRY(load_dotenv(project.folder, variables));
    const Findings findings(options.all);
    auto loaded = load_tree(project.file, variables, findings);
    if (!loaded) {
        if (loaded.error().file == project.file.string()) loaded.error().file = file;
        return std::unexpected(loaded.error());
    }
    const Node& tree = **loaded;

    TRY(name_project(tree, file, variables, project));
    for (const Entry& entry : tree.entries) {
        const ComposeKey* key = find_key(root_keys(), entry.key->value);
        if (key != nullptr && key->handling == Handling::Refused && !entry.value->entries.empty())
            project.not_honoured.push_back({entry.key->value, entry.key->mark});
    }
    TRY(read_volumes(tree, file, project));
    read_networks(tree, project);

    std::vector<std::string> profiles = options.profiles;
    for (const std::string& one : split(variables.find("COMPOSE_PROFILES").value_or(""), ","))
        if (!trimmed(one).empty()) profiles.emplace_back(trimmed(one));
    TRY(read_services(tree, profiles, {file, variables, findings, project}));
    if (const Node* x_topo = tree.own("x-topo"))
        if (const Node* message = x_topo->own("deployment_success_message"); message != nullptr && !is_null(*message)) {
            project.success_message_is_text = message->is_scalar();
            if (message->is_scalar()) project.success_message = message->value;
        }
    // Of what was left out as wrong others may speak.
    if (findings.count() == 0) TRY(check_references(file, project, findings));
    project.missing_variables.assign(variables.missing().begin(), variables.missing().end());
    return project;
}

}  // namespace talpa::topo
