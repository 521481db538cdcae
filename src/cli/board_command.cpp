#include "cli/board_command.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/host/exit_status.h"
#include "base/host/file.h"
#include "base/host/json.h"
#include "base/host/terminal.h"
#include "board/host/control.h"
#include "board/host/covers.h"
#include "board/host/daemon.h"
#include "board/host/namespaces.h"
#include "board/host/options.h"
#include "board/host/ssh.h"

namespace talpa::cli {
namespace {

namespace fs = std::filesystem;
using board::BoardRecord;

/// The board that is meant: by name, by folder, by TALPA_BOARD, the default one, or the only one that there is.
host::Result<BoardRecord> selected(const BoardCommandOptions& o) {
    std::string name = o.name;
    if (name.empty() && !o.root.empty()) name = board::name_for_root(o.root);
    if (const char* set = std::getenv("TALPA_BOARD"); name.empty() && set != nullptr) name = set;
    if (name.empty()) {
        const auto all = board::all_boards();
        const bool standard =
            std::any_of(all.begin(), all.end(), [](const auto& b) { return b.name == board::kDefaultBoardName; });
        if (!standard && all.size() == 1) return all[0];
        if (!standard && all.size() > 1) {
            std::string names;
            for (const auto& b : all) names += (names.empty() ? "" : ", ") + b.name;
            return std::unexpected(host::Error(ErrorCode::InvalidArgument,
                                               fmt::format("there are several boards: {}", names), "--name NAME"));
        }
        name = board::kDefaultBoardName;
    }
    TRY(board::check_board_name(name));
    return board::look_up(name);
}

host::Result<board::BoardOptions> up_options(const BoardCommandOptions& o) {
    board::BoardOptions options;
    options.root = o.root;
    const char* const set = std::getenv("TALPA_BOARD");
    if (!o.name.empty())
        options.name = o.name;
    else if (!o.root.empty())
        options.name = board::name_for_root(o.root);
    else
        options.name = set != nullptr && *set != '\0' ? set : board::kDefaultBoardName;
    options.remoteprocs = o.remoteprocs;
    options.startup_delay_ms = o.startup_delay_ms;
    options.npu_threads = o.npu_threads;
    TRY_ASSIGN(options.kernel, board::parse_kernel(o.kernel));
    TRY_ASSIGN(options.without, board::parse_without(o.without));
    TRY_ASSIGN(options.quirks, board::parse_quirks(o.quirks));
    if (!o.boot.empty()) {
        TRY_ASSIGN(options.boot_image, host::read_file(o.boot, std::uint64_t{64} << 20));
    }
    if (o.ssh_port >= 0) options.ssh_port = static_cast<std::uint16_t>(o.ssh_port);
    for (const std::string& text : o.publish) {
        TRY_ASSIGN(const auto port, board::parse_published(text));
        options.published.push_back(port);
    }
    options.address = o.address;
    for (const std::string& folder : o.share) {
        std::error_code error;
        options.shared.push_back(fs::canonical(folder, error));
        if (error) return host::failure(ErrorCode::NotFound, "--share {}: {}", folder, error.message());
    }
    return options;
}

void say_up(const BoardRecord& record) {
    fmt::print("The board '{}' is up (pid {}).\n", record.name, record.pid);
    if (record.root.empty())
        fmt::print("Programs on it: talpa board exec --name {} -- COMMAND…\n", record.name);
    else
        fmt::print("Its files are below {}.\n", record.root.string());
    if (record.ssh_port != 0)
        fmt::print("ssh at port {}: talpa board ssh-config --name {} prints what to paste.\n", record.ssh_port,
                   record.name);
    for (const auto& port : record.published)
        fmt::print("Port {} of this machine is port {} of the board.\n", port.outside, port.inside);
    fmt::print("Log: talpa board logs --name {0}; end: talpa board down --name {0}\n", record.name);
    std::fflush(stdout);
}

host::Result<int> up(const BoardCommandOptions& o) {
    TRY_ASSIGN(const auto options, up_options(o));
    if (o.foreground) {
        TRY(board::run_in_foreground(options, say_up));
        return host::kExitSuccess;
    }
    TRY_ASSIGN(const auto record, board::bring_up(options));
    say_up(record);
    return host::kExitSuccess;
}

host::Result<BoardRecord> running(const BoardCommandOptions& o) {
    TRY_ASSIGN(auto record, selected(o));
    if (!record.alive && !record.death.empty())
        return std::unexpected(
            host::Error(ErrorCode::InvalidState, fmt::format("the board '{}' has {}", record.name, record.death),
                        fmt::format("talpa board logs --name {0}; talpa board down --name {0}", record.name)));
    if (!record.alive)
        return std::unexpected(
            host::Error(ErrorCode::NotFound, fmt::format("the board '{}' is not up", record.name), "talpa board up"));
    if (!record.up)
        return std::unexpected(host::Error(ErrorCode::InvalidState,
                                           fmt::format("the board '{}' is coming up", record.name),
                                           fmt::format("talpa board status --name {}", record.name)));
    return record;
}

/// A board that lives and has namespaces.
host::Result<BoardRecord> enterable(const BoardCommandOptions& o) {
    TRY_ASSIGN(auto record, running(o));
    if (!record.root.empty())
        return std::unexpected(host::Error(
            ErrorCode::NotSupported,
            fmt::format("the board '{}' has no namespaces: its files are below {}", record.name, record.root.string()),
            "talpa board up, without --root, makes a board that programs run on"));
    return record;
}

/// A program's status is its own: not one of ours.
host::Result<int> exec(const BoardCommandOptions& o, const std::vector<std::string>& command) {
    TRY_ASSIGN(const auto record, enterable(o));
    return board::run_in_board(record, command);
}

host::Result<int> connect(const BoardCommandOptions& o) {
    TRY_ASSIGN(const auto record, enterable(o));
    TRY(board::connect_in_board(record, static_cast<std::uint16_t>(o.port)));
    return host::kExitSuccess;
}

/// A port that is forwarded already, in the same way, is no error: `topo deploy` asks each time.
host::Result<int> publish(const BoardCommandOptions& o) {
    TRY_ASSIGN(auto record, enterable(o));
    for (const std::string& text : o.publish) {
        TRY_ASSIGN(const auto wanted, board::parse_published(text));
        if (wanted.outside != 0 && std::any_of(record.published.begin(), record.published.end(), [&](const auto& port) {
                return port.outside == wanted.outside && port.inside == wanted.inside;
            }))
            continue;
        TRY_ASSIGN(const auto forwarder, board::Forwarder::listen(o.address, wanted));
        const auto port = forwarder->port();
        TRY_ASSIGN(const int socket, board::open_request(record.control_socket(),
                                                         fmt::format("publish {}:{}", port.outside, port.inside)));
        char answer = 0;
        const bool taken = board::send_descriptor(socket, forwarder->listener()) && ::read(socket, &answer, 1) == 1;
        ::close(socket);
        if (!taken)
            return host::failure(ErrorCode::AccessFailed, "the board '{}' did not take the port {}", record.name, text);
        record.published.push_back(port);
        TRY(board::save(record));
        fmt::print("Port {} of this machine is port {} of the board.\n", port.outside, port.inside);
    }
    return host::kExitSuccess;
}

host::Result<int> trace(const BoardCommandOptions& o) {
    TRY_ASSIGN(const auto record, running(o));
    std::string request = "trace";
    for (const auto& [wanted, word] : {std::pair{o.trace_rpmsg, " rpmsg"}, std::pair{o.trace_mu, " mu"},
                                       std::pair{o.trace_npu, " npu"}, std::pair{o.trace_sysfs, " sysfs"}})
        if (wanted) request += word;
    TRY(board::ask_board(record.control_socket(), request, [](std::string_view text) {
        fmt::print("{}", text);
        std::fflush(stdout);
    }));
    return host::kExitSuccess;
}

/// The stub is in the board's process; here its bytes only pass.
host::Result<int> gdb(const BoardCommandOptions& o) {
    TRY_ASSIGN(const auto record, running(o));
    const std::string request = fmt::format("gdb {}", o.processor);
    if (o.stdio) {
        TRY_ASSIGN(const int socket, board::open_request(record.control_socket(), request));
        board::relay(STDIN_FILENO, STDOUT_FILENO, socket);
        ::close(socket);
        return host::kExitSuccess;
    }
    TRY_ASSIGN(const auto listener, board::Forwarder::listen("127.0.0.1", {static_cast<std::uint16_t>(o.gdb_port), 0}));
    listener->serve([&] {
        const auto socket = board::open_request(record.control_socket(), request);
        return socket ? *socket : -ECONNREFUSED;
    });
    fmt::print(
        "The M33 waits for a debugger; Ctrl-C ends this.\n"
        "  gdb-multiarch build/firmware/executorch_runner_cm33.elf -ex 'target remote :{}'\n",
        listener->port().outside);
    std::fflush(stdout);
    while (board::look_up(record.name).alive) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return host::kExitSuccess;
}

host::Result<int> ssh_config(const BoardCommandOptions& o) {
    TRY_ASSIGN(const auto record, enterable(o));
    if (!record.ssh)
        return std::unexpected(host::Error(ErrorCode::NotFound,
                                           fmt::format("there is no sshd on the board '{}'", record.name),
                                           "apt-get install openssh-server, then bring the board up again, as root"));
    std::error_code error;
    fmt::print("{}", board::ssh_config(record, fs::read_symlink("/proc/self/exe", error).string()));
    return host::kExitSuccess;
}

std::string state_of(const BoardRecord& record) {
    if (record.alive) return record.up ? "up" : "coming up";
    return record.death.empty() ? "dead" : record.death;
}

host::Json status_of(const BoardRecord& record) {
    host::Json json{{"name", record.name}, {"state", state_of(record)}};
    if (!record.alive || !record.up) return json;
    json["pid"] = record.pid;
    json["root"] = record.root.string();
    json["ssh"] = record.ssh;
    if (record.ssh_port != 0) json["ssh_port"] = record.ssh_port;
    json["published"] = host::Json::array();
    for (const auto& port : record.published)
        json["published"].push_back({{"outside", port.outside}, {"inside", port.inside}});
    if (const auto text = board::ask_board(record.control_socket(), "status")) {
        const auto more = host::Json::parse(*text, nullptr, false);
        if (more.is_object()) json.update(more);
    }
    return json;
}

void print_status(const host::Json& board) {
    fmt::print("{}: {}", board["name"].get<std::string>(), board["state"].get<std::string>());
    if (!board.contains("pid")) {
        if (board["state"] == "coming up") {
            fmt::print("\n");
            return;
        }
        fmt::print(" (see talpa board logs; talpa board down --name {} cleans up)\n", board["name"].get<std::string>());
        return;
    }
    fmt::print(", pid {}", board["pid"].get<int>());
    if (const auto root = board["root"].get<std::string>(); !root.empty()) fmt::print(", below {}", root);
    if (board.contains("ssh_port")) fmt::print(", ssh at port {}", board["ssh_port"].get<int>());
    for (const auto& port : board["published"])
        fmt::print(", port {} is its {}", port["outside"].get<int>(), port["inside"].get<int>());
    fmt::print("\n");
    if (!board.contains("remoteprocs")) return;
    for (const auto& p : board["remoteprocs"]) {
        fmt::print("  {} ({}): {}, firmware {}", p["name"].get<std::string>(), p["processor"].get<std::string>(),
                   p["state"].get<std::string>(), p["firmware"].get<std::string>());
        for (const auto& channel : p["channels"]) fmt::print(", channel {}", channel["name"].get<std::string>());
        fmt::print("\n");
    }
    for (const auto& tty : board["ttys"])
        fmt::print("  {} -> {}\n", tty["device"].get<std::string>(), tty["slave"].get<std::string>());
}

host::Result<int> status(const BoardCommandOptions& o) {
    const bool one = !o.name.empty() || !o.root.empty();
    std::vector<BoardRecord> records;
    if (one) {
        TRY_ASSIGN(auto record, selected(o));
        records.push_back(std::move(record));
    } else {
        records = board::all_boards();
    }
    std::error_code error;
    // A folder without a record is one that is about to be claimed, or was left before there was anything in it.
    if (one && !records[0].alive && !fs::exists(records[0].record_file(), error))
        return std::unexpected(host::Error(ErrorCode::NotFound, fmt::format("there is no board '{}'", records[0].name),
                                           "talpa board status"));
    host::Json all = host::Json::array();
    for (const auto& record : records) all.push_back(status_of(record));
    if (o.json)
        fmt::print("{}\n", (one ? all[0] : all).dump(2));
    else if (all.empty())
        fmt::print("No board is up.\n");
    else
        for (const auto& board : all) print_status(board);
    return one && state_of(records[0]) != "up" ? host::kExitFailed : host::kExitSuccess;
}

host::Result<int> logs(const BoardCommandOptions& o) {
    TRY_ASSIGN(const auto record, selected(o));
    const int fd = ::open(record.log_file().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return std::unexpected(host::Error(ErrorCode::NotFound,
                                           fmt::format("there is no board '{}', so there is no log", record.name),
                                           "talpa board status"));
    ::close(fd);
    TRY_ASSIGN(std::string text, host::read_text(record.log_file()));
    std::size_t shown = text.size(), from = 0;
    if (o.lines > 0) {
        from = text.size();
        for (std::size_t n = 0; from > 0 && (n += text[from - 1] == '\n' && from != text.size()) < o.lines;) --from;
    }
    fmt::print("{}", text.substr(from));
    std::fflush(stdout);
    using namespace std::chrono_literals;
    while (o.follow && board::look_up(record.name).alive) {
        std::this_thread::sleep_for(200ms);
        const auto more = host::read_text(record.log_file());
        if (!more) break;
        if (more->size() < shown) shown = 0;  // it was begun anew
        fmt::print("{}", more->substr(shown));
        std::fflush(stdout);
        shown = more->size();
    }
    return host::kExitSuccess;
}

host::Result<int> down(const BoardCommandOptions& o) {
    std::vector<BoardRecord> records;
    if (o.all) {
        records = board::all_boards();
    } else {
        TRY_ASSIGN(auto record, selected(o));
        records.push_back(std::move(record));
    }
    for (const auto& record : records) {
        TRY_ASSIGN(const bool there_was, board::take_down(record));
        if (!there_was)
            fmt::print("The board '{}' was not up.\n", record.name);
        else if (record.alive)
            fmt::print("The board '{}' is down.\n", record.name);
        else
            fmt::print("The board '{}' was dead; what it left is removed.\n", record.name);
    }
    return host::kExitSuccess;
}

}  // namespace

host::Result<void> check(const BoardCommandOptions& o) {
    TRY(board::parse_kernel(o.kernel));
    TRY(board::parse_without(o.without));
    TRY_ASSIGN(const auto quirks, board::parse_quirks(o.quirks));
    for (const std::string& text : o.publish) TRY(board::parse_published(text));
    const auto usage = [](const char* message) { return host::failure(ErrorCode::InvalidArgument, "{}", message); };
    if (quirks.contains(board::Quirk::Attached) != !o.boot.empty())
        return usage("--quirk attached and --boot FILE.elf belong together: U-Boot starts that file");
    if (!o.root.empty() && (o.ssh_port >= 0 || !o.publish.empty()))
        return usage("--root makes a board without namespaces, which has no ports to --publish and no --ssh");
    if (!o.root.empty() && !o.share.empty())
        return usage("--root makes a board without namespaces: there all files are shared, and --share says nothing");
    for (const std::string& folder : o.share) {
        std::error_code error;
        const fs::path real = fs::canonical(folder, error);
        if (!error) TRY(board::check_shared(real));
    }
    in_addr ip{};
    if (::inet_pton(AF_INET, o.address.c_str(), &ip) != 1)
        return host::failure(ErrorCode::InvalidArgument, "--address: '{}' is no IPv4 address", o.address);
    return {};
}

host::Result<int> board_command(const std::string& subcommand, const BoardCommandOptions& options) {
    if (subcommand == "up") return up(options);
    if (subcommand == "exec") return exec(options, options.command);
    if (subcommand == "shell") return exec(options, {"bash", "-l"});
    if (subcommand == "gdb") return gdb(options);
    if (subcommand == "trace") return trace(options);
    if (subcommand == "connect") return connect(options);
    if (subcommand == "publish") return publish(options);
    if (subcommand == "ssh-config") return ssh_config(options);
    if (subcommand == "status") return status(options);
    if (subcommand == "logs") return logs(options);
    return down(options);
}

}  // namespace talpa::cli
