// What follows the accumulators of a convolution, prepared per channel, with the proofs that 32 bits (and 64 after the
// multiplication) hold every value that can occur (ethos-u65, sections 5.1, 5.2, 5.8 and 5.10).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "npu_model/fast/microkernels.h"
#include "npu_model/kernels.h"

namespace talpa::npu_model::fast {

/// Over the weights of one output channel.
struct ChannelSums {
    std::int64_t sum = 0;
    std::int64_t magnitude = 0;  ///< of absolute values
};

/// How activations reach the multipliers: as stored, or stored + 128 to make signed bytes unsigned.
struct ActivationCode {
    std::int64_t added = 0;
};

struct Requantization {
    std::vector<ChannelBlock> blocks;
    Epilogue epilogue;  ///< without table
    bool raw = false;   ///< the kernels deliver accumulators, `finish_raw` does the rest
};

/// Nothing if a sum with its bias might not fit 32 bits, where the reference must count and wrap.
[[nodiscard]] std::optional<Requantization> plan_requantization(const Context& context,
                                                                std::span<const ChannelSums> sums, ActivationCode code);

/// Clamp range as the byte kernels do it, with the zero point in `offset`; nothing if the output is not made of bytes
/// or the clamp is not one of its type.
struct ByteRange {
    std::int32_t offset = 0;  ///< zero point - (unsigned ? 128 : 0)
    std::int8_t low = -128, high = 127;
    std::uint8_t flip = 0;
};
[[nodiscard]] std::optional<ByteRange> byte_range(const npu::Operation& op, std::int32_t zero_point);

/// One scale for all channels (one block), of values up to `largest`; the bias is zero. Nothing where 32 bits may not
/// do.
[[nodiscard]] std::optional<Requantization> uniform_requantization(const npu::Operation& op, npu::Scale scale,
                                                                   npu::Rounding rounding, const ByteRange& range,
                                                                   std::int64_t largest);

/// The table of the context in the order of the stored bytes' values, into `table` (256 bytes). The LUT register counts
/// from -128 for signed outputs.
void byte_table(const Context& context, std::uint8_t* table);

/// The rest for accumulators [pixel][channels rounded up to 16] that include the bias, of pixels (y, x0...) and
/// channels from c0.
class OutputFinisher {
  public:
    explicit OutputFinisher(const Context& context);
    ~OutputFinisher();
    OutputFinisher(const OutputFinisher&) = delete;
    OutputFinisher& operator=(const OutputFinisher&) = delete;
    void finish_raw(const std::int32_t* accumulators, std::uint32_t y, std::uint32_t pixels, std::uint32_t c0,
                    std::uint32_t vectors) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace talpa::npu_model::fast
