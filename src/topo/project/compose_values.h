// Readers for the short and long forms of single Compose values. All of them take nodes of a normalised tree.
#pragma once

#include "topo/project/compose_model.h"

namespace talpa::topo {

/// Where a value stands, for findings.
struct Place {
    const std::string& file;
    std::string path;
    [[nodiscard]] std::unexpected<Finding> bad(const yaml::Node& node, std::string message) const;
    [[nodiscard]] Place below(std::string_view key) const { return {file, path + "." + std::string(key)}; }
};

[[nodiscard]] Checked<bool> read_bool(const yaml::Node& node, const Place& place);
[[nodiscard]] Checked<int> read_int(const yaml::Node& node, const Place& place, int low, int high);
[[nodiscard]] Checked<std::chrono::milliseconds> read_duration(const yaml::Node& node, const Place& place);
[[nodiscard]] Checked<std::vector<std::string>> read_texts(const yaml::Node& node, const Place& place);
/// Scalars of a mapping; a null value is "" unless `variables` has a value for the name.
[[nodiscard]] Checked<Pairs> read_pairs(const yaml::Node& node, const Place& place, const Variables* variables);
/// A text is split as a shell would.
[[nodiscard]] Checked<std::vector<std::string>> read_command(const yaml::Node& node, const Place& place);
/// "[IP:][HOST[-HOST]:]CONTAINER[-CONTAINER][/PROTOCOL]" or the long form; ranges are spread out.
[[nodiscard]] Checked<std::vector<Port>> read_port(const yaml::Node& node, const Place& place);
[[nodiscard]] Checked<Mount> read_mount(const yaml::Node& node, const Place& place);
[[nodiscard]] Checked<std::string> read_device(const yaml::Node& node, const Place& place);
[[nodiscard]] Checked<Healthcheck> read_healthcheck(const yaml::Node& node, const Place& place);
[[nodiscard]] Checked<std::vector<Dependency>> read_depends_on(const yaml::Node& node, const Place& place);

}  // namespace talpa::topo
