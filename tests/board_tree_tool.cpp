// For tests only: the virtual hardware with its Linux side as files under a folder, as a program. Prints the folder and
// then obeys standard input, a command a line, each answered by a line: start, stop, trace (brings trace0 up to date),
// quit (as the end of input). Arguments: --npu-hangs, --npu-unpowered.
#include <iostream>

#include "machine_tree.h"

int main(int argc, char** argv) {
    talpa::board::MachineOptions options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--npu-hangs") options.npu_hangs = true;
        if (argument == "--npu-unpowered") options.npu_powered = false;
    }
    talpa::testing::MachineTree tree(options);
    std::cout << tree.root().string() << std::endl;
    for (std::string command; std::getline(std::cin, command) && command != "quit";) {
        int error = 0;
        if (command == "start") error = tree.start();
        if (command == "stop") error = tree.stop();
        if (command == "trace") tree.show_trace();
        std::cout << error << std::endl;
    }
}
