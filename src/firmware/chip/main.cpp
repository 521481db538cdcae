// The firmware: wiring of chip, link, NPU driver and runner.
#include <cstdint>
#include <new>

#include "firmware/chip/clock.h"
#include "firmware/chip/messaging_unit.h"
#include "firmware/chip/npu_port.h"
#include "firmware/chip/registers.h"
#include "firmware/chip/trace.h"
#include "firmware/runner.h"
#include "link/memory_map.h"
#include "link/resource_table.h"
#include "link/rpmsg.h"
#include "runtime/operators/quantize.h"

namespace talpa::firmware {
namespace {

[[gnu::section(".resource_table"), gnu::used]] constinit const link::FirmwareResourceTable kResourceTable =
    link::firmware_resource_table();

#ifdef TALPA_VENDOR_TTY
/// The vendor's driver names its node by the address; mainline's has no channel to serve.
constexpr link::Channel kChannels[] = {{"rpmsg-virtual-tty-channel-1", 0}};
#else
/// With mainline's driver the first makes /dev/ttyRPMSG0, with the vendor's the second /dev/ttyRPMSG30.
constexpr link::Channel kChannels[] = {{"rpmsg-tty", 0x400}, {"rpmsg-virtual-tty-channel-1", 0x1E}};
#endif

/// Linux put its copy of the table here before it released the core; only without Linux (U-Boot) it is ours to write.
volatile link::FirmwareResourceTable* live_table() {
    auto* const words = reinterpret_cast<volatile std::uint32_t*>(std::uintptr_t{link::kLiveResourceTable.base});
    if (words[0] != 1 || words[1] != kResourceTable.header.count || words[2] != 0 || words[3] != 0) {
        const auto* const from = reinterpret_cast<const std::uint32_t*>(&kResourceTable);
        for (std::size_t i = 0; i < sizeof kResourceTable / 4; ++i) words[i] = from[i];
    }
    return reinterpret_cast<volatile link::FirmwareResourceTable*>(std::uintptr_t{link::kLiveResourceTable.base});
}

std::uint8_t* pointer(std::uint64_t address) {
    return reinterpret_cast<std::uint8_t*>(static_cast<std::uintptr_t>(address));
}

class Chip final : public RunnerPlatform, public link::RpmsgPlatform {
  public:
    Chip()
        : device_(live_table(), kChannels, *this),
          port_([](void* self) { return static_cast<Chip*>(self)->meanwhile(); }, this),
          driver_(port_, npu_options()),
          runner_(*this, runtime::operators::kQuantizeOperators, TALPA_VERSION) {}

    [[noreturn]] void run() {
        runner_.start();
        trace("talpa runner " TALPA_VERSION " waits for Linux");
        __asm volatile("cpsie i" ::: "memory");
        std::uint32_t last_look = clock_ms();
        for (;;) {
            // A kick can be lost on the way (Linux gives up after 100 ms), so the rings are looked at without one, too.
            const bool kicked = messaging_unit_kicked();
            if (kicked || clock_ms() - last_look >= kLookEveryMs || !runner_.idle()) {
                last_look = clock_ms();
                runner_.poll();
                tell_link();
            } else {
                wfe();
            }
        }
    }

    // RunnerPlatform
    std::uint8_t* memory(std::uint32_t address, std::uint32_t size) override {
        const bool ddr = link::kModelRegion.contains(address, size) || link::kEthosuRegion.contains(address, size);
        const bool ocram = kFastScratchInOcram && link::kOcram.contains(address, size);
        return ddr || ocram ? pointer(address) : nullptr;
    }
    Result<npu::Device*> npu() override {
        const auto ready = driver_.initialise();
        npu_state_ = ready ? "ok" : "absent";
        if (!ready) return std::unexpected(ready.error());
        return &driver_;
    }
    std::string_view npu_state() const override { return npu_state_; }
    std::uint32_t now_ms() const override { return clock_ms(); }
    std::uint32_t cycles() const override { return clock_cycles(); }
    std::uint32_t cycles_per_us() const override { return kCoreHz / 1'000'000; }
    bool send(Peer to, std::string_view text) override {
        return device_.send(to.endpoint, to.address, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    }
    bool link_up() const override { return device_.ready(); }
    void service_link() override { device_.service(); }
    void trace(std::string_view line) override { firmware::trace(line); }
    void trace_restart() override { trace_clear(); }

    // RpmsgPlatform
    std::uint8_t* memory(std::uint64_t address, std::size_t size) override {
        // Where boards put rings and buffers: between the vrings and the end of the buffer pool.
        constexpr link::MemoryRange kRings{"rings", link::kVring0.base, link::kVringBuffers.end() - link::kVring0.base};
        return kRings.contains(address, size) ? pointer(address) : nullptr;
    }
    void notify(std::uint32_t notify_id) override { messaging_unit_notify(notify_id); }
    std::size_t received(const link::Channel& channel, std::uint32_t source, Bytes payload) override {
        return runner_.received({channel.address, source},
                                {reinterpret_cast<const char*>(payload.data()), payload.size()});
    }
    void link_is_new() override { runner_.link_is_new(); }

  private:
    static constexpr std::uint32_t kLookEveryMs = 10;

    const char* meanwhile() {
        runner_.service();
        switch (runner_.must_stop()) {
            case Runner::Stop::Aborted:
                return "ABORT came";
            case Runner::Stop::TimedOut:
                return "the time of the run is over";
            case Runner::Stop::No:
                break;
        }
        return nullptr;
    }
    void tell_link() {
        if (device_.ready() == was_up_) return;
        was_up_ = device_.ready();
        firmware::trace(was_up_ ? "link up: channels announced" : "link down");
    }

    link::RpmsgDevice device_;
    NpuPort port_;
    npu::Driver driver_;
    Runner runner_;
    std::string_view npu_state_ = "untried";
    bool was_up_ = false;
};

// Made in place by main: a static object with a constructor would be called by nobody.
alignas(Chip) constinit std::uint8_t chip_memory[sizeof(Chip)] = {};

}  // namespace
}  // namespace talpa::firmware

int main() {
    using namespace talpa::firmware;
    trace_clear();
    clock_start();
    auto* const chip = new (chip_memory) Chip();
    messaging_unit_start();
    chip->run();
}
