#include "cli/picture_options.h"

#include <fmt/format.h>

namespace talpa::cli {

namespace fs = std::filesystem;

host::Result<classifier::NormalisationFlags> normalisation(const PictureOptions& options) {
    static constexpr std::size_t kOneOrThree[] = {1, 3}, kTwo[] = {2};
    classifier::NormalisationFlags flags;
    if (!options.mean.empty()) {
        TRY_ASSIGN(flags.mean, classifier::parse_numbers("--mean", options.mean, kOneOrThree));
    }
    if (!options.std.empty()) {
        TRY_ASSIGN(flags.std, classifier::parse_numbers("--std", options.std, kOneOrThree));
    }
    if (!options.range.empty()) {
        TRY_ASSIGN(flags.range, classifier::parse_numbers("--range", options.range, kTwo));
    }
    return flags;
}

host::Result<std::optional<fs::path>> OutputFolders::next(const std::string& image) {
    if (root_.empty()) return std::nullopt;
    fs::path folder = root_;
    if (one_each_) {
        const std::string name = fs::path(image).filename().string();
        // A picture may be called as another one's folder was numbered.
        std::string free = name;
        for (unsigned i = 2; !names_.insert(free).second; ++i) free = fmt::format("{}.{}", name, i);
        folder /= free;
    }
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return host::failure(ErrorCode::AccessFailed, "cannot make the folder {}: {}", folder.string(),
                             error.message());
    return folder;
}

}  // namespace talpa::cli
