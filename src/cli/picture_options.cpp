#include "cli/picture_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/host/printable.h"
#include "base/host/terminal.h"

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
    TRY(check(flags));
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

host::Result<std::vector<classifier::RunResult>> run_each(
    const std::vector<std::string>& images,
    const std::function<host::Result<classifier::RunResult>(const std::string&)>& run) {
    std::vector<classifier::RunResult> results;
    host::Progress progress("picture", images.size());
    for (const std::string& image : images) {
        auto result = run(image);
        if (!result) {
            if (images.size() == 1) return std::unexpected(std::move(result.error()));
            progress.clear();
            host::say(fmt::format("{} {}\n", host::Style(stderr).red("talpa:"), result.error().describe()));
            classifier::RunResult none;
            none.error = result.error().describe();
            result = std::move(none);
        }
        result->image = image;
        results.push_back(*std::move(result));
        progress.done(results.size());
    }
    return results;
}

void tell_doubt(const std::vector<classifier::RunResult>& results, const classifier::Labels& labels) {
    const auto ran = std::ranges::find_if(results, [](const auto& result) { return result.error.empty(); });
    if (ran == results.end()) return;
    if (const std::string doubt = labels.doubt(ran->classification ? ran->classification->classes : 0); !doubt.empty())
        host::say(fmt::format("talpa: note: {}\n", host::printable(doubt)));
}

host::Result<void> check_all(const std::vector<classifier::RunResult>& results) {
    const auto failed = std::ranges::count_if(results, [](const auto& result) { return !result.error.empty(); });
    if (failed == 0) return {};
    return host::failure(ErrorCode::InvalidPicture, "{} of {} pictures have no result", failed, results.size());
}

}  // namespace talpa::cli
