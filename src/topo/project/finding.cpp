#include "topo/project/finding.h"

namespace talpa::topo {

std::string Finding::describe() const {
    std::string where = file;
    if (mark.line > 0) where += fmt::format(":{}:{}", mark.line, mark.column);
    return where.empty() ? message : where + ": " + message;
}

Finding::operator host::Error() const {
    return host::Error(ErrorCode::InvalidArgument, describe(), fix);
}

std::unexpected<Finding> finding(std::string code, std::string file, Mark mark, std::string message, std::string fix) {
    return std::unexpected(
        Finding{std::move(code), Severity::Error, std::move(file), mark, std::move(message), std::move(fix)});
}

}  // namespace talpa::topo
