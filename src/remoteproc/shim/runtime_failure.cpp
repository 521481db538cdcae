#include "remoteproc/shim/runtime_failure.h"

#include <fmt/format.h>

namespace talpa::remoteproc::shim {
namespace {

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

}  // namespace

std::string failed_text(std::string_view operation, const CommandResult& result) {
    if (result.status == kNoRuntime) return fmt::format("runtime {} failed: {}", operation, result.error);
    return fmt::format("runtime {} failed: exit status {}, stderr: {}", operation, result.status,
                       trimmed(result.error));
}

Code code_of(std::string_view text) {
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    if (has("already exists")) return Code::AlreadyExists;
    if (has("remote processor") && has("does not exist")) return Code::NotFound;
    if (has("already running") || has("is stopped") || has("busy")) return Code::FailedPrecondition;
    if (has("process already finished") || has("container does not exist")) return Code::NotFound;
    if (has("unsupported signal") || has("invalid container") || has("is refused") || has("expected exactly one"))
        return Code::InvalidArgument;
    return Code::Unknown;
}

}  // namespace talpa::remoteproc::shim
