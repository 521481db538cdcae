// Firmware that is refused before the kernel sees it. Images are made here field by field after the ELF specification;
// the limits of the i.MX 93's driver are those of imx93-remoteproc, section 1.2.
#include "remoteproc/sysfs/firmware_elf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/core/byte_reader.h"

namespace talpa::remoteproc {
namespace {

using ::testing::HasSubstr;

struct Image {
    std::uint16_t machine = 40, phnum = 1, shnum = 3;
    std::uint32_t address = 0x20003000, filesz = 8, memsz = 16, offset = 0x100, table_version = 1, table_count = 1;
    std::uint32_t table_size = 20;

    [[nodiscard]] std::vector<std::uint8_t> bytes() const {
        std::vector<std::uint8_t> b(0x300, 0);
        const auto put16 = [&](std::size_t at, std::uint16_t v) { store_le(&b[at], v); };
        const auto put32 = [&](std::size_t at, std::uint32_t v) { store_le(&b[at], v); };
        std::memcpy(b.data(),
                    "\x7f"
                    "ELF\x01\x01\x01",
                    7);
        put16(16, 2), put16(18, machine), put32(20, 1), put32(28, 52), put32(32, 0x200);
        put16(40, 52), put16(42, 32), put16(44, phnum), put16(46, 40), put16(48, shnum), put16(50, 2);
        put32(52, 1), put32(56, offset), put32(60, address), put32(64, address), put32(68, filesz), put32(72, memsz);
        put32(0x180, table_version), put32(0x184, table_count);  // .resource_table
        put32(0x228, 1), put32(0x228 + 16, 0x180), put32(0x228 + 20, table_size);
        put32(0x250, 0), put32(0x250 + 16, 0x1C0), put32(0x250 + 20, 17);  // section names
        std::memcpy(&b[0x1C0], "\0.resource_table\0", 17);
        return b;
    }
};

std::string verdict(const std::vector<std::uint8_t>& bytes, const CoreFacts* core = &all_known_cores()[0],
                    const ElfWishes& wishes = {}) {
    const FirmwareBytes file{bytes.size(), [&](std::uint64_t at, std::span<std::uint8_t> out) {
                                 if (!range_inside(at, out.size(), bytes.size())) return false;
                                 std::memcpy(out.data(), bytes.data() + at, out.size());
                                 return true;
                             }};
    const auto result = check_firmware(file, core, wishes);
    return result ? "good" : error_line(result.error()) + result.error().hint;
}

TEST(FirmwareElf, ASoundOneIsGood) {
    EXPECT_EQ(verdict(Image{}.bytes()), "good");
    EXPECT_EQ(verdict(Image{.address = 0x0FFE0000}.bytes()), "good");
}

TEST(FirmwareElf, TheMachineMustBeTheCores) {
    EXPECT_THAT(verdict(Image{.machine = 62}.bytes()), HasSubstr("the ELF is for machine 62"));
    EXPECT_EQ(verdict(Image{.machine = 62}.bytes(), nullptr), "good") << "of an unknown core nothing is known";
}

TEST(FirmwareElf, SegmentsMustEndBeforeTheWindowsLastByteAndTheMapIsShown) {
    EXPECT_EQ(verdict(Image{.address = 0x2003FF00, .memsz = 0xFF}.bytes()), "good");
    const std::string text = verdict(Image{.address = 0x2003FF00, .memsz = 0x100}.bytes());
    EXPECT_THAT(text, HasSubstr("segment 0 at 0x2003ff00, 0x100 bytes"));
    EXPECT_THAT(text, HasSubstr("0x20000000..0x2003fffe data TCM"));
    EXPECT_THAT(verdict(Image{.address = 0xA8000000}.bytes()), HasSubstr("not in the core's memory"));
    EXPECT_THAT(verdict(Image{.filesz = 0, .memsz = 0}.bytes()), HasSubstr("empty"));
    EXPECT_EQ(verdict(Image{.address = 0xA8000000}.bytes(), nullptr), "good");
}

TEST(FirmwareElf, LengthsAndOffsetsAreChecked) {
    EXPECT_THAT(verdict(Image{.filesz = 17}.bytes()), HasSubstr("more than in memory"));
    EXPECT_THAT(verdict(Image{.filesz = 8, .offset = 0x2FC}.bytes()), HasSubstr("not inside the file"));
    EXPECT_THAT(verdict(Image{.filesz = 8, .offset = 0xFFFFFFFC}.bytes()), HasSubstr("not inside the file"));
    EXPECT_THAT(verdict(Image{.phnum = 0}.bytes()), HasSubstr("no program headers"));
    EXPECT_THAT(verdict(Image{.phnum = 1000}.bytes()), HasSubstr("not inside the file"));
    EXPECT_THAT(verdict(Image{.phnum = 2000}.bytes()), HasSubstr("at most 1024"));
}

TEST(FirmwareElf, AResourceTableIsWantedUnlessOptedOut) {
    EXPECT_THAT(verdict(Image{.shnum = 0}.bytes()), HasSubstr("no resource table"));
    EXPECT_EQ(verdict(Image{.shnum = 0}.bytes(), &all_known_cores()[0], {.policy = ElfPolicy::Auto, .table = false}),
              "good");
    EXPECT_EQ(verdict(Image{.shnum = 0}.bytes(), nullptr), "good");
    EXPECT_THAT(verdict(Image{.shnum = 0}.bytes(), nullptr, {.policy = ElfPolicy::Strict, .table = std::nullopt}),
                HasSubstr("no resource table"));
    EXPECT_THAT(verdict(Image{.table_version = 2}.bytes()), HasSubstr("version 2"));
    EXPECT_THAT(verdict(Image{.table_count = 2}.bytes()), HasSubstr("2 entries"));
}

TEST(FirmwareElf, ARawImageIsForTheKernelToJudgeWhereTheCoreIsUnknown) {
    const std::vector<std::uint8_t> raw(100, 0x55);
    EXPECT_EQ(verdict(raw, nullptr), "good");
    EXPECT_THAT(verdict(raw), HasSubstr("not an ELF file"));
    EXPECT_THAT(verdict(raw, nullptr, {.policy = ElfPolicy::Strict, .table = std::nullopt}),
                HasSubstr("not an ELF file"));
    EXPECT_EQ(verdict(raw, &all_known_cores()[0], {.policy = ElfPolicy::Off, .table = std::nullopt}), "good");
}

TEST(FirmwareElf, TalpasOwnFirmwareIsGood) {
    const auto path = std::filesystem::path(TALPA_SOURCE_DIR) / "build" / "firmware" / "executorch_runner_cm33.elf";
    std::ifstream file(path, std::ios::binary);
    if (!file) GTEST_SKIP() << "the firmware is not built: " << path;
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(verdict(bytes), "good");
}

}  // namespace
}  // namespace talpa::remoteproc
