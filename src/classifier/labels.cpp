#include "classifier/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/host/file.h"

namespace talpa::classifier {
namespace {

constexpr std::uint64_t kMaxBytes = 16u << 20;

/// What holds control characters is no list of names but some other file.
bool is_text(std::string_view text) {
    return std::ranges::none_of(
        text, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; });
}

}  // namespace

host::Result<Labels> Labels::read(const std::filesystem::path& path, std::int64_t offset) {
    TRY_ASSIGN(const std::string text, host::read_text(path, kMaxBytes));
    return of_text(text, path, offset);
}

host::Result<Labels> Labels::of_text(std::string_view text, const std::filesystem::path& path, std::int64_t offset) {
    Labels labels;
    labels.path_ = path;
    labels.offset_ = offset;
    std::string_view rest = text;
    if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!is_text(line))
            return host::failure(ErrorCode::InvalidArgument,
                                 "{} is no list of labels: line {} holds control characters", path.string(),
                                 labels.lines_.size() + 1);
        labels.lines_.emplace_back(line);
    }
    while (!labels.lines_.empty() && labels.lines_.back().empty()) labels.lines_.pop_back();
    if (labels.lines_.empty()) return host::failure(ErrorCode::InvalidArgument, "{} has no labels", path.string());
    return labels;
}

host::Result<void> Labels::check_enough_for(std::size_t classes) const {
    const auto needed = static_cast<std::int64_t>(classes) + offset_;
    if (needed <= 0)
        return host::failure(ErrorCode::InvalidArgument,
                             "with a label offset of {} none of the {} classes has a label in {}", offset_, classes,
                             path_.string());
    // The first classes have no label then, so the file has one for each of the others and no more.
    if (offset_ < 0 && std::cmp_less(needed, lines_.size()))
        return host::failure(ErrorCode::InvalidArgument,
                             "{} has {} labels, and with a label offset of {} only {} of the {} classes get one",
                             path_.string(), lines_.size(), offset_, needed, classes);
    if (std::cmp_less_equal(needed, lines_.size())) return {};
    std::string hint = "is it the label file of this network?";
    if (offset_ == 0 && lines_.size() + 1 == classes)
        hint = "if class 0 is a background that the file leaves out, say --label-offset -1";
    return std::unexpected(
        host::Error(ErrorCode::InvalidArgument,
                    fmt::format("{} has {} labels, and the output has {} classes{}", path_.string(), lines_.size(),
                                classes, offset_ == 0 ? "" : fmt::format(" (label offset {})", offset_)),
                    hint));
}

std::string Labels::doubt(std::size_t classes) const {
    if (lines_.empty()) return {};
    if (classes == 0) return fmt::format("no output scores classes that the labels in {} could name", path_.string());
    const auto named = static_cast<std::int64_t>(classes) + offset_;
    if (std::cmp_less_equal(lines_.size(), std::max<std::int64_t>(named, 0))) return {};
    return fmt::format("{} has {} labels, and the output has {} classes: is it the label file of this network?",
                       path_.string(), lines_.size(), classes);
}

const std::string& Labels::of(std::size_t class_index) const {
    static const std::string kNone;
    const std::int64_t line = static_cast<std::int64_t>(class_index) + offset_;
    return line >= 0 && std::cmp_less(line, lines_.size()) ? lines_[static_cast<std::size_t>(line)] : kNone;
}

}  // namespace talpa::classifier
