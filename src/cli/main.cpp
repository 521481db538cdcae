// talpa: the command line.
#include "cli/app.h"

int main(int argc, char** argv) {
    return talpa::cli::run_app(argc, argv);
}
