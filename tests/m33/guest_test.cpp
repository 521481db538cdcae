// Whole programs on the simulator: results as the host computes them from the same C.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <vector>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "guest_board.h"

extern "C" {
#include "guest/workload.h"
}
#include "guest/quantize_cases.h"

namespace talpa::m33_test {
namespace {

struct Variant {
    const char* level;
    bool translate;
};

class Workload : public ::testing::TestWithParam<Variant> {};

// The expected checksum comes from the host's compiler and processor; two lengths, so that neither is an accident.
TEST_P(Workload, GivesTheHostsChecksum) {
    const std::string elf = std::string(M33_GUESTS) + "/workload_" + GetParam().level + ".elf";
    for (const std::uint32_t iterations : {7U, 100U}) {
        board::cpu::Options options;
        options.translate = GetParam().translate;
        const auto outcome = run_guest(elf, "program " + std::to_string(iterations), options);
        ASSERT_TRUE(outcome) << outcome.error().describe();
        char expected[40];
        std::snprintf(expected, sizeof expected, "checksum %08x\n", workload_run(iterations));
        EXPECT_EQ(outcome->output, expected);
        EXPECT_EQ(outcome->status, 0) << outcome->end;
    }
}

INSTANTIATE_TEST_SUITE_P(Levels, Workload,
                         ::testing::Values(Variant{"O0", false}, Variant{"O0", true}, Variant{"Os", false},
                                           Variant{"Os", true}, Variant{"O3", false}, Variant{"O3", true}),
                         [](const auto& variant) {
                             return std::string(variant.param.level) +
                                    (variant.param.translate ? "Translated" : "Interpreted");
                         });

// Both ways of running must also agree in how many instructions it took.
TEST(Workload, TakesTheSameInstructionsTranslatedAndInterpreted) {
    const std::string elf = std::string(M33_GUESTS) + "/workload_Os.elf";
    board::cpu::Options options;
    const auto translated = run_guest(elf, "program 20", options);
    options.translate = false;
    const auto interpreted = run_guest(elf, "program 20", options);
    ASSERT_TRUE(translated && interpreted);
    EXPECT_EQ(translated->instructions, interpreted->instructions);
    EXPECT_GT(translated->instructions, 1000000U);
}

// tests/golden/m33/exceptions.txt was printed by the same program under qemu-system-arm 7.2, machine mps2-an505.
TEST(Exceptions, PrintWhatTheReferenceEmulatorPrinted) {
    const auto golden = host::read_text(talpa::testing::golden_folder() / "m33" / "exceptions.txt");
    ASSERT_TRUE(golden) << golden.error().describe();
    for (const bool translate : {false, true}) {
        board::cpu::Options options;
        options.translate = translate;
        options.translate_after = 0;
        const auto outcome = run_guest(std::string(M33_GUESTS) + "/exceptions.elf", "program", options, 100'000'000);
        ASSERT_TRUE(outcome) << outcome.error().describe();
        EXPECT_EQ(outcome->output, *golden);
        EXPECT_EQ(outcome->status, 0) << outcome->end;
    }
}

// pte-format, section 6.2, word for word, with the C library's rounding: half to even, saturating, NaN as zero point.
std::uint8_t quantized(float x, const quantize_case& c) {
    const float inverse = 1.0f / c.scale;
    const float product = x * inverse;
    const double low = c.is_signed != 0 ? -128 : 0, high = c.is_signed != 0 ? 127 : 255;
    const double rounded = std::isnan(product) ? 0 : std::nearbyint(static_cast<double>(product));
    const double q = std::fmin(std::fmax(rounded + c.zero_point, low), high);
    return static_cast<std::uint8_t>(static_cast<std::int32_t>(q));
}

TEST(Quantize, TheM33sLoopsAreExactAtEveryRoundingEdge) {
    ASSERT_EQ(std::fegetround(), FE_TONEAREST);
    std::string expected;
    const auto line = [&](const char* label, std::uint32_t hash) {
        expected += fmt::format("{} {:08x}\n", label, hash);
    };
    std::uint32_t random = 2463534242u;
    std::vector<std::uint8_t> bytes(kCount);
    std::vector<float> reals(kCount);
    for (const quantize_case& c : kCases) {
        for (float& x : reals) x = next_value(&random, c.scale);
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = quantized(reals[i], c);
        line("q", hash_bytes(2166136261u, bytes.data(), kCount));
        for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(next_random(&random));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const std::int32_t q = c.is_signed != 0 ? static_cast<std::int8_t>(bytes[i]) : bytes[i];
            reals[i] = static_cast<float>(q - c.zero_point) * c.scale;
        }
        line("d", hash_bytes(2166136261u, reals.data(), kCount * 4));
    }
    for (const bool translate : {false, true}) {
        board::cpu::Options options;
        options.translate = translate;
        options.translate_after = 0;
        const auto outcome = run_guest(std::string(M33_GUESTS) + "/quantize.elf", "program", options);
        ASSERT_TRUE(outcome) << outcome.error().describe();
        EXPECT_EQ(outcome->output.substr(0, expected.size()), expected);
        EXPECT_EQ(outcome->status, 0) << outcome->end;
        // docs/firmware.md states 6.25 and 4.5 cycles (the simulator's: one an instruction) an element.
        std::istringstream rest(outcome->output.substr(std::min(expected.size(), outcome->output.size())));
        std::string label, quantize, dequantize;
        rest >> label >> quantize >> label >> dequantize;
        EXPECT_LE(std::stoul("0" + quantize, nullptr, 16), 4096 * 25 / 4 + 16);
        EXPECT_LE(std::stoul("0" + dequantize, nullptr, 16), 4096 * 18 / 4 + 16);
        RecordProperty("output", rest.str());
    }
}

}  // namespace
}  // namespace talpa::m33_test
