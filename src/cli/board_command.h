// talpa board: the virtual i.MX 93 from the command line.
#pragma once

#include <string>
#include <vector>

#include "base/host/error.h"

namespace CLI {
class App;
}

namespace talpa::cli {

struct BoardCommandOptions {
    std::string name, root, kernel = "bsp-6.6", boot, address = "127.0.0.1";
    std::vector<std::string> without, quirks, command;
    unsigned remoteprocs = 1, startup_delay_ms = 500, npu_threads = 2;
    std::vector<std::string> publish, share;
    int ssh_port = -1;
    unsigned port = 0, gdb_port = 3333, processor = 0;
    std::size_t lines = 0;
    bool trace_rpmsg = false, trace_mu = false, trace_npu = false, trace_sysfs = false;
    bool foreground = false, stdio = false, json = false, follow = false, all = false;
};

void add_board(CLI::App& app, BoardCommandOptions& options);
/// Runs a subcommand of `board`; the exit status.
[[nodiscard]] host::Result<int> board_command(const std::string& subcommand, const BoardCommandOptions& options);
/// Errors of usage: status 2.
[[nodiscard]] host::Result<void> check(const BoardCommandOptions& options);

}  // namespace talpa::cli
