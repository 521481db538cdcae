// The output unit (ethos-u65, section 5.8): zero point, tanh or sigmoid, clamp, LUT, store.
#pragma once

#include <cstdint>

#include "npu_model/kernels.h"

namespace talpa::npu_model {

enum class OutputZeroPoint : std::uint8_t {
    Added,
    Ignored,  ///< max pooling, MIN and MAX pass raw values through (sections 5.4, 5.7)
};

class OutputStage {
  public:
    explicit OutputStage(const Context& context, OutputZeroPoint zero_point = OutputZeroPoint::Added);

    /// From a scaled value to what is stored.
    [[nodiscard]] std::int64_t finish(std::int64_t v) const;
    void store(std::uint32_t y, std::uint32_t x, std::uint32_t c, std::int64_t v) const;

  private:
    const npu::Operation& op_;
    std::uint8_t* memory_;
    std::span<const std::uint8_t> lut_;
    Findings& findings_;
    std::int64_t zero_point_, low_, high_;
};

/// Internal 16-bit functions (section 5.9): x in units of 1/(3*4096), result Q0.15.
[[nodiscard]] std::int32_t sigmoid_q15(std::int64_t x);
[[nodiscard]] std::int32_t tanh_q15(std::int64_t x);

/// The table look-up of section 6.2. `t` is the clamped value. An index beyond the table wraps; `in_range` then turns
/// false.
[[nodiscard]] std::int64_t look_up(const npu::Operation& op, std::span<const std::uint8_t> table, std::int64_t t,
                                   bool& in_range);

}  // namespace talpa::npu_model
