// The parts of an OCI bundle's config.json that firmware has a use for. Everything else is ignored, as engines fill in
// what they like. (remoteproc-runtime, sections 1, 4 and 16)
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remoteproc/sys/os_error.h"

namespace talpa::remoteproc {

/// X(name, key in config.json)
#define TALPA_HOOK_KINDS(X)               \
    X(Prestart, "prestart")               \
    X(CreateRuntime, "createRuntime")     \
    X(CreateContainer, "createContainer") \
    X(StartContainer, "startContainer")   \
    X(Poststart, "poststart")             \
    X(Poststop, "poststop")

enum class HookKind : std::uint8_t {
#define X(name, key) name,
    TALPA_HOOK_KINDS(X)
#undef X
};
inline constexpr std::array<std::string_view, 6> kHookKeys{
#define X(name, key) key,
    TALPA_HOOK_KINDS(X)
#undef X
};

struct Hook {
    std::string path;
    std::vector<std::string> arguments;
    std::vector<std::string> environment;
    int timeout_s = 0;  ///< 0: none
};
using Hooks = std::array<std::vector<Hook>, kHookKeys.size()>;

struct NamespaceWish {
    std::string type;
    std::string path;  ///< empty: a new one
};

using Annotations = std::map<std::string, std::string>;

struct Spec {
    std::string oci_version;
    std::optional<std::vector<std::string>> arguments;  ///< nothing where `process` is absent
    std::vector<std::string> environment;
    bool terminal = false;
    std::optional<std::string> root;  ///< as written
    Annotations annotations;
    std::vector<NamespaceWish> namespaces;
    Hooks hooks;
};

/// Reads the first JSON value of `text`; what follows it is ignored. Nesting, sizes and types are checked.
[[nodiscard]] Result<Spec> parse_spec(std::string_view text);
/// <bundle>/config.json. The error begins as engines know it (section 8, E1).
[[nodiscard]] Result<Spec> load_spec(const std::string& bundle);

enum class ContainerKind : std::uint8_t {
    Firmware,
    Sandbox,  ///< the pause container of a pod: touches no core
};
[[nodiscard]] ContainerKind container_kind(const Annotations& annotations);
/// The sandbox that a pod's container belongs to.
[[nodiscard]] std::optional<std::string> sandbox_id(const Annotations& annotations);

/// The end of the first JSON value in `text` that is an object, or why there is none. `max_depth` bounds nesting.
[[nodiscard]] Result<std::string_view> first_json_object(std::string_view text, int max_depth = 64);

}  // namespace talpa::remoteproc
