// The weight streams of the Ethos-U: decompression (ethos-u65, sections 7.1 and 7.2) and the order in which a filter
// bank lies in them (7.3). Written apart from the compiler's encoder on purpose, so that the two can catch each other.
#pragma once

#include <cstdint>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/core/error.h"

namespace talpa::npu_model {

/// Decodes a whole stream of one core. `expected` is the number of weights that the operation needs (symbol_count
/// below). Errors (WeightStream, with the bit offset where it was noticed): a reserved ZDIV or WDIV, a first slice
/// without palette, a palette of one entry, fields beyond the end, more or fewer weights than `expected`. Never holds
/// more than `expected` weights, and refuses counts that no stream of this length can reach before it allocates.
[[nodiscard]] Result<std::vector<std::int16_t>> decode_symbols(Bytes stream, std::uint64_t expected);

/// What decides the order of weights in the stream of one core.
struct WeightOrder {
    std::uint32_t ofm_depth = 1;                        ///< channels of the whole operation, all cores
    std::uint32_t kernel_height = 1, kernel_width = 1;  ///< undilated
    std::uint32_t ifm_depth = 1;                        ///< ignored for depthwise
    std::uint32_t block_depth = 1;                      ///< OFM block depth of the whole operation
    std::uint8_t dilation_y = 1, dilation_x = 1;
    bool depthwise = false;
    bool part_kernel_first = false;  ///< ignored for depthwise
    bool ifm_16bit = false;
    bool decompose_4x4 = false;     ///< sub-kernels of at most 4x4 instead of 8x8
    std::uint8_t ublock_depth = 8;  ///< of the OFM; 4 on the U55-32
    std::uint8_t cores = 1;

    friend bool operator==(const WeightOrder&, const WeightOrder&) = default;
    /// Input channels of the dense bank: 1 for depthwise.
    [[nodiscard]] std::uint32_t bank_ifm_depth() const { return depthwise ? 1 : ifm_depth; }
    [[nodiscard]] std::uint64_t bank_size() const {
        return std::uint64_t{ofm_depth} * kernel_height * kernel_width * bank_ifm_depth();
    }
};

/// Symbols in the stream of core `core`, padding zeros included. Cheap: does not walk the weights.
[[nodiscard]] std::uint64_t symbol_count(const WeightOrder& order, unsigned core);

/// Puts the symbols of one core into the dense bank [ofm_depth][kernel_height][kernel_width][bank_ifm_depth]. The
/// channels of other cores are left alone. `symbols.size()` is symbol_count and `bank.size()` is bank_size. Returns
/// false when a padding position holds something other than zero: no compiler does that.
[[nodiscard]] bool place_weights(const WeightOrder& order, unsigned core, std::span<const std::int16_t> symbols,
                                 std::span<std::int16_t> bank);

}  // namespace talpa::npu_model
