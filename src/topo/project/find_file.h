// Which compose file a command means (topo spec, section 2.4).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/host/error.h"

namespace talpa::topo {

struct ComposeFile {
    std::filesystem::path path;
    std::vector<std::string> warnings;
};

/// `given`: the value of -f, if the flag was used. Else compose.yaml or compose.yml of `folder`.
[[nodiscard]] host::Result<ComposeFile> find_compose_file(const std::optional<std::string>& given,
                                                          const std::filesystem::path& folder = {});

}  // namespace talpa::topo
