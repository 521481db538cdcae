// For tests only: where golden data lies. Programs that the repository carries are under tests/golden/; the larger
// reference set (real networks, photographs) is not part of it, and tests that need that set skip where it is absent.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace talpa::testing {

/// tests/golden/ of this source tree.
[[nodiscard]] inline std::filesystem::path golden_folder() {
    return std::filesystem::path(TALPA_SOURCE_DIR) / "tests" / "golden";
}

/// The reference set: $TALPA_REFERENCE, else ../shared/reference beside the source tree; nothing if there is none.
[[nodiscard]] inline std::optional<std::filesystem::path> reference_folder() {
    const char* set = std::getenv("TALPA_REFERENCE");
    std::filesystem::path folder = set != nullptr
                                       ? std::filesystem::path(set)
                                       : std::filesystem::path(TALPA_SOURCE_DIR) / ".." / "shared" / "reference";
    if (!std::filesystem::exists(folder / "models")) return std::nullopt;
    return folder;
}

}  // namespace talpa::testing

/// Skips the test where the reference set is absent; else declares `reference` as its folder.
#define TALPA_NEEDS_REFERENCE()                                          \
    const auto talpa_reference = ::talpa::testing::reference_folder();   \
    if (!talpa_reference) GTEST_SKIP() << "the reference set is absent"; \
    [[maybe_unused]] const std::filesystem::path& reference = *talpa_reference
