// Weights in the order in which the inner loops eat them. Kept beside the filter, so that packing happens once per
// content.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "npu_model/fast/requantization.h"
#include "npu_model/filter.h"

namespace talpa::npu_model::fast {

/// How a convolution walks its window: one entry per word of activations, in segments that lie together in memory.
struct WordOrder {
    std::uint32_t elements = 4;     ///< activations in a word
    bool bricks = false;            ///< 16 channels, then the next column
    bool columns_together = false;  ///< NHWC, dense, undilated: a kernel row is one segment
    friend bool operator==(const WordOrder&, const WordOrder&) = default;
};

/// One run of words; where it starts is for the planner to say.
struct WordSegment {
    std::uint32_t ky = 0, kx = 0, c = 0;  ///< first element
    std::uint32_t elements = 0;           ///< from there on, over channels (and columns where they are together)
};

[[nodiscard]] std::vector<WordSegment> word_segments(const WeightOrder& shape, const WordOrder& order);

struct PackedForm {
    WordOrder order;
    std::vector<std::uint8_t> weights;  ///< per group of vectors: [word][vectors][16 channels][4 bytes]
    std::vector<std::uint32_t> groups;  ///< vectors of each group
    std::vector<std::size_t> offsets;   ///< of each group in `weights`
};

struct PackedWeights {
    std::vector<ChannelSums> sums;  ///< per output channel
    bool fits_bytes = true;         ///< all weights in -128..127
    std::vector<std::unique_ptr<PackedForm>> forms;
};

/// The filter's packed weights with their sums, made now if they are not there.
[[nodiscard]] PackedWeights& packed_weights(const Filter& filter);
/// The form of this order, made now if it is not there.
[[nodiscard]] const PackedForm& packed_form(const Filter& filter, const WordOrder& order);

/// Depthwise: [16 channels block][ky][group of taps in x][16 channels][4 bytes]; `elements` taps (4 or 2) in a word.
[[nodiscard]] const PackedForm& packed_depthwise(const Filter& filter, std::uint32_t elements);

}  // namespace talpa::npu_model::fast
