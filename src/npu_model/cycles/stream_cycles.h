// The estimate for a stream that runs again and again: computed when its words change.
#pragma once

#include <cstdint>
#include <vector>

#include "npu/decoder.h"
#include "npu_model/cycles/system_config.h"

namespace talpa::npu_model {

class StreamCycles {
  public:
    explicit StreamCycles(SystemConfig config = default_system_config()) : config_(std::move(config)) {}

    /// Cycles of the whole stream; 0 if it cannot be decoded.
    [[nodiscard]] std::uint64_t of(npu::Words stream);

  private:
    SystemConfig config_;
    std::vector<std::uint32_t> words_;
    std::uint64_t cycles_ = 0;
};

}  // namespace talpa::npu_model
