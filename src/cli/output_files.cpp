#include "cli/output_files.h"

#include <fmt/format.h>

#include <algorithm>

namespace talpa::cli {
namespace {

namespace fs = std::filesystem;

bool is_same(const fs::path& a, const fs::path& b) {
    std::error_code error;
    if (fs::equivalent(a, b, error)) return fs::is_regular_file(a, error);  // not of /dev/stdout and its like
    if (fs::exists(a, error) || fs::exists(b, error)) return false;
    const fs::path at_a = fs::weakly_canonical(fs::absolute(a, error), error),
                   at_b = fs::weakly_canonical(fs::absolute(b, error), error);
    return !error && at_a == at_b;
}

}  // namespace

host::Result<void> check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
    for (auto output = outputs.begin(); output != outputs.end(); ++output) {
        if (output->path.empty()) continue;
        if (output->path == "-")
            return std::unexpected(host::Error(ErrorCode::InvalidArgument,
                                               fmt::format("{} -: a file named '-' is hardly meant", output->option),
                                               "/dev/stdout is the standard output, ./- that file"));
        const auto same = [&](const NamedFile& other) {
            return !other.path.empty() && is_same(other.path, output->path);
        };
        if (const auto input = std::ranges::find_if(inputs, same); input != inputs.end())
            return host::failure(ErrorCode::InvalidArgument, "{} {} would overwrite an input ({})", output->option,
                                 output->path.string(), input->option);
        if (const auto other = std::find_if(output + 1, outputs.end(), same); other != outputs.end())
            return host::failure(ErrorCode::InvalidArgument, "{} and {} would both write {}", output->option,
                                 other->option, output->path.string());
    }
    return {};
}

}  // namespace talpa::cli
