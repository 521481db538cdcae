// The Ethos-U65 of the i.MX 93 as the driver's RegisterBus: its registers, its interrupt, and the wait during which the
// rest of the firmware goes on. (imx93-remoteproc, sections 1.5 and 6)
#pragma once

#include <cstdint>

#include "npu/driver.h"

namespace talpa::firmware {

class NpuPort final : public npu::RegisterBus {
  public:
    /// Called again and again while the NPU works; why to give up now, or null to go on.
    using Meanwhile = const char* (*)(void* context);
    NpuPort(Meanwhile meanwhile, void* context) : meanwhile_(meanwhile), context_(context) {}

    [[nodiscard]] std::uint32_t read32(std::uint32_t offset) override;
    void write32(std::uint32_t offset, std::uint32_t value) override;
    [[nodiscard]] bool wait_for_interrupt(std::uint32_t timeout_ms) override;
    [[nodiscard]] const char* gave_up() override { return gave_up_; }
    /// With TALPA_OCRAM fast scratch lies in on-chip RAM (port 0) when it fits there, and in DRAM (port 1) when not.
    [[nodiscard]] unsigned region_config(unsigned region, std::uint64_t address, unsigned usual) override;
    void barrier() override;
    [[nodiscard]] std::uint64_t npu_address(const void* pointer) override;
    void fault(const Error& error) override;

  private:
    Meanwhile meanwhile_;
    const char* gave_up_ = nullptr;
    void* context_;
};

/// Options for this chip: non-secure, unprivileged accesses, which the board's firewall lets pass; every region in
/// DRAM; the time limit is the caller's.
[[nodiscard]] npu::DriverOptions npu_options();

}  // namespace talpa::firmware
