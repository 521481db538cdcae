// The catalogue of projects (topo spec, section 10).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::topo {

struct CatalogueParameter {
    std::string name, description;
    bool required = false;
    std::optional<std::string> example, default_value;
    std::string hints_json;  ///< as it stands in the catalogue; empty if there are none
};

struct CatalogueProject {
    std::string name, description, url, ref;
    std::vector<std::string> features;
    std::vector<CatalogueParameter> parameters;
};

inline constexpr const char* kDefaultCatalogue =
    "https://artifacts.tools.arm.com/devx-topo-project-catalog/v2/catalog/catalog.json";

/// Errors: not JSON, another major version than 2, a field of a wrong type (named).
[[nodiscard]] host::Result<std::vector<CatalogueProject>> parse_catalogue(const std::string& text);

/// `compatible`: one entry a project, or empty without a target. Missing features are given as the reason.
struct Compatibility {
    bool supported = true;
    std::vector<std::string> missing;
};
[[nodiscard]] std::string catalogue_plain(const std::vector<CatalogueProject>& projects,
                                          const std::vector<Compatibility>& compatible, bool colours);
[[nodiscard]] std::string catalogue_json(const std::vector<CatalogueProject>& projects,
                                         const std::vector<Compatibility>& compatible);

/// Words of every paragraph wrapped at `width` columns.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t width);

}  // namespace talpa::topo
