// A whole RUN on the virtual machine: from the line written to the tty to the OK that comes back, and how much of it
// the NPU model took. run_bench FIRMWARE.elf PROGRAM.pte INPUT.bin EXPECTED.bin [RUNS]
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/host/file.h"
#include "board/linux/remoteproc.h"
#include "board/linux/rpmsg_tty.h"
#include "board/machine/machine.h"
#include "link/memory_map.h"

using namespace talpa;
using namespace talpa::board;
using Clock = std::chrono::steady_clock;

namespace {

double milliseconds(std::chrono::nanoseconds t) {
    return std::chrono::duration<double, std::milli>(t).count();
}

/// Lowest, median and 90th percentile.
std::string summary(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return fmt::format("min {:6.2f}  median {:6.2f}  p90 {:6.2f} ms", v.front(), v[v.size() / 2], v[v.size() * 9 / 10]);
}

/// Says RUN and reads to the end of the answer; the TIME line of it.
std::string run(int tty) {
    std::string text;
    if (::write(tty, "RUN\n", 4) != 4) return text;
    while (text.find("OK RUN") == std::string::npos && text.find("ERR") == std::string::npos) {
        char buffer[512];
        const ssize_t n = ::read(tty, buffer, sizeof buffer);
        if (n <= 0) break;
        text.append(buffer, static_cast<std::size_t>(n));
    }
    if (text.find("OK RUN") == std::string::npos) {
        fmt::print(stderr, "run_bench: {}\n", text);
        std::exit(1);
    }
    const std::size_t at = text.find("TIME ");
    return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        fmt::print(stderr, "run_bench FIRMWARE.elf PROGRAM.pte INPUT.bin EXPECTED.bin [RUNS]\n");
        return 2;
    }
    const auto elf = host::read_file(argv[1]).value(), program = host::read_file(argv[2]).value();
    const auto input = host::read_file(argv[3]).value(), expected = host::read_file(argv[4]).value();
    const int runs = argc > 5 ? std::atoi(argv[5]) : 40;

    KernelLog log;
    TtyRegistry ttys;
    auto machine = Machine::create({}, log).value();
    RemoteprocConfig config;
    config.startup_delay_ms = 0;
    Remoteproc remoteproc(
        config, machine->memory(), *machine, machine->mailbox(),
        [&](const std::string&) { return FirmwareFile{elf, 0}; }, log,
        [&](VirtioRpmsg& bus, const VirtioRpmsg::Channel& channel) -> std::unique_ptr<RpmsgChannelDriver> {
            if (!tty_serves(TtyFlavour::Mainline, channel.name)) return nullptr;
            return RpmsgTty::create(bus, channel, {}, ttys).value();
        });
    machine->on_mailbox([&] { remoteproc.mailbox_received(); });
    std::memcpy(machine->memory().at(link::kProgram.base, program.size()), program.data(), program.size());
    std::memcpy(machine->memory().at(link::kInputTensor.base, input.size()), input.data(), input.size());
    if (remoteproc.write_state("start") != 0) return 1;
    for (int i = 0; i < 3000 && ttys.ttys().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (ttys.ttys().empty()) return 1;
    const int tty = ::open(ttys.ttys()[0].second.c_str(), O_RDWR | O_NOCTTY);

    std::vector<double> whole, npu, beyond;
    std::string time = run(tty);  // the NPU model decodes the weights at its first
    std::uint64_t instructions = machine->instructions();
    for (int i = 0; i < runs; ++i) {
        const auto npu_before = machine->npu_time();
        const auto before = Clock::now();
        time = run(tty);
        whole.push_back(milliseconds(Clock::now() - before));
        // The firmware polls too, and may see the job's end a moment before the interrupt that the time runs to.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        npu.push_back(milliseconds(machine->npu_time() - npu_before));
        beyond.push_back(whole.back() - npu.back());
    }
    instructions = machine->instructions() - instructions;
    const bool right = std::memcmp(machine->memory().at(link::kOutputCopies.base, expected.size()), expected.data(),
                                   expected.size()) == 0;
    fmt::print("{} runs, outputs {}\n", runs, right ? "as recorded" : "DIFFER");
    fmt::print("whole RUN         {}\nNPU model         {}\nbeyond the model  {}\n", summary(whole), summary(npu),
               summary(beyond));
    std::sort(whole.begin(), whole.end());
    std::sort(beyond.begin(), beyond.end());
    fmt::print("figure: RUN on the virtual board, median of the whole | {:.1f} ms | - | -\n", whole[whole.size() / 2]);
    fmt::print("figure: RUN beyond the NPU model, median (goal: 60 ms) | {:.1f} ms | - | -\n",
               beyond[beyond.size() / 2]);
    fmt::print("M33 instructions a run: {:.2f} million\n{}\n", static_cast<double>(instructions) / runs / 1e6, time);
    ::close(tty);
    return right ? 0 : 1;
}
