// Decompression of a weight stream: slices of Golomb-coded symbols in interleaved chunks (ethos-u65,
// sections 7.1, 7.2).
#include <array>
#include <bit>

#include "npu_model/weights.h"

namespace talpa::npu_model {
namespace {

// Least significant bit of byte 0 first. Reads beyond the end give zeros and are noticed by `overrun`.
class BitReader {
  public:
    explicit BitReader(Bytes bytes) : bytes_(bytes), end_bit_(std::uint64_t{bytes.size()} * 8) {}

    [[nodiscard]] std::uint32_t get(unsigned count) {  // at most 15
        const std::uint64_t byte = bit_ >> 3;
        std::uint32_t window = 0;
        for (unsigned i = 0; i < 3; ++i)
            if (byte + i < bytes_.size())
                window |= std::uint32_t{bytes_[static_cast<std::size_t>(byte + i)]} << (8 * i);
        window >>= bit_ & 7;
        bit_ += count;
        return window & ((1u << count) - 1);
    }
    void align_to_byte() { bit_ = (bit_ + 7) & ~std::uint64_t{7}; }
    [[nodiscard]] bool at_end() const { return bit_ >= end_bit_; }
    [[nodiscard]] bool overrun() const { return bit_ > end_bit_; }
    [[nodiscard]] std::uint64_t bit() const { return bit_; }

  private:
    Bytes bytes_;
    std::uint64_t end_bit_;
    std::uint64_t bit_ = 0;
};

constexpr unsigned kZdivNoRuns = 6, kZdivEnd = 7;
constexpr unsigned kWdivIllegal = 6, kWdivUncompressed = 7;
constexpr std::uint32_t kMaxIndex = 511, kMaxValue = 511;

struct Palette {
    bool defined = false;
    bool zero_runs = false;
    unsigned direct_offset = 0;
    unsigned size = 0;
    unsigned entry_bits = 2;
    std::array<std::int16_t, 32> weights{};
};

// Sign in bit 0, magnitude above it.
std::int16_t weight_of(std::uint32_t value) {
    const auto magnitude = static_cast<std::int16_t>(value >> 1);
    return (value & 1) != 0 ? static_cast<std::int16_t>(-magnitude) : magnitude;
}

// One of the two symbol streams of a slice: counts completed symbols, and keeps the quotients that this chunk completed
// until the next chunk brings their remainders.
struct SymbolStream {
    std::uint32_t wanted = 0;
    unsigned divisor = 0;
    std::uint32_t completed = 0;  // quotients, may pass `wanted`
    std::uint32_t quotient = 0;   // of the symbol under way
    std::array<std::uint32_t, 12> chunk{};
    unsigned in_chunk = 0;
    std::vector<std::uint32_t> symbols;

    void start(std::uint32_t count, unsigned div) {
        wanted = count;
        divisor = div;
        completed = quotient = 0;
        in_chunk = 0;
        symbols.clear();
    }
    void complete() {
        chunk[in_chunk++] = quotient;
        quotient = 0;
        ++completed;
    }
};

class Decoder {
  public:
    Decoder(Bytes stream, std::uint64_t expected) : bits_(stream), expected_(expected) {}

    Result<std::vector<std::int16_t>> decode() {
        weights_.reserve(static_cast<std::size_t>(expected_));
        while (!bits_.at_end()) {
            const unsigned zdiv = bits_.get(3);
            if (zdiv == kZdivEnd) {
                bits_.align_to_byte();
                palette_.defined = false;
                ended_ = true;
                continue;
            }
            ended_ = false;
            TRY(slice(zdiv));
        }
        if (!ended_ && expected_ != 0) return failure("the stream ends without an end marker");
        if (weights_.size() != expected_) return count_failure(weights_.size());
        return std::move(weights_);
    }

  private:
    // The model knows these two forms: it puts the operation in front (located() in model.cpp).
    std::unexpected<Error> failure(const char* what) const {
        return fail(ErrorCode::WeightStream, "weight stream bit {}: {}", bits_.bit(), what);
    }
    std::unexpected<Error> count_failure(std::uint64_t have) const {
        return fail(ErrorCode::WeightStream, "weight stream bit {}: it holds {} {} weights, the operation needs {}",
                    bits_.bit(), have > expected_ ? "at least" : "only", have, expected_);
    }

    Result<void> slice(unsigned zdiv) {
        if (zdiv == 4 || zdiv == 5) return failure("ZDIV has a reserved value");
        const std::uint32_t count = bits_.get(15) + 1;
        const unsigned wdiv = bits_.get(3);
        if (wdiv == kWdivIllegal) return failure("WDIV has the reserved value 6");
        const bool truncated = bits_.get(1) != 0;
        const bool new_palette = bits_.get(1) != 0;
        const bool runs = zdiv != kZdivNoRuns;
        if (new_palette) {
            TRY(read_palette());
            palette_.zero_runs = runs;
        } else if (!palette_.defined) {
            return failure("the first slice of a section brings no palette");
        } else if (runs != palette_.zero_runs) {
            return failure("a slice changes the use of zero runs without a new palette");
        }
        if (bits_.overrun()) return failure("the stream ends inside a slice header");

        const bool uncompressed = wdiv == kWdivUncompressed;
        weight_stream_.start(count, uncompressed ? fixed_bits() : wdiv);
        run_stream_.start(runs ? count + (new_palette ? 1 : 0) : 0, runs ? zdiv : 0);
        TRY(chunks(runs, uncompressed, truncated));
        return emit(new_palette);
    }

