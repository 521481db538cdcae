// One service of a Compose file: its keys, table-driven (compose_keys.h), into what deploy needs.
#pragma once

#include <string>

#include "topo/project/compose_model.h"
#include "topo/project/variables.h"
#include "topo/project/yaml.h"

namespace talpa::topo {

/// What surrounds a service.
struct ServiceContext {
    const std::string& file;
    const Variables& variables;
    const Findings& findings;
    Project& project;  ///< has its name and folder; what is not honoured is noted in it
};

[[nodiscard]] Checked<Service> read_service(const std::string& name, const yaml::Node& node,
                                            const ServiceContext& context);

}  // namespace talpa::topo
