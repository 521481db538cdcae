// Whole programs on the simulator: results as the host computes them from the same C.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "guest_board.h"

extern "C" {
#include "guest/workload.h"
}

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

}  // namespace
}  // namespace talpa::m33_test
