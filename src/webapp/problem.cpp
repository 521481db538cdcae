#include "webapp/problem.h"

namespace talpa::webapp {
namespace {

struct Row {
    std::string_view code;
    int status;
    std::string_view title, fix;
};
constexpr Row kRows[] = {
#define X(name, code, status, title, fix) {code, status, title, fix},
    TALPA_WEB_PROBLEMS(X)
#undef X
};

/// What to do about a fault of the board where the place that found it knew no better.
std::string_view usual_advice(link::host::BoardFault fault) {
    using enum link::host::BoardFault;
    switch (fault) {
        case FirmwareStopped:
            return "try again when the firmware runs (the board checks show it); its container, or echo start > "
                   "/sys/class/remoteproc/remoteprocN/state, starts it";
        case NoTty:
            return "modprobe rpmsg_tty; in a container: bind /dev (-v /dev:/dev)";
        case NoAnswer:
            return "is it talpa's runner? see its trace (cat /sys/kernel/debug/remoteproc/remoteprocN/trace0) and "
                   "restart it";
        case Busy:
            return "try again when the other program has ended";
        case BadReply:
            return "deploy firmware and application of the same version";
        case DoesNotFit:
            return "compile a smaller program: talpa inspect FILE.pte shows what it needs";
        default:
            return "see the board checks: /api/checks";
    }
}

/// What is wrong and with what; the code says the rest.
std::string detail_of(const host::Error& error) {
    return error.context.empty() ? error.message : error.context + ": " + error.message;
}

}  // namespace

host::Json Problem::json() const {
    host::Json json{{"type", "about:blank"}, {"title", title}, {"status", status}, {"code", code}};
    if (!detail.empty()) json["detail"] = detail;
    if (!fix.empty()) json["fix"] = fix;
    if (!known.empty()) json["known"] = known;
    if (retry_after_s > 0) json["retry_after_s"] = retry_after_s;
    return json;
}

http::Response Problem::response() const {
    http::Response response{
        .status = status, .content_type = "application/problem+json", .body = {}, .fixed_body = {}, .headers = {}};
    response.body = json().dump(2, ' ', false, host::Json::error_handler_t::replace) + "\n";
    if (retry_after_s > 0) response.headers.emplace_back("Retry-After", std::to_string(retry_after_s));
    return response;
}

Problem problem(ProblemKind kind, std::string detail) {
    const Row& row = kRows[static_cast<std::size_t>(kind)];
    return {.status = row.status,
            .code = std::string(row.code),
            .title = std::string(row.title),
            .detail = std::move(detail),
            .fix = std::string(row.fix),
            .known = {},
            .retry_after_s = kind == ProblemKind::Full || kind == ProblemKind::Stopping ? 1 : 0};
}

Problem problem(const host::Error& error) {
    const auto of = [&](ProblemKind kind) {
        Problem made = problem(kind, detail_of(error));
        if (!error.hint.empty()) made.fix = error.hint;
        return made;
    };
    switch (error.code) {
        case ErrorCode::InvalidPicture:
        case ErrorCode::NotSupported:
            return of(ProblemKind::InvalidPicture);
        case ErrorCode::OutOfResources:
            return of(ProblemKind::PictureTooLarge);
        case ErrorCode::InvalidArgument:
            return of(ProblemKind::BadRequest);
        default:
            return of(ProblemKind::ServerFault);
    }
}

std::string advice(const link::host::BoardError& error) {
    return error.error.hint.empty() ? std::string(usual_advice(error.fault)) : error.error.hint;
}

Problem problem(const link::host::BoardError& error) {
    Problem made{.status = board_fault_http_status(error.fault),
                 .code = std::string(board_fault_code(error.fault)),
                 .title = std::string(board_fault_text(error.fault)),
                 .detail = detail_of(error.error),
                 .fix = advice(error),
                 .known = error.known,
                 .retry_after_s = 0};
    if (error.fault == link::host::BoardFault::Busy) made.retry_after_s = 5;
    if (error.runner != link::RunnerError::None) made.code += fmt::format("-{}", static_cast<unsigned>(error.runner));
    return made;
}

std::vector<std::string_view> problem_codes() {
    std::vector<std::string_view> codes;
    for (const Row& row : kRows) codes.push_back(row.code);
    return codes;
}

}  // namespace talpa::webapp
