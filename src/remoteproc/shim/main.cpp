// containerd-shim-remoteproc-v1: between containerd and remoteproc-runtime, one server for a container or a pod.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <csignal>

#include "base/host/environment.h"
#include "remoteproc/oci/privileges.h"
#include "remoteproc/shim/bootstrap.h"
#include "remoteproc/shim/server.h"
#include "remoteproc/shim/shim_log.h"

namespace talpa::remoteproc::shim {
namespace {

constexpr int kListener = 3;
constexpr int kUnusedMs = 60000;  ///< a server that nobody made a container with ends by itself
constexpr int kFlushMs = 3000, kFlushStepMs = 20;

class Shim {
  public:
    Shim(const ShimOptions& options, Fd listener)
        : options_(options),
          children_(loop_),
          events_(loop_, host::environment("TTRPC_ADDRESS"), options.namespace_name),
          tasks_(loop_, children_, events_, options.namespace_name),
          server_(loop_, tasks_, std::move(listener)) {
        tasks_.on_shutdown = [this] { leave(kFlushMs); };
        sigset_t set;
        sigemptyset(&set);
        for (const int number : {SIGTERM, SIGINT}) sigaddset(&set, number);
        ::sigprocmask(SIG_BLOCK, &set, nullptr);
        signal_fd_ = Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
        loop_.watch(signal_fd_.get(), EPOLLIN, [this](std::uint32_t) {
            signalfd_siginfo info;
            while (::read(signal_fd_.get(), &info, sizeof info) > 0) {
            }
            tasks_.stop_all([this] { leave(kFlushMs); });
        });
        look_after_unused();
        loop_.on_quiet = release_idle_pages;
    }

    void run() {
        loop_.run();
        close_door();
    }

  private:
    // From the moment that the end is certain nobody may find this server any more: the next `start` of the same id
    // makes its own, at the same address.
    void close_door() {
        if (!open_) return;
        open_ = false;
        const std::string path =
            options_.address.starts_with("unix://") ? options_.address.substr(7) : options_.address;
        if (path.starts_with('/')) ::unlink(path.c_str());
        server_.stop_listening();
    }

    // Ends once answers and events are out, or the time is up.
    void leave(int left_ms) {
        close_door();
        if (left_ms <= 0 || (events_.idle() && server_.flushed())) return loop_.quit();
        loop_.after(kFlushStepMs, [this, left_ms] { leave(left_ms - kFlushStepMs); });
    }

    void look_after_unused() {
        loop_.after(kUnusedMs, [this] {
            if (tasks_.empty() && server_.connections() == 0) return loop_.quit();
            look_after_unused();
        });
    }

    ShimOptions options_;
    Loop loop_;
    Children children_;
    EventPublisher events_;
    TaskService tasks_;
    Server server_;
    Fd signal_fd_;
    bool open_ = true;
};

int serve(const ShimOptions& options) {
    std::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_NAME, "rproc-shim");
    set_shim_log(options.debug);
    struct stat info;
    if (::fstat(kListener, &info) != 0 || !S_ISSOCK(info.st_mode)) {
        (void)write_all(2, fmt::format("{}: no socket at descriptor 3; this is started by containerd\n", kShimName));
        return 1;
    }
    ::fcntl(kListener, F_SETFD, FD_CLOEXEC);
    Shim(options, Fd(kListener)).run();
    return 0;
}

int run(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto options = parse_shim_options(arguments);
    const auto complain = [](std::string_view text) {
        (void)write_all(2, fmt::format("{}: {}\n", kShimName, text));
        return 1;
    };
    if (!options) return complain(error_line(options.error()));
    if (options->help || arguments.empty()) {
        (void)write_all(options->help ? 1 : 2, shim_usage());
        return options->help ? 0 : 1;
    }
    if (options->version) {
        (void)write_all(1, fmt::format("{}:\n  Version:  {}\n  Revision: unknown\n", argv[0], TALPA_VERSION));
        return 0;
    }
    if (options->info) return write_all(1, info_bytes(TALPA_VERSION)) ? 0 : 1;
    if (options->namespace_name.empty()) return complain("shim namespace cannot be empty");
    if (options->action == "start") return run_start(*options);
    if (options->action == "delete") return run_delete(*options);
    if (!options->action.empty()) return complain("unknown action " + printable(options->action));
    return serve(*options);
}

}  // namespace
}  // namespace talpa::remoteproc::shim

int main(int argc, char** argv) {
    std::signal(SIGCHLD, SIG_DFL);  // ignored by whoever started this, no child's status could be had
    return talpa::remoteproc::shim::run(argc, argv);
}
