#include "topo/project/find_file.h"

#include "topo/system/text.h"

namespace talpa::topo {

host::Result<ComposeFile> find_compose_file(const std::optional<std::string>& given,
                                            const std::filesystem::path& folder) {
    std::error_code ignored;
    if (given) {
        if (trimmed(*given).empty())
            return host::failure(ErrorCode::InvalidArgument, "compose file path must not be empty");
        if (!std::filesystem::exists(*given, ignored))
            return host::failure(ErrorCode::NotFound, "compose file not found: {}", *given);
        if (std::filesystem::is_directory(*given, ignored))
            return host::failure(ErrorCode::InvalidArgument, "compose file path is a directory: {}", *given);
        return ComposeFile{.path = *given, .warnings = {}};
    }
    const std::filesystem::path first = folder / "compose.yaml", second = folder / "compose.yml";
    const bool has_first = std::filesystem::is_regular_file(first, ignored);
    const bool has_second = std::filesystem::is_regular_file(second, ignored);
    if (has_first && has_second)
        return ComposeFile{.path = first,
                           .warnings = {"found multiple compose files: compose.yaml, compose.yml; using compose.yaml"}};
    if (has_first) return ComposeFile{.path = first, .warnings = {}};
    if (has_second) return ComposeFile{.path = second, .warnings = {}};
    return host::failure(
        ErrorCode::NotFound,
        "compose file not found in current working directory: looking for compose.yaml or compose.yml");
}

}  // namespace talpa::topo
