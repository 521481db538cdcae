// talpa: the command line. On a board's own Linux (TALPA_BOARD_PART) without compiler and virtual board.
#include "cli/app.h"
#ifndef TALPA_BOARD_PART
#include "cli/workstation_commands.h"
#endif

int main(int argc, char** argv) {
#ifdef TALPA_BOARD_PART
    return talpa::cli::run_app(argc, argv, nullptr);
#else
    return talpa::cli::run_app(argc, argv, &talpa::cli::workstation_commands());
#endif
}
