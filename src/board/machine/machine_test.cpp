// The real firmware ELF on the simulated M33: booted by Linux's remoteproc, spoken to through the tty, networks run.
#include "board/machine/board_for_test.h"

namespace talpa::board {
namespace {

TEST_F(BoardTest, FirmwareBootsAndAnswers) {
    up();
    open_tty();
    EXPECT_EQ(ask("PING"), "PONG seq=0\n");
    EXPECT_NE(ask("INFO").find("proto=ETR/1"), std::string::npos);
    EXPECT_NE(rproc_->read_trace(0).find("talpa runner"), std::string::npos);
}

TEST_F(BoardTest, GoldenNetworkRunsBitForBit) {
    up();
    const auto folder = testing::golden_folder() / "models/resnet8_random";
    put(link::kProgram.base, host::read_file(folder / "resnet8_random.pte").value());
    put(link::kInputTensor.base, host::read_file(folder / "in0.bin").value());
    open_tty();
    const std::string replies = ask("RUN");
    EXPECT_NE(replies.find("OK RUN seq=1"), std::string::npos) << replies;
    const auto expected = host::read_file(folder / "out0.bin").value();
    const std::uint8_t* const at = machine_->memory().at(link::kOutputCopies.base, expected.size());
    EXPECT_EQ(std::vector<std::uint8_t>(at, at + expected.size()), expected);
}

// From the photo's tensor to the classes, equal to the recorded output; EfficientNet-Lite0 does not fit the model
// region.
TEST_F(BoardTest, ImageNetClassifiersRunBitForBit) {
    TALPA_NEEDS_REFERENCE();
    up();
    open_tty();
    for (const auto& [name, program_at] :
         {std::pair{"mobilenet_v2", link::kProgram.base}, std::pair{"efficientnet_lite0", link::kBigPrograms.base}}) {
        const auto folder = reference / "models" / name;
        const auto program = host::read_file(folder / (std::string(name) + ".pte")).value();
        put(program_at, program);
        put(link::kInputTensor.base, host::read_file(folder / "in0.bin").value());
        const std::string replies = ask(fmt::format("RUN pte=0x{:X},{}", program_at, program.size()));
        EXPECT_NE(replies.find("OK RUN"), std::string::npos) << replies;
        EXPECT_NE(replies.find("TOP 1 class=285"), std::string::npos) << replies;
        const auto expected = host::read_file(folder / "out0.bin").value();
        const std::uint8_t* const at = machine_->memory().at(link::kOutputCopies.base, expected.size());
        EXPECT_EQ(std::vector<std::uint8_t>(at, at + expected.size()), expected) << name;
        RecordProperty(name, replies);
        std::fputs(replies.c_str(), stdout);
    }
}

TEST_F(BoardTest, RestartsAnnounceTheChannelEachTime) {
    up();
    for (int i = 0; i < 5; ++i) {
        open_tty();
        EXPECT_EQ(ask("PING"), "PONG seq=0\n") << i;
        ASSERT_EQ(rproc_->write_state("stop"), 0);
        ::close(fd_);
        fd_ = -1;
        EXPECT_TRUE(registry_.ttys().empty());
    }
}

// Fast scratch in on-chip RAM: the networks give the same bytes, and the RAM has been used.
TEST_F(BoardTest, BuildOptionPutsFastScratchIntoOcram) {
    take_firmware("firmware_with_options.elf");
    up({}, TtyFlavour::Nxp);
    stage("resnet8_random");
    open_tty();
    run_is_right("with OCRAM");
    const std::uint8_t* const ocram = machine_->memory().at(link::kOcram.base, 4096);
    EXPECT_NE(std::count(ocram, ocram + 4096, 0), 4096);
}

TEST_F(BoardTest, FastScratchThatDoesNotFitOcramStaysInDram) {
    TALPA_NEEDS_REFERENCE();
    take_firmware("firmware_with_options.elf");
    up({}, TtyFlavour::Nxp);
    const auto folder = reference / "models/mobilenet_v2";
    put(link::kProgram.base, host::read_file(folder / "mobilenet_v2.pte").value());
    put(link::kInputTensor.base, host::read_file(folder / "in0.bin").value());
    expected_ = host::read_file(folder / "out0.bin").value();
    open_tty();
    run_is_right("1.5 MB of fast scratch");
    const std::uint8_t* const ocram = machine_->memory().at(link::kOcram.base, 4096);
    EXPECT_EQ(std::count(ocram, ocram + 4096, 0), 4096);
}

TEST_F(BoardTest, BuildOptionGivesTheVendorsDriverNodeZero) {
    take_firmware("firmware_with_options.elf");
    up({}, TtyFlavour::Nxp);
    open_tty();
    EXPECT_EQ(registry_.ttys()[0].first, 0);
    EXPECT_NE(ask("PING").find("PONG seq=0"), std::string::npos);
}

}  // namespace
}  // namespace talpa::board
