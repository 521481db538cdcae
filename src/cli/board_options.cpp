// What `talpa board` understands, and its help.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "board/host/options.h"
#include "cli/board_command.h"

namespace talpa::cli {
namespace {

constexpr const char* kUpFooter = R"(Examples:
  talpa board up
  talpa board up --ssh 2222 --publish 3001
  talpa board up --root /tmp/imx93
  echo start > /tmp/imx93/sys/class/remoteproc/remoteproc0/state
  talpa board up --root /tmp/many --remoteproc 50 --startup-delay 0)";

constexpr const char* kExecFooter = R"(Examples:
  talpa board exec -- cat /sys/class/remoteproc/remoteproc0/name
  talpa board exec -- sh -c 'cp runner.elf /lib/firmware/ &&
      echo runner.elf > /sys/class/remoteproc/remoteproc0/firmware && echo start > /sys/class/remoteproc/remoteproc0/state'

The program sees this machine's files, with the board's own /sys, /dev, /run, /lib/firmware and /root/.ssh; the working
folder stays. What it writes into the system's folders and the home goes with the board; work folders in the home are
read-only unless they are shared (board up --share DIR). Exit status: the program's own; 127 when there is none of that name,
126 when it cannot be run, 1 when the board cannot be entered.)";

constexpr const char* kSshFooter = R"(Examples:
  talpa board ssh-config >> ~/.ssh/config
  talpa board ssh-config > board.ssh && ssh -F board.ssh board uname -n)";

constexpr const char* kPublishFooter = R"(Examples:
  talpa board publish 3001
  talpa board publish --name demo 8080:80

What is forwarded already stays as it is. `topo deploy --target board://NAME` does this for the ports of its project.)";

constexpr const char* kStatusFooter = R"(Examples:
  talpa board status
  talpa board status --name board --json

Exit status: 0, or 1 when the board that was asked for is not up.)";

constexpr const char* kLogsFooter = R"(Examples:
  talpa board logs --lines 20
  talpa board logs --follow)";

constexpr const char* kTraceFooter = R"(Examples:
  talpa board trace --rpmsg --mu
  talpa board trace

Without one of the sources: all of them. Times are seconds since the board was made, as in its kernel log.)";

constexpr const char* kGdbFooter = R"(Examples:
  talpa board gdb &
  gdb-multiarch build/firmware/executorch_runner_cm33.elf -ex 'target remote :3333' -ex 'info registers'
  gdb-multiarch build/firmware/executorch_runner_cm33.elf -ex 'target remote | talpa board gdb --stdio'

The core halts while a debugger is attached and runs on when it detaches. Linux sees nothing of it.)";

constexpr const char* kDownFooter = R"(Examples:
  talpa board down
  talpa board down --all

Works after kill -9 of the board's process, too: what it left is removed.)";

std::string words_of(std::span<const board::OptionWord> words, const char* title) {
    std::string out = fmt::format("\n{}:\n", title);
    for (const auto& word : words) out += fmt::format("  {:<18} {}\n", word.word, word.text);
    return out;
}

/// An empty name too is a wrong one, not none: in a script it is a variable that was not set.
std::string check_name(const std::string& name) {
    const auto good = board::check_board_name(name);
    return good ? std::string() : good.error().message;
}

/// As with names: an empty one is a variable that was not set.
std::string check_root(const std::string& folder) {
    return folder.empty() ? "a folder is wanted" : "";
}

void add_selection(CLI::App* command, BoardCommandOptions& o) {
    command->add_option("--name", o.name, "Which board (default: TALPA_BOARD, 'board', or the only one)")
        ->type_name("NAME")
        ->check(CLI::Validator(check_name, "", "board name"));
    command->add_option("--root", o.root, "The board that serves below this folder")
        ->type_name("DIR")
        ->check(CLI::Validator(check_root, "", "folder"));
}

void add_up(CLI::App& board, BoardCommandOptions& o) {
    CLI::App* up = board.add_subcommand("up", "Bring a board up, in the background");
    up->add_option("--name", o.name, "How other commands call it (default: TALPA_BOARD, 'board')")
        ->type_name("NAME")
        ->check(CLI::Validator(check_name, "", "board name"));
    up->add_option("--root", o.root, "Serve its files below this folder, as any user, without namespaces")
        ->type_name("DIR")
        ->check(CLI::Validator(check_root, "", "folder"));
    up->add_option("--remoteproc", o.remoteprocs, "How many remote processors (default: 1)")
        ->type_name("N")
        ->check(CLI::Range(1u, 1000u).description(""));
    up->add_option("--startup-delay", o.startup_delay_ms, "Milliseconds that Linux waits after a start (default: 500)")
        ->type_name("MS")
        ->check(CLI::Range(0u, 60000u).description(""));
    up->add_option("--npu-threads", o.npu_threads, "Threads of each NPU (default: 2)")
        ->type_name("N")
        ->check(CLI::Range(1u, 256u).description(""));
    up->add_option("--without", o.without, "What the board lacks; may be given again")
        ->type_name("NAME")
        ->allow_extra_args(false);
    up->add_option("--quirk", o.quirks, "How it misbehaves; may be given again")
        ->type_name("NAME")
        ->allow_extra_args(false);
    up->add_option("--kernel", o.kernel, "Which kernel's rules (default: bsp-6.6)")->type_name("PROFILE");
    up->add_option("--boot", o.boot, "What U-Boot starts on the M33 (with --quirk attached)")->type_name("FILE.elf");
    up->add_option("--ssh", o.ssh_port, "Forward this port of this machine to the board's sshd (0: any free one)")
        ->type_name("PORT")
        ->check(CLI::Range(0, 65535).description(""));
    up->add_option("--publish", o.publish, "Forward a port of this machine to one of the board; may be given again")
        ->type_name("PORT[:BOARDPORT]")
        ->allow_extra_args(false);
    up->add_option("--share", o.share, "A folder of this machine in which programs may write; may be given again")
        ->type_name("DIR")
        ->allow_extra_args(false);
    up->add_option("--address", o.address, "Where forwarded ports listen (default: 127.0.0.1)")->type_name("IP");
    up->add_flag("--foreground", o.foreground, "Stay until Ctrl-C or board down");
    up->footer(std::string(kUpFooter) + "\n" + words_of(board::without_words(), "--without") +
               words_of(board::quirk_words(), "--quirk") + words_of(board::kernel_words(), "--kernel"));
}

