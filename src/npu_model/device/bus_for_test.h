// For tests: memory, and the bare-metal driver's bus over the simulated device.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "npu/driver.h"
#include "npu_model/device/device.h"

namespace talpa::npu_model::testing {

/// Host memory at physical addresses of our choice, each range on one AXI port.
class TestMemory final : public PhysicalMemory {
  public:
    void map(std::uint64_t address, std::span<std::uint8_t> bytes, unsigned port) { ranges_[address] = {bytes, port}; }
    [[nodiscard]] std::span<std::uint8_t> at(std::uint64_t address, unsigned port) override {
        auto it = ranges_.upper_bound(address);
        if (it == ranges_.begin()) return {};
        --it;
        const std::uint64_t inside = address - it->first;
        if (it->second.port != port || inside >= it->second.bytes.size()) return {};
        return it->second.bytes.subspan(inside);
    }
    /// The physical address of a host pointer; 0 if it is not mapped.
    [[nodiscard]] std::uint64_t address_of(const void* pointer) const {
        const auto* p = static_cast<const std::uint8_t*>(pointer);
        for (const auto& [address, range] : ranges_)
            if (p >= range.bytes.data() && p < range.bytes.data() + range.bytes.size())
                return address + static_cast<std::uint64_t>(p - range.bytes.data());
        return 0;
    }

  private:
    struct Range {
        std::span<std::uint8_t> bytes;
        unsigned port = 0;
    };
    std::map<std::uint64_t, Range> ranges_;
};

/// The driver's side. The device works when the driver waits, as if no time passed before.
class TestBus final : public npu::RegisterBus {
  public:
    TestBus(RegisterDevice& device, TestMemory& memory) : device_(device), memory_(memory) {}

    std::uint32_t read32(std::uint32_t offset) override {
        log.push_back("r" + std::to_string(offset));
        return device_.read_register(offset).value_or(0);
    }
    void write32(std::uint32_t offset, std::uint32_t value) override {
        log.push_back("w" + std::to_string(offset));
        static_cast<void>(device_.write_register(offset, value, master));
    }
    bool wait_for_interrupt(std::uint32_t) override {
        log.push_back("wait");
        if (on_wait) return on_wait();
        if (!hangs) device_.run_pending();
        return device_.interrupt_line();
    }
    Result<void> power_on() override {
        log.push_back("on");
        if (power_fails) return fail(ErrorCode::AccessFailed, "no power for {}", "MLMIX");
        device_.set_powered(!unclocked);
        return {};
    }
    void power_off() override {
        log.push_back("off");
        if (!always_on) device_.set_powered(false);
    }
    void clean_cache(Bytes memory) override { cleaned += memory.size(); }
    void invalidate_cache(Bytes memory) override { invalidated += memory.size(); }
    void barrier() override { log.push_back("barrier"); }
    std::uint64_t npu_address(const void* pointer) override { return memory_.address_of(pointer); }
    void fault(const Error& error) override { faults.push_back(host::Error(error).message); }

    BusMaster master;
    bool hangs = false, unclocked = false, power_fails = false, always_on = false;
    std::function<bool()> on_wait;
    std::vector<std::string> log, faults;
    std::size_t cleaned = 0, invalidated = 0;

  private:
    RegisterDevice& device_;
    TestMemory& memory_;
};

}  // namespace talpa::npu_model::testing
