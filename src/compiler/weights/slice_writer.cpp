#include "compiler/weights/slice_writer.h"

#include <algorithm>

namespace talpa::compiler {
namespace {

constexpr unsigned kNoRuns = 6, kUncompressed = 7;  // reserved values of ZDIV and WDIV
constexpr std::ptrdiff_t kLead = 8;                 // weights may be this far ahead of zero runs

void write_header(StreamBits& bits, std::size_t count, const WeightCode& code, std::optional<std::uint8_t> zero_divisor,
                  const Palette* palette) {
    bits.put(zero_divisor ? *zero_divisor : kNoRuns, 3);
    bits.put(static_cast<std::uint32_t>(count - 1), 15);
    bits.put(code.uncompressed ? kUncompressed : code.divisor, 3);
    bits.put(code.truncated ? 1 : 0, 1);
    bits.put(palette != nullptr ? 1 : 0, 1);
    if (palette == nullptr) return;
    bits.put(palette->direct_offset, 5);
    bits.put(palette->entries.empty() ? 0 : static_cast<std::uint32_t>(palette->entries.size() - 1), 5);
    bits.put(palette->bits - 2u, 3);
    for (const std::uint16_t entry : palette->entries) bits.put(entry, palette->bits);
}

// The quotients of one stream as the decoder meets them, and the remainders that it asks for a chunk later.
template <typename T>
class Symbols {
  public:
    Symbols(std::span<const T> values, unsigned divisor) : values_(values), divisor_(divisor) {}
    [[nodiscard]] std::size_t complete() const { return complete_; }  // those beyond the end included
    [[nodiscard]] bool done() const { return complete_ >= values_.size(); }
    [[nodiscard]] std::uint32_t quotient() {
        if (!open_) {
            left_ = complete_ < values_.size() ? values_[complete_] >> divisor_ : 0;
            open_ = true;
        }
        return left_;
    }
    void take(std::uint32_t amount) { left_ -= amount; }
    void finish() {
        open_ = false;
        ++complete_;
    }
    void write_remainders(StreamBits& bits, std::size_t up_to) {
        for (; written_ < std::min(up_to, values_.size()); ++written_)
            if (divisor_ != 0) bits.put(values_[written_] & ((1u << divisor_) - 1), divisor_);
    }

  private:
    std::span<const T> values_;
    unsigned divisor_;
    std::size_t complete_ = 0, written_ = 0;
    std::uint32_t left_ = 0;
    bool open_ = false;
};

}  // namespace

void write_slice(StreamBits& bits, std::span<const std::uint16_t> weights, std::span<const std::uint32_t> runs,
                 const WeightCode& code, std::optional<std::uint8_t> zero_divisor, const Palette* new_palette) {
    write_header(bits, weights.size(), code, zero_divisor, new_palette);
    Symbols<std::uint16_t> w(weights, code.divisor);
    Symbols<std::uint32_t> z(runs, zero_divisor.value_or(0));
    const unsigned weight_slots = code.uncompressed && code.divisor > 5 ? 8 : 12;
    const unsigned zero_slots = zero_divisor.value_or(0) < 3 ? 12 : 8;
    for (;;) {
        const std::size_t weights_due = w.complete(), runs_due = z.complete();
        const std::ptrdiff_t lead =
            zero_divisor ? static_cast<std::ptrdiff_t>(w.complete()) - static_cast<std::ptrdiff_t>(z.complete()) : 0;
        const bool weights_on = !w.done() && lead < kLead, runs_on = zero_divisor && !z.done() && lead >= 0;
        std::uint32_t second_bits = 0;
        unsigned second_count = 0;
        if (weights_on && code.uncompressed) {
            for (unsigned slot = 0; slot < weight_slots; ++slot) w.finish();
        } else if (weights_on) {
            std::uint32_t first_bits = 0;
            for (unsigned slot = 0; slot < weight_slots; ++slot) {
                const std::uint32_t step = std::min(2u, w.quotient());
                if (step != 0) {
                    first_bits |= 1u << slot;
                    second_bits |= (step - 1) << second_count++;
                }
                w.take(step);
                if (step < 2 || code.truncated) w.finish();
            }
            bits.put(first_bits, weight_slots);
        }
        if (runs_on) {
            for (unsigned slot = 0; slot < zero_slots; ++slot) {
                const bool more = z.quotient() != 0;
                bits.put(more ? 1 : 0, 1);
                if (more)
                    z.take(1);
                else
                    z.finish();
            }
        }
        bits.put(second_bits, second_count);
        w.write_remainders(bits, weights_due);
        z.write_remainders(bits, runs_due);
        if (!weights_on && !runs_on) break;
    }
}

}  // namespace talpa::compiler
