// The two forms of Compose values made one, and two services (or documents) made one.
#pragma once

#include <filesystem>

#include "topo/project/yaml.h"

namespace talpa::topo {

/// Checks the shape of every key of a service (table in compose_keys.h), turns `- NAME=value` lists into mappings,
/// texts of TextOrList keys into lists, depends_on and networks lists into mappings, `build: PATH` into a mapping, and
/// makes paths absolute against `folder`. Unknown keys and wrong shapes are findings (compose.schema); where all are
/// wanted, the key goes.
[[nodiscard]] Checked<void> normalise_service(yaml::Node& service, const std::string& name, const std::string& file,
                                              const std::filesystem::path& folder, const Findings& findings);

/// `over` wins; lists of the Append kind are joined, mappings of the Deep kind too; `!reset` removes, `!override`
/// replaces. Both must be normalised.
void merge_service(yaml::Node& base, const yaml::Node& over);
/// Two roots: services by name, the rest key by key.
void merge_root(yaml::Node& base, const yaml::Node& over);

[[nodiscard]] yaml::NodePtr make_mapping(Mark mark);
/// The entry's value, made if it is not there.
yaml::NodePtr& entry_of(yaml::Node& mapping, std::string_view key, Mark mark = {});

}  // namespace talpa::topo
