// What the commands that take pictures share: flags of normalisation, and where outputs are written.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "classifier/picture_input.h"
#include "classifier/run_result.h"

namespace talpa::cli {

/// --mean, --std and --range as written by the user.
struct PictureOptions {
    std::string mean, std, range;
    [[nodiscard]] bool given() const { return !mean.empty() || !std.empty() || !range.empty(); }
};
[[nodiscard]] host::Result<classifier::NormalisationFlags> normalisation(const PictureOptions& options);

/// Where outputs go: DIR itself, or with several pictures a folder each, named after the picture.
class OutputFolders {
  public:
    OutputFolders(std::string root, bool one_each) : root_(std::move(root)), one_each_(one_each) {}
    /// The folder for the next picture, made if need be; nothing when no outputs are wanted.
    [[nodiscard]] host::Result<std::optional<std::filesystem::path>> next(const std::string& image);

  private:
    std::string root_;
    bool one_each_;
    std::set<std::string> names_;
};

/// The pictures one after the other. One bad picture does not take the others' results away: with several it is
/// reported on standard error at once, and its result has nothing but the error.
[[nodiscard]] host::Result<std::vector<classifier::RunResult>> run_each(
    const std::vector<std::string>& images,
    const std::function<host::Result<classifier::RunResult>(const std::string&)>& run);
/// A note on standard error where the labels can hardly be the network's.
void tell_doubt(const std::vector<classifier::RunResult>& results, const classifier::Labels& labels);
/// InvalidPicture when there are results with nothing but an error.
[[nodiscard]] host::Result<void> check_all(const std::vector<classifier::RunResult>& results);

}  // namespace talpa::cli
