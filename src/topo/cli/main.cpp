// topo: deploys Topo Projects to a board over SSH.
#include "topo/cli/app.h"

int main(int argc, char** argv) {
    return talpa::topo::run_topo(argc, argv);
}
