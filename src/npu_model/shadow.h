// Which bytes hold data: one flag for each byte of the regions and of the shared RAM. Block operations may read only
// what was written; the DMA copies the flags along, since it also moves padding that nobody wrote.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "npu/device.h"
#include "npu/extent.h"
#include "npu_model/findings.h"

namespace talpa::npu_model {

struct InitialisedRange;

class Shadow {
  public:
    /// Region 0 holds data throughout, the others only in `initialised` (cut at the region's end).
    Shadow(const npu::Job& job, std::size_t shram_size, std::span<const InitialisedRange> initialised);

    /// The operation's accesses were checked to lie inside. Notes each operand that has unwritten bytes.
    void before(const npu::Operation& op, std::int64_t lut_base, Findings& findings) const;
    void after(const npu::Operation& op);

  private:
    using Flags = std::vector<std::uint8_t>;
    [[nodiscard]] Flags& flags(bool internal, std::uint8_t region) {
        return maps_[internal ? npu::kRegionCount : region];
    }
    [[nodiscard]] const Flags& flags(bool internal, std::uint8_t region) const {
        return maps_[internal ? npu::kRegionCount : region];
    }

    std::array<Flags, npu::kRegionCount + 1> maps_;  // the last is the shared RAM
};

}  // namespace talpa::npu_model
