// Compresses a sequence of weights into the NPU's stream: palettes, zero runs, Golomb codes whose parameter changes
// where that saves bits. The result is the smallest that the choices searched here give, and deterministic. (ethos-u65,
// sections 7.1, 7.2 and 7.6)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace talpa::compiler {

/// Weights are -255..255. Not empty. The stream is padded to 16 bytes with end markers.
[[nodiscard]] std::vector<std::uint8_t> encode_weights(std::span<const std::int16_t> symbols);

/// One record of scale and bias (section 6.1).
struct ScaleRecord {
    std::int64_t bias = 0;  ///< 40 bits
    std::uint32_t multiplier = 0;
    std::uint8_t shift = 0;  ///< 0..63
    friend bool operator==(const ScaleRecord&, const ScaleRecord&) = default;
};
inline constexpr std::size_t kScaleRecordBytes = 10;
/// The records of core `core`, padded with zeros to 16 bytes.
[[nodiscard]] std::vector<std::uint8_t> encode_records(std::span<const ScaleRecord> records, unsigned core = 0,
                                                       unsigned cores = 1);

}  // namespace talpa::compiler
