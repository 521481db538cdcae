#include "remoteproc/shim/stdio.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <cerrno>

#include "remoteproc/sys/process.h"

namespace talpa::remoteproc::shim {
namespace {

constexpr int kLoggerReadyMs = 10000;

// A FIFO is opened for both directions: no wait for a reader now, no SIGPIPE while containerd restarts. Its reader sees
// the end when the container's process, the last holder, is gone.
Result<Fd> open_output(const std::string& uri) {
    const bool file = uri.starts_with("file://");
    std::string path = file ? uri.substr(7) : uri.starts_with("fifo://") ? uri.substr(7) : uri;
    if (path.empty()) path = "/dev/null";
    if (!path.starts_with('/'))
        return host::failure(ErrorCode::NotSupported, "output {}: a FIFO, file:// or binary:// is wanted",
                             printable(uri));
    Fd fd(::open(path.c_str(), (file ? O_WRONLY | O_CREAT | O_APPEND : O_RDWR | O_NONBLOCK) | O_CLOEXEC | O_NOCTTY,
                 0644));
    if (!fd) return os_failure("open", path, errno);
    return fd;
}

// binary:///path?key=value…: the program gets the output on its descriptors 3 and 4 and closes 5 when it is ready.
Result<void> start_logger(const std::string& uri, const std::string& ns, const std::string& id, Stdio& stdio) {
    const std::size_t question = uri.find('?');
    SpawnOptions options;
    options.executable = uri.substr(9, question == std::string::npos ? question : question - 9);
    options.arguments = {options.executable};
    std::string_view query =
        question == std::string::npos ? std::string_view() : std::string_view(uri).substr(question + 1);
    while (!query.empty()) {
        const std::size_t end = query.find('&');
        const std::string_view pair = query.substr(0, end);
        const std::size_t equals = pair.find('=');
        options.arguments.emplace_back(pair.substr(0, equals));
        if (equals != std::string_view::npos && equals + 1 < pair.size())
            options.arguments.emplace_back(pair.substr(equals + 1));
        if (end == std::string_view::npos) break;
        query.remove_prefix(end + 1);
    }
    options.environment = {"CONTAINER_ID=" + id, "CONTAINER_NAMESPACE=" + ns, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    int out[2], err[2], ready[2];
    if (::pipe2(out, O_CLOEXEC) != 0) return os_failure("create", "pipe", errno);
    const Fd out_reader(out[0]);
    stdio.out = Fd(out[1]);
    if (::pipe2(err, O_CLOEXEC) != 0) return os_failure("create", "pipe", errno);
    const Fd err_reader(err[0]);
    stdio.err = Fd(err[1]);
    if (::pipe2(ready, O_CLOEXEC) != 0) return os_failure("create", "pipe", errno);
    const Fd ready_reader(ready[0]);
    Fd ready_writer(ready[1]);
    const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    options.fds = {null.get(), null.get(), null.get(), out_reader.get(), err_reader.get(), ready_writer.get()};
    TRY_ASSIGN(const pid_t pid, spawn(options));
    stdio.loggers.push_back(pid);
    ready_writer.reset();
    pollfd wait{ready_reader.get(), POLLIN, 0};
    if (::poll(&wait, 1, kLoggerReadyMs) <= 0)
        return host::failure(ErrorCode::Timeout, "logger {} is not ready after {} s", printable(options.executable),
                             kLoggerReadyMs / 1000);
    return {};
}

}  // namespace

Result<Stdio> open_stdio(const std::string& in, const std::string& out, const std::string& err, const std::string& ns,
                         const std::string& id) {
    Stdio stdio;
    TRY_ASSIGN(stdio.in, open_output(in));
    if (out.starts_with("binary://")) {
        TRY(start_logger(out, ns, id, stdio));
        return stdio;
    }
    TRY_ASSIGN(stdio.out, open_output(out));
    TRY_ASSIGN(stdio.err, open_output(err.empty() ? out : err));
    return stdio;
}

}  // namespace talpa::remoteproc::shim
