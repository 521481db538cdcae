// The Ethos-U65 of the i.MX 93 as the driver's RegisterBus: its registers, its interrupt, and the wait during which the
// rest of the firmware goes on. (imx93-remoteproc, sections 1.5 and 6)
#pragma once

#include <cstdint>

#include "npu/driver.h"

namespace talpa::firmware {

class NpuPort final : public npu::RegisterBus {
  public:
    /// Called again and again while the NPU works; false: give up now.
    using Meanwhile = bool (*)(void* context);
    NpuPort(Meanwhile meanwhile, void* context) : meanwhile_(meanwhile), context_(context) {}

    [[nodiscard]] std::uint32_t read32(std::uint32_t offset) override;
    void write32(std::uint32_t offset, std::uint32_t value) override;
    [[nodiscard]] bool wait_for_interrupt(std::uint32_t timeout_ms) override;
    void barrier() override;
    [[nodiscard]] std::uint64_t npu_address(const void* pointer) override;
    void fault(const Error& error) override;

  private:
    Meanwhile meanwhile_;
    void* context_;
};

/// Options for this chip: non-secure, unprivileged accesses, which the board's firewall lets pass, and every region in
/// DRAM (with TALPA_OCRAM region 2 in on-chip SRAM).
[[nodiscard]] npu::DriverOptions npu_options();

}  // namespace talpa::firmware
