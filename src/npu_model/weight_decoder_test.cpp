// The weight decoder on streams of every mode, and on damaged ones. That it reads real compiler output is proven by the
// golden programs; the hand-made bits below follow section 7 of ethos-u65 field by field.
#include <gtest/gtest.h>

#include "npu_model/random_operation.h"
#include "npu_model/weight_encoder_for_test.h"
#include "npu_model/weights.h"

namespace talpa::npu_model {
namespace {

using testing::BitWriter;
using testing::EncoderSettings;
using testing::Random;
using Weights = std::vector<std::int16_t>;

std::string text_of(const Error& error) {
    std::array<char, 256> buffer;
    return std::string(error.render(buffer));
}
std::string error_of(Bytes stream, std::uint64_t expected) {
    const auto result = decode_symbols(stream, expected);
    if (result) return "no error";
    EXPECT_EQ(result.error().code, ErrorCode::WeightStream);
    return text_of(result.error());
}

// Header of a slice without zero runs and with the palette fields.
void put_header(BitWriter& out, unsigned zdiv, unsigned count, unsigned wdiv, bool truncated,
                unsigned direct_offset = 0) {
    out.put(zdiv, 3);
    out.put(count - 1, 15);
    out.put(wdiv, 3);
    out.put(truncated ? 1 : 0, 1);
    out.put(1, 1);              // NEWPAL
    out.put(direct_offset, 5);  // DIROFS
    out.put(0, 5);              // PALSIZE
    out.put(7, 3);              // PALBITS
}

// Three weights 1, -1, 2 with WDIV 1, untruncated. Codes 2, 3, 4: quotients 1, 1, 2, remainders 0, 1, 0.
// Slots: 1 -> bit 1, next bit 0; again; 2 -> bit 1, next bit 1 (continue), then an empty slot.
TEST(WeightDecoder, reads_golomb_symbols_with_their_remainders_one_chunk_late) {
    BitWriter out;
    put_header(out, 6, 3, 1, false);
    out.put(0b000000000111, 12);  // W0: three used slots, then zeros: slot 4 ends the third symbol
    out.put(0b100, 3);            // W1, for the three ones: 0, 0, 1
    out.put(0b010, 3);            // remainders, in the chunk that follows
    out.put(7, 3);
    out.pad_with_ones(16);
    const auto decoded = decode_symbols(out.bytes(), 3);
    ASSERT_TRUE(decoded) << text_of(decoded.error());
    EXPECT_EQ(*decoded, (Weights{1, -1, 2}));
}

// A new palette's slice with runs: run, weight, run. Weight 5 (code 10), uncompressed, runs of 2 and 1 zeros, ZDIV 0.
TEST(WeightDecoder, puts_zero_runs_around_the_weights) {
    BitWriter out;
    put_header(out, 0, 1, 7, false);
    out.put(0b00000001011, 12);  // runs: 1 1 0 -> 2, 1 0 -> 1, then more than there are
    out.put(10, 9);              // the weight, one chunk later
    out.put(7, 3);
    out.pad_with_ones(16);
    const auto decoded = decode_symbols(out.bytes(), 4);
    ASSERT_TRUE(decoded) << text_of(decoded.error());
    EXPECT_EQ(*decoded, (Weights{0, 0, 5, 0}));
}

TEST(WeightDecoder, orders_direct_values_by_magnitude_with_the_sign_in_bit_0) {
    BitWriter out;
    put_header(out, 6, 6, 7, false);
    for (std::uint32_t code : {0u, 1u, 2u, 3u, 510u, 511u}) out.put(code, 9);
    out.put(7, 3);
    out.pad_with_ones(16);
    EXPECT_EQ(decode_symbols(out.bytes(), 6).value(), (Weights{0, 0, 1, -1, 255, -255}));
}

// Random symbols under random parameters that can express them.
TEST(WeightDecoder, reads_back_every_mode) {
    Random random(7);
    for (int round = 0; round < 3000; ++round) {
        EncoderSettings s;
        s.uncompressed = random.once_in(3);
        s.wdiv = random.size(0, 5);
        s.truncated = random.once_in(3);
        s.zero_runs = random.once_in(2);
        s.zdiv = random.size(0, 3);
        s.slice = random.once_in(3) ? random.size(1, 40) : 32768;
        const std::uint32_t palette = random.once_in(2) ? random.size(2, 32) : 0;
        for (std::uint32_t i = 0; i < palette; ++i)
            s.palette.push_back(static_cast<int>(random.in(1, 240)) * (random.once_in(2) ? 1 : -1));
        std::sort(s.palette.begin(), s.palette.end());
        s.palette.erase(std::unique(s.palette.begin(), s.palette.end()), s.palette.end());
        if (s.palette.size() == 1) s.palette.push_back(241);
        s.direct_offset = random.once_in(4) ? random.size(0, 3) : 0;
        // What this mode can say: palette entries only, or indexes whose quotient fits.
        const auto palette_size = static_cast<std::uint32_t>(s.palette.size());
        const std::uint32_t limit = s.uncompressed ? (palette_size != 0 ? palette_size : 512)
                                    : s.truncated  ? 3u << s.wdiv
                                                   : 32u << s.wdiv;
        std::vector<int> choices;
        for (int w = -255; w <= 255; ++w)
            if (testing::index_in(s, w) < std::min(limit, 512u)) choices.push_back(w);
        if (choices.empty()) continue;
        Weights symbols;
        const std::size_t count = random.size(1, 300);
        while (symbols.size() < count) {
            if (s.zero_runs && random.once_in(2))
                symbols.insert(symbols.end(), random.once_in(10) ? random.size(1, 200) : random.size(1, 4),
                               std::int16_t{0});
            symbols.push_back(static_cast<std::int16_t>(choices[random.bits() % choices.size()]));
        }
        const auto stream = testing::encode_stream(symbols, s);
        const auto decoded = decode_symbols(stream, symbols.size());
        ASSERT_TRUE(decoded) << round << ": " << text_of(decoded.error());
        ASSERT_EQ(*decoded, symbols) << round;
        // One symbol more or less is noticed.
        EXPECT_FALSE(decode_symbols(stream, symbols.size() + 1));
        EXPECT_FALSE(decode_symbols(stream, symbols.size() - 1));
    }
}

TEST(WeightDecoder, reads_sections_one_after_another) {
    BitWriter out;
    testing::encode_section(out, {1, 2, 3}, {});
    testing::encode_section(out, {0, 0, -4}, {.zero_runs = true});
    out.pad_with_ones(16);
    EXPECT_EQ(decode_symbols(out.bytes(), 6).value(), (Weights{1, 2, 3, 0, 0, -4}));
}

TEST(WeightDecoder, refuses_reserved_values) {
    BitWriter zdiv, wdiv, keep;
    put_header(zdiv, 4, 1, 7, false);
    put_header(wdiv, 6, 1, 6, false);
    keep.put(6, 3);
    keep.put(0, 15);
    keep.put(7, 3);
    keep.put(0, 2);  // no new palette
    EXPECT_EQ(error_of(zdiv.bytes(), 1), "weight stream bit 3: ZDIV has a reserved value");
    EXPECT_EQ(error_of(wdiv.bytes(), 1), "weight stream bit 21: WDIV has the reserved value 6");
    EXPECT_EQ(error_of(keep.bytes(), 1), "weight stream bit 23: the first slice of a section brings no palette");
}

TEST(WeightDecoder, refuses_a_slice_that_changes_the_use_of_runs) {
    BitWriter out;
    put_header(out, 6, 1, 7, false);
    out.put(2, 9);
    out.put(0, 3);  // ZDIV 0: runs, which the palette's slice had not
    out.put(0, 15);
    out.put(7, 3);
    out.put(0, 2);
    EXPECT_EQ(error_of(out.bytes(), 2),
              "weight stream bit 68: a slice changes the use of zero runs without a new palette");
}

// Found by fuzzing: DIROFS lifts direct values beyond what nine bits hold.
TEST(WeightDecoder, refuses_weights_beyond_255) {
    BitWriter out;
    put_header(out, 6, 1, 7, false, 31);
    out.put(511, 9);
    out.put(7, 3);
    out.pad_with_ones(16);
    EXPECT_NE(error_of(out.bytes(), 1).find("a weight does not fit nine bits"), std::string::npos);
}

TEST(WeightDecoder, says_how_many_weights_there_are_and_were_wanted) {
    const auto stream = testing::encode_stream({1, 2, 3});
    EXPECT_NE(error_of(stream, 4).find("it holds only 3 weights, the operation needs 4"), std::string::npos);
    EXPECT_NE(error_of(stream, 2).find("it holds at least 3 weights, the operation needs 2"), std::string::npos);
    EXPECT_EQ(error_of(stream, 1'000'000),
              "weight stream bit 0: its 16 bytes cannot hold the 1000000 weights that the operation needs");
}

TEST(WeightDecoder, notices_a_stream_cut_anywhere) {
    Random random(3);
    Weights symbols(200);
    for (auto& w : symbols) w = static_cast<std::int16_t>(random.in(-100, 100));
    const auto stream = testing::encode_stream(symbols, {.uncompressed = false, .wdiv = 3});
    const std::size_t content = stream.size() - 16;
    for (std::size_t cut = 0; cut < content; ++cut)
        EXPECT_FALSE(decode_symbols(Bytes(stream).first(cut), symbols.size())) << cut;
}

TEST(WeightDecoder, wants_an_end_marker) {
    BitWriter out;
    put_header(out, 6, 1, 7, false);
    out.put(2, 9);
    out.put(0, 4);  // to the byte
    EXPECT_FALSE(decode_symbols(Bytes(out.bytes()).first(out.bits() / 8), 1));
}

}  // namespace
}  // namespace talpa::npu_model
