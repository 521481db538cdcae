// The keys of a Compose file as a table: what each must look like, and what topo does with it when it applies a project
// itself, without the Compose plugin. One row a key; lint, plan and deploy read the same table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace talpa::topo {

/// What a value may be.
enum class Shape : std::uint8_t {
    Any,
    Scalar,      ///< text, number or boolean
    List,        ///< of scalars or mappings
    TextOrList,  ///< one text, or a list
    Mapping,
    MapOrList,  ///< "NAME: value" or "- NAME=value"
    ListOrMap,  ///< a list, or a mapping keyed by name
};

/// What topo does with a key when no Compose plugin does the work.
enum class Handling : std::uint8_t {
    Own,      ///< read by the model (compose_model.cpp)
    Flag,     ///< a flag of `docker run` and `podman run`, see `flag`
    Switch,   ///< a flag without value, given when true
    Ignored,  ///< has no effect on what runs (develop, attach, …)
    Refused,  ///< cannot be honoured: named before anything is changed
};

/// How two values for one key join when a service extends another.
enum class Join : std::uint8_t { Replace, Append, Deep };

struct ComposeKey {
    std::string_view name;
    Shape shape;
    Handling handling;
    Join join = Join::Replace;
    std::string_view flag{};
};

[[nodiscard]] std::span<const ComposeKey> service_keys();
[[nodiscard]] std::span<const ComposeKey> build_keys();
[[nodiscard]] std::span<const ComposeKey> root_keys();
[[nodiscard]] const ComposeKey* find_key(std::span<const ComposeKey> keys, std::string_view name);

}  // namespace talpa::topo
