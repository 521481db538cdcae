#include "remoteproc/shim/shim_log.h"

#include <fcntl.h>

#include "remoteproc/oci/log.h"
#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc::shim {
namespace {

bool debug_wanted = false;

void write_line(std::string_view level, std::string_view line) {
    static Fd fifo;
    if (!fifo) fifo = Fd(::open("log", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW));
    if (!fifo) return;
    const std::string text =
        fmt::format("time=\"{}\" level={} msg={}\n", rfc3339(unix_ns_now()), level, json_quoted(line));
    if (!write_all(fifo.get(), text)) fifo.reset();
}

}  // namespace

void set_shim_log(bool debug) {
    debug_wanted = debug;
}

void shim_log(std::string_view line) {
    write_line("warning", line);
}

void shim_debug(std::string_view line) {
    if (debug_wanted) write_line("debug", line);
}

}  // namespace talpa::remoteproc::shim
