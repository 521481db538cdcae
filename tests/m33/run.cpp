// m33_run: runs a bare-metal test program (guest/) on the simulator; its semihosting output is ours.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "guest_board.h"

int main(int argc, char** argv) {
    talpa::board::cpu::Options options;
    std::string elf;
    std::string arguments;
    bool speed = false;
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--interpret") == 0)
            options.translate = false;
        else if (std::strcmp(argv[i], "--speed") == 0)
            speed = true;
        else if (elf.empty())
            elf = argv[i];
        else
            arguments = argv[i];
    }
    if (elf.empty()) {
        std::fprintf(stderr, "usage: m33_run [--interpret] [--speed] PROGRAM.elf [ARGUMENT]\n");
        return 2;
    }
    const auto outcome = talpa::m33_test::run_guest(elf, "program " + arguments, options);
    if (!outcome) {
        std::fprintf(stderr, "m33_run: %s\n", outcome.error().describe().c_str());
        return 1;
    }
    std::fputs(outcome->output.c_str(), stdout);
    if (speed)
        std::printf("%llu instructions in %.3f s: %.0f million a second\n",
                    static_cast<unsigned long long>(outcome->instructions), outcome->seconds,
                    static_cast<double>(outcome->instructions) / outcome->seconds / 1e6);
    if (outcome->status < 0) std::fprintf(stderr, "m33_run: stopped: %s\n", outcome->end.c_str());
    return outcome->status < 0 ? 1 : outcome->status;
}
