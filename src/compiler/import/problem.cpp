#include "compiler/import/problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace talpa::compiler::import {

std::string where_text(const Source& s) {
    std::vector<std::string> parts;
    for (const auto& part : {s.target, s.module, s.line})
        if (!part.empty()) parts.push_back(part);
    if (parts.empty()) return s.node;
    return fmt::format("{} ({})", s.node, fmt::join(parts, ", "));
}

host::Error problems_error(const std::vector<Problem>& problems) {
    constexpr std::size_t kShown = 100;
    std::string text = problems.size() == 1 ? "1 operator cannot be compiled:"
                                            : fmt::format("{} operators cannot be compiled:", problems.size());
    std::vector<std::string> hints;
    for (std::size_t i = 0; i < std::min(problems.size(), kShown); ++i) {
        text += fmt::format("\n  {}: {}", where_text(problems[i].source), problems[i].what);
        if (!problems[i].hint.empty() && std::ranges::find(hints, problems[i].hint) == hints.end())
            hints.push_back(problems[i].hint);
    }
    if (problems.size() > kShown) text += fmt::format("\n  … and {} more", problems.size() - kShown);
    return {ErrorCode::NotSupported, std::move(text), fmt::format("{}", fmt::join(hints, "\n  "))};
}

void warn_of_free_batch(const std::string& input, std::int64_t batch, std::vector<std::string>* warnings) {
    if (warnings != nullptr)
        warnings->push_back(
            fmt::format("dimension 0 of input '{}' is free: the network is compiled for {}", input, batch));
}

}  // namespace talpa::compiler::import
