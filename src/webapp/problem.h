// Errors of the API: problem documents (RFC 9457, application/problem+json) with a stable code and what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/host/json.h"
#include "link/host/board_fault.h"
#include "webapp/http/message.h"

namespace talpa::webapp {

/// Beside the faults of the board (link/host/board_fault.h). X(name, code, HTTP status, title, what to do)
#define TALPA_WEB_PROBLEMS(X)                                                                                    \
    X(BadRequest, "bad-request", 400, "the request is not understood", "see /api/openapi.json")                  \
    X(NoPicture, "no-picture", 400, "there is no picture in the request",                                        \
      "send form data with a file in the field 'image', or the picture itself as the body")                      \
    X(EmptyPicture, "empty-picture", 400, "the picture file is empty", "choose another file")                    \
    X(Unauthorized, "unauthorized", 401, "this server wants a token",                                            \
      "open /?token=TOKEN once, or send 'Authorization: Bearer TOKEN'")                                          \
    X(WrongOrigin, "wrong-origin", 403, "the request comes from a page of another site",                         \
      "use the page of this server, or a program that sends no Origin")                                          \
    X(NotFound, "not-found", 404, "there is nothing here", "see /api/openapi.json")                              \
    X(NoModel, "no-such-model", 404, "there is no such model", "see /api/models for those there are")            \
    X(Method, "method-not-allowed", 405, "this cannot be done with that", "see /api/openapi.json")               \
    X(TooLarge, "too-large", 413, "the upload is larger than the limit", "send a smaller file (--upload-limit)") \
    X(TooMany, "too-many-pictures", 413, "there are more pictures in the request than may wait",                 \
      "send them in several requests (--queue)")                                                                 \
    X(PictureTooLarge, "picture-too-large", 413, "the picture has more pixels than the limit",                   \
      "scale it down first (--pixel-limit)")                                                                     \
    X(InvalidPicture, "invalid-picture", 415, "the file is no picture that can be read",                         \
      "send JPEG, PNG, WebP, GIF or BMP")                                                                        \
    X(WrongHost, "wrong-host", 421, "this server does not answer to that host name",                             \
      "use its address, or start it with --allow-host NAME")                                                     \
    X(InvalidModel, "invalid-model", 422, "the file is no program that the board can run",                       \
      "compile it for ethos-u65-256; `talpa inspect` shows what is in it")                                       \
    X(HeadTooLong, "head-too-long", 431, "the request's head is too long", "send fewer or shorter headers")      \
    X(ServerFault, "server-fault", 500, "a fault in the server", "see its log, and tell its authors")            \
    X(Full, "queue-full", 503, "too many pictures are waiting", "try again in a moment")                         \
    X(Stopping, "shutting-down", 503, "the server is stopping", "try again in a moment")

enum class ProblemKind : std::uint8_t {
#define X(name, code, status, title, fix) name,
    TALPA_WEB_PROBLEMS(X)
#undef X
};

struct Problem {
    int status = 500;
    std::string code, title, detail, fix;
    std::vector<std::string> known;  ///< about the state of the board
    int retry_after_s = 0;           ///< 0: not said

    [[nodiscard]] host::Json json() const;
    [[nodiscard]] http::Response response() const;
};

[[nodiscard]] Problem problem(ProblemKind kind, std::string detail = {});
/// By its error code: pictures, memory; else a fault of the server.
[[nodiscard]] Problem problem(const host::Error& error);
[[nodiscard]] Problem problem(const link::host::BoardError& error);
/// What to do about it: what the place that found it says, else what usually helps.
[[nodiscard]] std::string advice(const link::host::BoardError& error);
/// All codes, for the documentation's test.
[[nodiscard]] std::vector<std::string_view> problem_codes();

}  // namespace talpa::webapp
