#include "topo/target/target.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/host/file.h"
#include "topo/system/text.h"
#include "topo/target/ssh_arguments.h"
#include "topo/target/ssh_error.h"

namespace talpa::topo {
namespace {

// 108 bytes of sun_path, less the 40 digits of %C, ssh's temporary suffix of 17 and the final NUL.
constexpr std::size_t kLongestFolder = 108 - 1 - 40 - 1 - 17;

bool private_folder(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
           (info.st_mode & 077) == 0;
}

bool not_begun(const Outcome& outcome) {
    return !outcome.timed_out && refused_for_now(outcome.status, outcome.err);
}

bool is_ssh_failure(const Outcome& outcome, bool started) {
    return outcome.status == 255 && !started;
}

std::string board_configuration(const Destination& destination) {
    return control_folder() + "/board-" + destination.host;
}

std::vector<std::string> configuration_words(const Destination& destination) {
    std::vector<std::string> words = {"ssh"};
    if (destination.board) words.insert(words.end(), {"-F", board_configuration(destination)});
    words.emplace_back("-G");
    const std::vector<std::string> there = ssh_arguments(destination);
    words.insert(words.end(), there.begin(), there.end());
    return words;
}

// The program that came with us, else the one on PATH.
std::string talpa_program() {
    std::error_code ignored;
    const std::filesystem::path beside =
        std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "talpa";
    return std::filesystem::exists(beside, ignored) ? beside.string() : "talpa";
}

}  // namespace

std::string control_folder() {
    const std::string runtime = environment("XDG_RUNTIME_DIR");
    for (const std::string& path :
         {runtime.empty() ? std::string() : runtime + "/topo", fmt::format("/tmp/topo-{}", ::geteuid())})
        if (!path.empty() && path.size() <= kLongestFolder && private_folder(path)) return path;
    return {};
}

// The login shell may be anything (fish, csh): it only reads its profile and hands over to /bin/sh.
std::string login_shell_payload(const std::string& script) {
    const std::string marked = fmt::format("printf '%s\\n' {0}; printf '%s\\n' {0} >&2\n{1}", kStartMarker, script);
    const std::string payload = "exec /bin/sh -c " + shell_quoted(marked);
    return "/bin/sh -c " + shell_quoted("exec \"${SHELL:-/bin/sh}\" -l -c " + shell_quoted(payload));
}

std::string after_marker(std::string_view text, bool& found) {
    std::size_t at = 0;
    while ((at = text.find(kStartMarker, at)) != std::string_view::npos) {
        const bool starts = at == 0 || text[at - 1] == '\n';
        std::size_t end = at + kStartMarker.size();
        if (end < text.size() && text[end] == '\r') ++end;
        if (starts && end < text.size() && text[end] == '\n') {
            found = true;
            return std::string(text.substr(end + 1));
        }
        ++at;
    }
    found = false;
    return std::string(text);
}

std::vector<std::string> Target::ssh_words(const std::vector<std::string>& extra) const {
    return words_with(true, extra);
}

std::vector<std::string> Target::ssh_words_alone(const std::vector<std::string>& extra) const {
    return words_with(false, extra);
}

std::vector<std::string> Target::words_with(bool shared, const std::vector<std::string>& extra) const {
    std::vector<std::string> words = {"ssh"};
    const auto option = [&](std::string text) {
        words.emplace_back("-o");
        words.push_back(std::move(text));
    };
    if (destination_.board) words.insert(words.end(), {"-F", board_configuration(destination_)});
    static const std::string kFolder = control_folder();
    if (shared && !kFolder.empty()) {
        option("ControlMaster=auto");
        option("ControlPersist=10s");
        option("ControlPath=" + kFolder + "/%C");
    }
    option("RemoteCommand=none");  // one of the user's own would take the place of ours
    if (options_.timeout.count() > 0)
        option(fmt::format("ConnectTimeout={}", std::max<std::int64_t>(1, options_.timeout.count() / 1000)));
    // A connection that dies under a transfer is noticed after 30 seconds; a target at its limit may be silent for 15.
    option("ServerAliveInterval=5");
    option("ServerAliveCountMax=6");
    if (options_.batch)
        for (const char* text : {"BatchMode=yes", "PreferredAuthentications=publickey", "PasswordAuthentication=no",
                                 "NumberOfPasswordPrompts=0"})
            option(text);
    if (options_.accept_new_host_keys)
        option("StrictHostKeyChecking=accept-new");
    else if (options_.batch)
        option("StrictHostKeyChecking=yes");
    words.insert(words.end(), extra.begin(), extra.end());
    const std::vector<std::string> there = ssh_arguments(destination_);
    words.insert(words.end(), there.begin(), there.end());
    return words;
}

namespace {

constexpr Milliseconds kBringUp(60'000);
std::atomic<const std::string*> g_brought_up{nullptr};  // lives as long as the process

// It may be up all the same: whoever was interrupted, or waited for it too long, does not want it.
host::Error ended_bring_up(const std::string& talpa, const std::string& name, host::Error error) {
    const InterruptShield shield;
    const std::vector<std::string> words = {"board", "down", "--name", name};
    std::vector<std::string> argv = {talpa};
    argv.insert(argv.end(), words.begin(), words.end());
    const auto down = capture({.argv = argv, .timeout = Milliseconds(30'000)});
    const auto asked =
        capture({.argv = {talpa, "board", "ssh-config", "--name", name}, .timeout = Milliseconds(20'000)});
    if (down && asked && !asked->ok())
        error.message += fmt::format("; the board \"{}\" that was being brought up is down again", name);
    else
        error.message += fmt::format("; the board \"{}\" may be up: talpa {} ends it", name, shell_quoted(words));
    return error;
}

}  // namespace

std::string board_brought_up() {
    const std::string* name = g_brought_up;
    return name == nullptr ? std::string() : *name;
}

host::Result<void> bring_up_board(const Destination& destination) {
    if (!destination.board) return {};
    const std::string talpa = talpa_program();
    const Command ask{.argv = {talpa, "board", "ssh-config", "--name", destination.host},
                      .timeout = Milliseconds(20'000)};
    TRY_ASSIGN(Outcome answer, capture(ask));
    if (!answer.ok()) {
        const auto up = capture({.argv = {talpa, "board", "up", "--name", destination.host}, .timeout = kBringUp});
        if (!up && interrupted()) return std::unexpected(ended_bring_up(talpa, destination.host, interruption()));
        if (!up) return std::unexpected(up.error());
        if (up->timed_out)
            return std::unexpected(
                ended_bring_up(talpa, destination.host,
                               host::Error(ErrorCode::Timeout,
                                           fmt::format("the board \"{}\" did not come up within {} s", destination.host,
                                                       kBringUp.count() / 1000),
                                           "talpa board up --name " + destination.host)));
        if (!up->ok())
            return std::unexpected(
                host::Error(ErrorCode::AccessFailed,
                            fmt::format("the board \"{}\" does not come up: {}", destination.host, one_line(up->err)),
                            "talpa board up --name " + destination.host));
        g_brought_up = new std::string(destination.host);
        TRY_ASSIGN(answer, capture(ask));
    }
    if (!answer.ok())
        return host::failure(ErrorCode::AccessFailed, "the board \"{}\" cannot be reached by ssh: {}", destination.host,
                             one_line(answer.err));
    return host::write_text(board_configuration(destination), answer.out);
}

host::Result<void> publish_board_ports(const Destination& destination, const std::vector<std::uint16_t>& ports) {
    if (!destination.board || ports.empty()) return {};
    Command command{.argv = {talpa_program(), "board", "publish", "--name", destination.host},
                    .timeout = Milliseconds(20'000)};
    for (const std::uint16_t port : ports) command.argv.push_back(std::to_string(port));
    TRY_ASSIGN(const Outcome done, capture(command));
    if (done.ok()) return {};
    return std::unexpected(
        host::Error(ErrorCode::AccessFailed,
                    fmt::format("the ports of the board \"{}\" are not forwarded to this machine: {}", destination.host,
                                one_line(done.err)),
                    fmt::format("talpa board publish --name {} PORT:{}", destination.host, ports.front())));
}

host::Result<void> Target::connect() const {
    if (is_local()) return {};
    Command command{.argv = ssh_words()};
    command.argv.emplace_back("true");
    if (options_.batch || ::isatty(STDIN_FILENO) == 0) {
        // A little more than ssh's own limit, which says more about the cause.
        if (options_.timeout.count() > 0) command.timeout = options_.timeout + Milliseconds(1500);
        command.not_begun = not_begun;
        TRY_ASSIGN(const Outcome outcome, topo::capture(command));
        if (outcome.timed_out || outcome.status != 0)
            return std::unexpected(ssh_error(destination_, outcome.err, outcome.status, outcome.timed_out));
        return {};
    }
    TRY_ASSIGN(const Outcome outcome, pass_through(command, Output::ErrorsOnly));
    if (outcome.status != 0)  // ssh has said why on the terminal
        return host::failure(ErrorCode::AccessFailed, "ssh command to {} failed: exit status {}", destination_.uri(),
                             outcome.status);
    return {};
}

host::Result<Outcome> Target::run(const std::string& script, Milliseconds timeout, std::string input) const {
    Command command;
    command.timeout = timeout;
    command.input = std::move(input);
    if (is_local()) {
        command.argv = {"/bin/sh", "-c", script};
        return topo::capture(command);
    }
    command.argv = ssh_words();
    command.argv.push_back(login_shell_payload(script));
    command.not_begun = not_begun;
    TRY_ASSIGN(Outcome outcome, topo::capture(command));
    bool started = false, started_err = false;
    const std::string err = outcome.err;
    outcome.out = after_marker(outcome.out, started);
    outcome.err = after_marker(outcome.err, started_err);
    if (outcome.timed_out && !started) return std::unexpected(ssh_error(destination_, err, outcome.status, true));
    if (is_ssh_failure(outcome, started)) return std::unexpected(ssh_error(destination_, err, outcome.status, false));
    return outcome;
}

Command Target::command(const std::vector<std::string>& argv, bool terminal) const {
    if (is_local()) return Command{.argv = argv};
    Command command{.argv = ssh_words(terminal ? std::vector<std::string>{"-t"} : std::vector<std::string>{"-T"})};
    command.argv.push_back(shell_quoted(argv));
    command.not_begun = not_begun;
    return command;
}

Command Target::shell(const std::string& script) const {
    return command({"/bin/sh", "-c", script});
}

host::Result<Outcome> Target::capture(const std::vector<std::string>& argv, Milliseconds timeout,
                                      std::string input) const {
    Command one = command(argv);
    one.timeout = timeout;
    one.input = std::move(input);
    TRY_ASSIGN(Outcome outcome, topo::capture(one));
    if (!is_local() && outcome.status == 255) return std::unexpected(ssh_error(destination_, outcome.err, 255, false));
    return outcome;
}

host::Result<std::vector<std::pair<std::string, std::string>>> Target::ssh_configuration() const {
    TRY_ASSIGN(const Outcome outcome,
               topo::capture({.argv = configuration_words(destination_), .timeout = Milliseconds(10'000)}));
    if (!outcome.ok())
        return host::failure(ErrorCode::AccessFailed, "failed to query SSH config for '{}': exit status {}{}",
                             destination_.uri(), outcome.status,
                             outcome.err.empty() ? "" : " | stderr: " + printable(trimmed(outcome.err)));
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& line : lines_of(outcome.out)) {
        const std::size_t space = line.find(' ');
        if (space != std::string::npos) all.emplace_back(lower(line.substr(0, space)), line.substr(space + 1));
    }
    return all;
}

host::Result<std::string> Target::host_name() const {
    if (is_local()) return destination_.host;
    if (destination_.board) return "127.0.0.1";
    static std::mutex mutex;
    static std::map<std::string, std::string> known;  // asked once a run
    const std::string uri = destination_.uri();
    {
        const std::lock_guard lock(mutex);
        if (const auto it = known.find(uri); it != known.end()) return it->second;
    }
    TRY_ASSIGN(const auto all, ssh_configuration());
    std::string name = destination_.host;
    for (const auto& [key, value] : all)
        if (key == "hostname") name = value;
    const std::lock_guard lock(mutex);
    return known.emplace(uri, std::move(name)).first->second;
}

std::string url_host(const std::string& name) {
    return name.find(':') != std::string::npos ? "[" + name + "]" : name;
}

void Target::disconnect() const {
    if (is_local()) return;
    Command command{.argv = ssh_words({"-O", "exit"}), .timeout = Milliseconds(5000)};
    (void)topo::capture(command);
}

}  // namespace talpa::topo
