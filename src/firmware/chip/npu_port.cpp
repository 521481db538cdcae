#include "firmware/chip/npu_port.h"

#include "firmware/chip/clock.h"
#include "firmware/chip/registers.h"
#include "firmware/chip/trace.h"
#include "firmware/runner.h"
#include "link/memory_map.h"

namespace talpa::firmware {
namespace {
constinit volatile bool interrupted = false;
constexpr unsigned kPriority = 3;
}  // namespace

std::uint32_t NpuPort::read32(std::uint32_t offset) {
    return reg32(link::kNpuRegisters.base + offset);
}
void NpuPort::write32(std::uint32_t offset, std::uint32_t value) {
    reg32(link::kNpuRegisters.base + offset) = value;
}
void NpuPort::barrier() {
    dsb();
}

bool NpuPort::wait_for_interrupt(std::uint32_t timeout_ms) {
    const std::uint32_t start = clock_ms();
    interrupted = false;
    enable_irq(link::kNpuIrq, kPriority);
    bool came = false;
    for (;;) {
        came = interrupted;
        gave_up_ = came ? nullptr : meanwhile_(context_);
        if (came || gave_up_ != nullptr || clock_ms() - start >= timeout_ms) break;
        wfe();  // the NPU's interrupt, a message or the next tick
    }
    disable_irq(link::kNpuIrq);
    return came;
}

std::uint64_t NpuPort::npu_address(const void* pointer) {
    // The M33's secure alias of the upper DDR window is not an address on the system bus.
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return address >= 0xD0000000 && address < 0xE0000000 ? address - 0x10000000 : address;
}

unsigned NpuPort::region_config(unsigned, std::uint64_t address, unsigned usual) {
    constexpr unsigned kPort0 = 1;
    return kFastScratchInOcram && link::kOcram.contains(address, 1) ? kPort0 : usual;
}

void NpuPort::fault(const Error& error) {
    std::array<char, 160> buffer{};
    trace(error.render(buffer));
}

npu::DriverOptions npu_options() {
    npu::DriverOptions options;
    options.privileged = false;
    options.secure = false;
    options.region_config = {3, 2, 2, 3, 3, 3, 3, 3};
    options.timeout_ms = UINT32_MAX;
    return options;
}

}  // namespace talpa::firmware

// The line stays up until the driver has looked at the status and cleared it: masked until the next wait.
extern "C" void npu_irq() {
    talpa::firmware::disable_irq(talpa::link::kNpuIrq);
    talpa::firmware::interrupted = true;
}
