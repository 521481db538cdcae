// talpa-webapp: opens everything, gives up what it does not need any more, serves until it is told to end.
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "base/host/exit_status.h"
#include "base/host/file.h"
#include "base/host/terminal.h"
#include "image/decode.h"
#include "webapp/app.h"
#include "webapp/embedded.h"

namespace talpa::webapp {
namespace {

namespace fs = std::filesystem;

void log(const std::string& text) {
    host::say("talpa-webapp: " + text + "\n");
}

/// Pictures built in, and those of the folder (at most 24 of at most 1 MiB).
std::vector<Sample> load_samples(const std::string& folder) {
    constexpr std::size_t kMost = 24;
    constexpr std::uint64_t kLargest = 1 << 20;
    std::vector<Sample> samples;
    for (const std::string name : {"cat.jpg", "coffee.jpg"})
        samples.push_back({name, "image/jpeg", std::string(embedded("samples/" + name))});
    if (folder.empty()) return samples;
    std::error_code error;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder, error)) paths.push_back(entry.path());
    if (error) log(fmt::format("samples: cannot read {}: {}", folder, error.message()));
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
        if (samples.size() >= kMost) break;
        const auto text = host::read_text(path, kLargest);
        if (!text) continue;
        const auto format = image::recognise({reinterpret_cast<const std::uint8_t*>(text->data()), text->size()});
        if (!format) continue;
        static constexpr const char* kTypes[] = {"image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"};
        samples.push_back({path.filename().string(), kTypes[static_cast<std::size_t>(*format)], *text});
    }
    return samples;
}

void load_models(App::Parts& parts) {
    const Options& options = parts.options;
    if (!options.labels.empty()) {
        auto labels = classifier::Labels::read(options.labels, options.label_offset);
        if (labels)
            parts.labels = *std::move(labels);
        else
            parts.labels_error = labels.error().describe();
    }
    for (const std::string& path : options.programs) {
        auto program = classifier::BoardProgram::open(path);
        host::Result<ModelPtr> model = program ? ModelPtr() : host::Result<ModelPtr>(std::unexpected(program.error()));
        if (program) {
            // Labels that are too few for a network are told by a check; they do not keep it from running. They are the
            // first program's; another's only when their number says so.
            const bool enough = parts.models.empty() ? program->classes == 0 ||
                                                           parts.labels.check_enough_for(program->classes).has_value()
                                                     : parts.labels.one_for_each(program->classes);
            model = make_model(*std::move(program), enough ? parts.labels : classifier::Labels(), false);
        }
        if (model) {
            log(fmt::format("program {}: {} bytes, {}, id {}", path, (*model)->program.bytes().size(), (*model)->target,
                            (*model)->id));
            parts.models.push_back(*std::move(model));
        } else {
            log(model.error().describe());
            if (parts.program_error.empty()) parts.program_error = model.error().describe();
        }
    }
}

int serve(Options options) {
    std::error_code error;
    if (!options.root.empty() && !fs::is_directory(options.root, error)) {
        log(fmt::format("--root: there is no folder {}", options.root));
        return host::kExitFailed;
    }
    // Signals go to one thread that waits for them.
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
    ::signal(SIGPIPE, SIG_IGN);

    LookPaths paths{.board = {.root = options.root, .memory = options.memory, .tty = options.tty},
                    .device_tree = options.device_tree,
                    .ethosu = options.ethosu};
    paths.board.remoteproc_name = options.remoteproc;
    if (paths.board.memory == "/dev/mem") paths.board.memory.clear();  // not asked for: that of the remote processor
    paths.board.remoteproc_class = options.remoteproc_class;
    paths.board.debug_class = options.debug_class;
    auto broker = Broker::start(paths);  // first of all: it shall have nothing of ours
    if (!broker) {
        log(broker.error().describe());
        return host::kExitFailed;
    }
    http::ServerOptions listen;
    std::tie(listen.address, listen.port) = *parse_listen(options.listen);
    auto server = http::Server::listen(listen);
    if (!server) {
        log(server.error().describe());
        return host::kExitFailed;
    }
    App::Parts parts;
    parts.options = std::move(options);
    parts.broker = *std::move(broker);
    parts.samples = load_samples(parts.options.samples);
    load_models(parts);
    parts.sandbox =
        enter_sandbox({.enabled = parts.options.sandbox, .user = parts.options.user, .group = parts.options.group});
    for (const SandboxStep& step : parts.sandbox)
        log(fmt::format("sandbox: {}: {}: {}", step.what, step.applied ? "applied" : "not applied", step.detail));

    log(parts.options.token.empty() ? "anyone who can reach this server may ask (no --token)"
                                    : "clients must know the token");

    App app(std::move(parts), **server);
    app.check_and_log();
    std::thread signals([&] {
        siginfo_t info{};
        while (::sigwaitinfo(&ending, &info) < 0 && errno == EINTR) {
        }
        log(fmt::format("signal {}: stopping", info.si_signo));
        app.stop();
        (*server)->stop();
    });
    log(fmt::format("serving on {}:{}", listen.address, (*server)->port()));
    (*server)->run(app);
    signals.join();
    return host::kExitSuccess;
}

}  // namespace
}  // namespace talpa::webapp

int main(int argc, char** argv) {
    talpa::webapp::Options options;
    if (const auto status = talpa::webapp::parse_options(argc, argv, options)) return *status;
    try {
        return talpa::webapp::serve(std::move(options));
    } catch (const std::exception& e) {
        talpa::host::say(fmt::format("talpa-webapp: {}\n", e.what()));
        return talpa::host::kExitFailed;
    }
}
