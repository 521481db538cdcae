// A stranger's command stream on the simulated device, with memory around it that must stay as it is. The first bytes
// pick the part, the ports of the regions and a register to write on the way.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "npu_model/device/bus_for_test.h"

namespace {

using namespace talpa;
using namespace talpa::npu::reg;
namespace status = talpa::npu::status;

[[noreturn]] void broken(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t kHeader = 8, kMemory = 1 << 16, kGuard = 256;
    if (size < kHeader || size > 32 * 1024) return 0;
    // One allocation a range would let the sanitizer find overruns; the guards find them where a range lies inside
    // another.
    std::vector<std::uint8_t> stream(data + kHeader, data + size), memory(kMemory + 2 * kGuard, 0xEE);
    for (std::size_t i = 0; i < kMemory; ++i) memory[kGuard + i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    stream.resize(stream.size() / 4 * 4);
    npu_model::testing::TestMemory map;
    const std::span<std::uint8_t> inside(memory.data() + kGuard, kMemory);
    map.map(0x80000000, inside, 1);
    map.map(0x20000000, inside.first(kMemory / 2), 0);
    map.map(0xC0000000, stream, 1);
    const std::vector<std::uint8_t> stream_before = stream;

    npu_model::DeviceOptions options;
    const npu::Hardware& hardware = npu::kHardware[data[0] % npu::kHardware.size()];
    options.config = hardware.config;
    options.id = hardware.id;
    options.work_limit = 1 << 22;
    int interrupts = 0;
    npu_model::RegisterDevice device(map, [&](bool level) { interrupts += level ? 1 : 0; }, options);
    const auto write = [&](std::uint32_t offset, std::uint32_t value) {
        if (!device.write_register(offset, value)) broken("a register is not there");
    };
    write(QCONFIG, 2);
    const std::uint32_t ports = load_le<std::uint16_t>(data + 2);
    write(REGIONCFG, ports);
    for (std::uint32_t r = 0; r < npu::kRegionCount; ++r)
        write(kBasep + 8 * r, ((ports >> (2 * r)) & 2) != 0 ? 0x80000000 : 0x20000000);
    write(PMCR, npu::pmu::kEnable);
    write(PMCNTENSET, npu::pmu::kCycleCounter | 0xF);
    write(QBASE0, 0xC0000000);
    write(QSIZE, static_cast<std::uint32_t>(stream.size()));
    write(CMD, npu::cmd::kRun);
    for (unsigned steps = data[1]; steps > 0 && device.step(); --steps) {
    }
    write((load_le<std::uint16_t>(data + 4) & 0xFFC), load_le<std::uint16_t>(data + 6));
    device.run_pending();
    for (std::uint32_t offset = 0; offset < npu::kRegisterSpaceBytes; offset += 4)
        if (!device.read_register(offset)) broken("a register cannot be read");

    if (stream != stream_before) broken("the stream was written");
    for (std::size_t i = 0; i < kGuard; ++i)
        if (memory[i] != 0xEE || memory[kGuard + kMemory + i] != 0xEE)
            broken("memory outside the mapped range was written");
    const std::uint32_t now = device.read_register(STATUS).value();
    if ((now & status::kRunning) != 0) broken("it still runs with nothing to do");
    if ((now & status::kErrors) != 0 && device.fault_text().empty()) broken("an error without a reason");
    return 0;
}
