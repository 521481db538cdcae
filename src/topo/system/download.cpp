#include "topo/system/download.h"

#include "base/host/file.h"
#include "topo/system/text.h"

namespace talpa::topo {

host::Result<std::string> download(const std::string& url, Milliseconds timeout, std::size_t limit_bytes) {
    const std::string shown = printable(url, LineEnds::Replace);
    if (url.starts_with("file://"))
        return host::with_context(host::read_text(url.substr(7), limit_bytes), "reading " + shown);
    if (!url.starts_with("http://") && !url.starts_with("https://"))
        return host::failure(ErrorCode::InvalidArgument, "unsupported URL scheme: {}",
                             shown.substr(0, shown.find(':')));
    std::vector<std::string> argv = {"curl",    "--fail",      "--silent",      "--show-error", "--location",
                                     "--proto", "=http,https", "--proto-redir", "=http,https"};
    if (timeout.count() > 0)
        argv.insert(argv.end(), {"--max-time", fmt::format("{:.3f}", static_cast<double>(timeout.count()) / 1000)});
    argv.insert(argv.end(), {"--", url});
    if (!find_program("curl"))
        return std::unexpected(host::Error(ErrorCode::NotFound,
                                           "\"curl\" not found in $PATH; it is needed to fetch " + shown,
                                           "apt-get install curl"));
    TRY_ASSIGN(const Outcome outcome, capture({.argv = argv}, limit_bytes));
    if (outcome.cut)
        return host::failure(ErrorCode::OutOfResources, "{} is larger than {}", shown, human_bytes(limit_bytes));
    if (!outcome.ok())
        return host::failure(ErrorCode::AccessFailed, "failed to fetch {}: {}", shown, one_line(outcome.err));
    return outcome.out;
}

}  // namespace talpa::topo
