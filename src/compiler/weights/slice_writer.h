// Bits of a weight stream: the header of a slice and its chunks, in the order in which the hardware's decoder asks for
// them. (ethos-u65, sections 7.1 and 7.2)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace talpa::compiler {

class StreamBits {
  public:
    /// At most 32 bits, least significant first.
    void put(std::uint32_t value, unsigned count) {
        pending_ |= std::uint64_t{value} << held_;
        held_ += count;
        while (held_ >= 8) {
            bytes_.push_back(static_cast<std::uint8_t>(pending_));
            pending_ >>= 8;
            held_ -= 8;
        }
    }
    void pad_with_ones(std::size_t multiple_bytes) {
        if (held_ != 0) put((1u << (8 - held_)) - 1, 8 - held_);
        while (bytes_.size() % multiple_bytes != 0) bytes_.push_back(0xFF);
    }
    [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(bytes_); }

  private:
    std::vector<std::uint8_t> bytes_;
    std::uint64_t pending_ = 0;
    unsigned held_ = 0;
};

/// How the weight symbols of a slice are coded.
struct WeightCode {
    bool uncompressed = false;
    std::uint8_t divisor = 0;  ///< Golomb divisor 0..5, or the fixed number of bits
    bool truncated = false;
    friend bool operator==(const WeightCode&, const WeightCode&) = default;
};

struct Palette {
    std::vector<std::uint16_t> entries;  ///< value codes; none, or 2 to 32
    std::uint8_t direct_offset = 0;
    std::uint8_t bits = 2;  ///< of an entry, or of an uncompressed symbol without palette
};

/// Value code of a weight: magnitude above the sign.
[[nodiscard]] inline std::uint16_t value_code(int weight) {
    return static_cast<std::uint16_t>(weight < 0 ? -2 * weight + 1 : 2 * weight);
}

/// Writes one slice. `weights`: indices, 1 to 32768 of them. `runs`: zero runs, empty if `zero_divisor` is not given;
/// one more than weights in the slice that brings the palette.
void write_slice(StreamBits& bits, std::span<const std::uint16_t> weights, std::span<const std::uint32_t> runs,
                 const WeightCode& code, std::optional<std::uint8_t> zero_divisor, const Palette* new_palette);

}  // namespace talpa::compiler
