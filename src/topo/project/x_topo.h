// The root key x-topo of a project's compose.yaml (topo spec, section 6): read as clone and configure need it, and
// checked against the published schema for lint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topo/project/yaml.h"

namespace talpa::topo {

struct Parameter {
    std::string name;
    std::string description;
    bool required = false;
    std::optional<std::string> example;
    Mark mark;
};

struct XTopo {
    bool present = false;
    std::string name, description;
    std::vector<std::string> features;
    std::vector<Parameter> parameters;  ///< in the order of writing: that of the questions
    bool deprecated_args = false;       ///< read from x-topo.args
};

/// Tolerant: unknown keys and a missing name are accepted; a wrong type is a finding (xtopo.type). The success message
/// is not looked at.
[[nodiscard]] Checked<XTopo> read_x_topo(const yaml::Node& root, const std::string& file);

/// Everything that the published schema says of x-topo.
void check_x_topo(const yaml::Node& root, const std::string& file, std::vector<Finding>& findings);

/// `^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+$`
[[nodiscard]] bool is_hint_key(std::string_view key);

}  // namespace talpa::topo