// Ways onto a board.
void add_entries(CLI::App& board, BoardCommandOptions& o) {
    CLI::App* exec = board.add_subcommand("exec", "Run a program on a board");
    add_selection(exec, o);
    exec->add_option("COMMAND", o.command, "Program and its arguments")->type_name("COMMAND")->required();
    exec->positionals_at_end();
    exec->footer(kExecFooter);

    CLI::App* shell = board.add_subcommand("shell", "A shell on a board");
    add_selection(shell, o);
    shell->footer("Example:\n  talpa board shell");

    CLI::App* ssh = board.add_subcommand("ssh-config", "Print a block for ~/.ssh/config that reaches a board");
    add_selection(ssh, o);
    ssh->footer(kSshFooter);

    CLI::App* connect = board.add_subcommand("connect", "Connect standard input and output to a port of a board");
    add_selection(connect, o);
    connect->add_option("PORT", o.port, "Port")->type_name("PORT")->required()->check(CLI::Range(1u, 65535u));
    connect->footer("Example:\n  ssh -o 'ProxyCommand talpa board connect 22' root@board");

    CLI::App* publish = board.add_subcommand("publish", "Forward ports of this machine to a board that is up");
    add_selection(publish, o);
    publish->add_option("PORT", o.publish, "PORT[:BOARDPORT]; 0:BOARDPORT takes any free one")
        ->type_name("PORT[:BOARDPORT]")
        ->required();
    publish->add_option("--address", o.address, "Where they listen (default: 127.0.0.1)")->type_name("IP");
    publish->footer(kPublishFooter);
}

// Looking at a board, and into it.
void add_views(CLI::App& board, BoardCommandOptions& o) {
    CLI::App* status = board.add_subcommand("status", "Show the boards and what runs on them");
    add_selection(status, o);
    status->add_flag("--json", o.json, "Print one JSON document");
    status->footer(kStatusFooter);

    CLI::App* logs = board.add_subcommand("logs", "Show a board's kernel log");
    add_selection(logs, o);
    logs->add_option("--lines", o.lines, "Only the last N lines")->type_name("N")->check(CLI::Range(1, 1 << 20));
    logs->add_flag("--follow", o.follow, "Go on as it grows, until the board ends");
    logs->footer(kLogsFooter);

    CLI::App* trace = board.add_subcommand("trace", "Show what passes between a board's parts, until Ctrl-C");
    add_selection(trace, o);
    trace->add_flag("--rpmsg", o.trace_rpmsg, "Messages between Linux and the M33");
    trace->add_flag("--mu", o.trace_mu, "Words through the Messaging Unit");
    trace->add_flag("--npu", o.trace_npu, "The NPU's registers and its interrupt");
    trace->add_flag("--sysfs", o.trace_sysfs, "Reads and writes below /sys");
    trace->footer(kTraceFooter);

    CLI::App* gdb = board.add_subcommand("gdb", "Let a debugger attach to a board's M33");
    add_selection(gdb, o);
    gdb->add_option("--port", o.gdb_port, "Port of this machine (default: 3333; 0: any free one)")
        ->type_name("PORT")
        ->check(CLI::Range(0u, 65535u).description(""));
    gdb->add_option("--processor", o.processor, "Which remote processor (default: 0)")->type_name("K");
    gdb->add_flag("--stdio", o.stdio, "Speak on standard input and output, for gdb's `target remote |`");
    gdb->footer(kGdbFooter);
}

}  // namespace

void add_board(CLI::App& app, BoardCommandOptions& o) {
    CLI::App* board =
        app.add_subcommand("board", "A virtual i.MX 93: up, exec, shell, status, logs, publish, ssh-config, down");
    board->require_subcommand(1);
    board->footer("Help on one of them: talpa board SUBCOMMAND --help");

    // In the order in which help lists them.
    add_up(*board, o);
    add_entries(*board, o);
    add_views(*board, o);

    CLI::App* down = board->add_subcommand("down", "End a board and remove everything of it");
    add_selection(down, o);
    down->add_flag("--all", o.all, "All boards of this user");
    down->footer(kDownFooter);
}

}  // namespace talpa::cli
