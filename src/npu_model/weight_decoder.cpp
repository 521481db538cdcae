// Decompression of a weight stream: slices of Golomb-coded symbols in interleaved chunks (ethos-u65,
// sections 7.1, 7.2).
#include <algorithm>
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
        const auto byte = static_cast<std::size_t>(bit_ >> 3);
        std::uint32_t window = 0;
        if (byte + 4 <= bytes_.size()) {
            window = load_le<std::uint32_t>(bytes_.data() + byte);
        } else {
            for (std::size_t i = byte; i < bytes_.size(); ++i) window |= std::uint32_t{bytes_[i]} << (8 * (i - byte));
        }
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
constexpr std::int16_t kNoWeight = INT16_MIN;
constexpr unsigned kMaxSlots = 12;  // of a chunk

// Sign in bit 0, magnitude above it.
std::int16_t weight_of(std::uint32_t value) {
    const auto magnitude = static_cast<std::int16_t>(value >> 1);
    return (value & 1) != 0 ? static_cast<std::int16_t>(-magnitude) : magnitude;
}

struct Palette {
    bool defined = false;
    bool zero_runs = false;
    unsigned size = 0;
    unsigned entry_bits = 2;
    /// By index: palette entries, then direct values. kNoWeight where the value would not fit nine bits.
    std::array<std::int16_t, kMaxIndex + 1> weights{};
};

// One of the two symbol streams of a slice. The chunk's quotients stay in `symbols` until the next chunk brings their
// remainders; `finished` says how many symbols have theirs.
struct SymbolStream {
    std::uint32_t wanted = 0;
    unsigned divisor = 0;
    std::uint32_t completed = 0;  // quotients, may pass `wanted`
    std::uint32_t finished = 0;
    std::uint32_t quotient = 0;  // of the symbol under way
    std::vector<std::uint32_t> symbols;

    void start(std::uint32_t count, unsigned div) {
        wanted = count;
        divisor = div;
        completed = finished = quotient = 0;
        symbols.resize(std::size_t{count} + kMaxSlots);  // the last chunk may complete more than there are
    }
    // Without a branch: whether a symbol ends here is what a branch predictor cannot know.
    void add(std::uint32_t unary, bool complete) {
        quotient += unary;
        symbols[completed] = quotient;
        completed += complete ? 1 : 0;
        quotient = complete ? 0 : quotient;
    }
};

class Decoder {
  public:
    Decoder(Bytes stream, std::uint64_t expected) : bits_(stream), expected_(expected) {}

    Result<std::vector<std::int16_t>> decode() {
        weights_.resize(static_cast<std::size_t>(expected_));  // zero runs only skip
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
        if (count_ != expected_) return count_failure(count_);
        return std::move(weights_);
    }

  private:
    // The model knows these forms, and that of decode_symbols below: it puts the operation in front (located() in
    // model.cpp).
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
            read_palette();
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

    void read_palette() {
        palette_.defined = true;
        const std::uint32_t direct_offset = bits_.get(5);
        const unsigned size = bits_.get(5);
        palette_.size = size == 0 ? 0 : size + 1;
        palette_.entry_bits = bits_.get(3) + 2;
        for (unsigned i = 0; i < palette_.size; ++i) palette_.weights[i] = weight_of(bits_.get(palette_.entry_bits));
        for (std::uint32_t i = palette_.size; i <= kMaxIndex; ++i) {
            const std::uint32_t value = i - palette_.size + direct_offset;
            palette_.weights[i] = value <= kMaxValue ? weight_of(value) : kNoWeight;
        }
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
            const std::uint32_t w_due = std::min(w.completed, w.wanted), z_due = std::min(z.completed, z.wanted);
            const std::int64_t balance = runs ? std::int64_t{w.completed} - z.completed : 0;
            weights_enabled = w.completed < w.wanted && (!runs || balance < 8);
            runs_enabled = runs && z.completed < z.wanted && balance >= 0;
            const std::uint32_t w0 = weights_enabled && !uncompressed ? bits_.get(12) : 0;
            if (runs_enabled) {
                const unsigned slots = z.divisor < 3 ? 12 : 8;
                const std::uint32_t unary = bits_.get(slots);
                for (unsigned i = 0; i < slots; ++i) z.add(unary >> i & 1, (unary >> i & 1) == 0);
            }
            if (weights_enabled) {
                std::uint32_t w1 = bits_.get(static_cast<unsigned>(std::popcount(w0)));
                const unsigned slots = uncompressed && w.divisor > 5 ? 8 : 12;
                for (unsigned i = 0; i < slots; ++i) {
                    const std::uint32_t more = w0 >> i & 1;
                    const std::uint32_t code = more + (more & w1);
                    w1 >>= more;
                    w.add(code, code < 2 || truncated);
                }
            }
            remainders(w, w_due);
            remainders(z, z_due);
            if (bits_.overrun()) return failure("the stream ends inside a slice");
        } while (weights_enabled || runs_enabled);
        return {};
    }

    void remainders(SymbolStream& s, std::uint32_t due) {
        for (; s.finished < due; ++s.finished)
            s.symbols[s.finished] = (s.symbols[s.finished] << s.divisor) + bits_.get(s.divisor);
    }

    Result<void> zeros(std::uint32_t count) {
        if (count > expected_ - count_) return count_failure(count_ + std::uint64_t{count});
        count_ += count;
        return {};
    }

    // Interleaves weights and zero runs: a new palette's slice begins with a run, others end with one.
    Result<void> emit(bool run_first) {
        const std::uint32_t* run = run_stream_.symbols.data();
        const bool runs = run_stream_.wanted != 0;
        if (runs && run_first) TRY(zeros(*run++));
        if (weight_stream_.wanted > expected_ - count_) return count_failure(count_ + weight_stream_.wanted);
        for (std::uint32_t i = 0; i < weight_stream_.wanted; ++i) {
            const std::uint32_t index = weight_stream_.symbols[i];
            if (index > kMaxIndex) return failure("a weight index is larger than 511");
            const std::int16_t weight = palette_.weights[index];
            if (weight == kNoWeight) return failure("a weight does not fit nine bits");
            if (count_ == expected_) return count_failure(expected_ + 1);
            weights_[static_cast<std::size_t>(count_++)] = weight;
            if (runs) TRY(zeros(*run++));
        }
        return {};
    }

    BitReader bits_;
    std::uint64_t expected_;
    std::vector<std::int16_t> weights_;
    std::uint64_t count_ = 0;  // of them so far
    Palette palette_;
    SymbolStream weight_stream_, run_stream_;
    bool ended_ = false;
};

}  // namespace

Result<std::vector<std::int16_t>> decode_symbols(Bytes stream, std::uint64_t expected) {
    // A bit adds at most 8 zeros to a run (ZDIV 3) or one weight (an uncompressed slot takes at least one).
    if (expected > 64 * (std::uint64_t{stream.size()} + 1))
        return fail(ErrorCode::WeightStream,
                    "weight stream bit {}: its {} bytes cannot hold the {} weights that the operation needs", 0,
                    stream.size(), expected);
    return Decoder(stream, expected).decode();
}

}  // namespace talpa::npu_model
