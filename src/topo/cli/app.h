// topo: the command line.
#pragma once

namespace talpa::topo {

/// The exit status (base/host/exit_status.h).
int run_topo(int argc, const char* const* argv);

}  // namespace talpa::topo