    Result<void> read_palette() {
        palette_.defined = true;
        palette_.direct_offset = bits_.get(5);
        const unsigned size = bits_.get(5);
        palette_.size = size == 0 ? 0 : size + 1;
        palette_.entry_bits = bits_.get(3) + 2;
        for (unsigned i = 0; i < palette_.size; ++i) palette_.weights[i] = weight_of(bits_.get(palette_.entry_bits));
        return {};
    }

    // Width of an uncompressed symbol.
    [[nodiscard]] unsigned fixed_bits() const {
        return palette_.size != 0 ? static_cast<unsigned>(std::bit_width(palette_.size - 1)) : palette_.entry_bits;
    }

    // The chunk loop of section 7.2: unary parts now, remainders of the symbols that the previous chunk completed.
    Result<void> chunks(bool runs, bool uncompressed, bool truncated) {
        SymbolStream& w = weight_stream_;
        SymbolStream& z = run_stream_;
        bool weights_enabled = false, runs_enabled = false;
        do {
            const auto previous_w = w.chunk;
            const auto previous_z = z.chunk;
            const unsigned previous_w_count = w.in_chunk, previous_z_count = z.in_chunk;
            w.in_chunk = z.in_chunk = 0;

            const std::int64_t balance = runs ? std::int64_t{w.completed} - z.completed : 0;
            weights_enabled = w.completed < w.wanted && (!runs || balance < 8);
            runs_enabled = runs && z.completed < z.wanted && balance >= 0;
            const std::uint32_t w0 = weights_enabled && !uncompressed ? bits_.get(12) : 0;
            if (runs_enabled) {
                const unsigned slots = z.divisor < 3 ? 12 : 8;
                const std::uint32_t unary = bits_.get(slots);
                for (unsigned i = 0; i < slots; ++i) {
                    if ((unary >> i & 1) != 0)
                        ++z.quotient;
                    else
                        z.complete();
                }
            }
            if (weights_enabled) {
                std::uint32_t w1 = bits_.get(static_cast<unsigned>(std::popcount(w0)));
                const unsigned slots = uncompressed && w.divisor > 5 ? 8 : 12;
                for (unsigned i = 0; i < slots; ++i) {
                    std::uint32_t code = 0;
                    if ((w0 >> i & 1) != 0) {
                        code = 1 + (w1 & 1);
                        w1 >>= 1;
                    }
                    w.quotient += code;
                    if (code < 2 || truncated) w.complete();
                }
            }
            remainders(w, previous_w, previous_w_count);
            remainders(z, previous_z, previous_z_count);
            if (bits_.overrun()) return failure("the stream ends inside a slice");
        } while (weights_enabled || runs_enabled);
        return {};
    }

    void remainders(SymbolStream& s, const std::array<std::uint32_t, 12>& quotients, unsigned count) {
        for (unsigned i = 0; i < count && s.symbols.size() < s.wanted; ++i)
            s.symbols.push_back((quotients[i] << s.divisor) + bits_.get(s.divisor));
    }

    Result<void> zeros(std::uint32_t count) {
        if (count > expected_ - weights_.size()) return count_failure(weights_.size() + std::uint64_t{count});
        weights_.insert(weights_.end(), count, std::int16_t{0});
        return {};
    }

    // Interleaves weights and zero runs: a new palette's slice begins with a run, others end with one.
    Result<void> emit(bool run_first) {
        const auto& runs = run_stream_.symbols;
        std::size_t run = 0;
        if (run_first && !runs.empty()) TRY(zeros(runs[run++]));
        for (const std::uint32_t index : weight_stream_.symbols) {
            if (index > kMaxIndex) return failure("a weight index is larger than 511");
            if (weights_.size() == expected_) return count_failure(expected_ + 1);
            if (index < palette_.size) {
                weights_.push_back(palette_.weights[index]);
            } else {
                const std::uint32_t value = index - palette_.size + palette_.direct_offset;
                if (value > kMaxValue) return failure("a weight does not fit nine bits");
                weights_.push_back(weight_of(value));
            }
            if (run < runs.size()) TRY(zeros(runs[run++]));
        }
        return {};
    }

    BitReader bits_;
    std::uint64_t expected_;
    std::vector<std::int16_t> weights_;
    Palette palette_;
    SymbolStream weight_stream_, run_stream_;
    bool ended_ = false;
};

}  // namespace

Result<std::vector<std::int16_t>> decode_symbols(Bytes stream, std::uint64_t expected) {
    // A bit adds at most 8 zeros to a run (ZDIV 3) or one weight (an uncompressed slot takes at least one).
    if (expected > 64 * (std::uint64_t{stream.size()} + 1))
        return fail(ErrorCode::WeightStream,
                    "weight stream of {} bytes cannot hold the {} weights that the operation needs", stream.size(),
                    expected);
    return Decoder(stream, expected).decode();
}

}  // namespace talpa::npu_model
