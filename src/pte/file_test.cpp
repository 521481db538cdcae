// What a file must be before a table is looked at. Names begin with the check of pte-format, section 9.
#include "pte/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "pte/data_file.h"
#include "pte/file_for_test.h"
#include "pte/program.h"

namespace talpa::pte {
namespace {

using testing::ExactBytes;
using ::testing::HasSubstr;
using testing::text;

std::vector<std::uint8_t> variant(const std::string& name) {
    return host::read_file(talpa::testing::golden_folder() / "pte_variants" / name).value();
}

std::string refusal(Bytes bytes) {
    const ExactBytes exact(bytes);
    const auto program = Program::open(exact.bytes());
    return program ? "(accepted)" : text(program.error());
}

/// two_seg.pte (header of 32 bytes; program_size 2296, base 2304, 3920 bytes of segments) with a change.
template <typename Fn>
std::string refused(Fn&& change) {
    auto file = variant("two_seg.pte");
    change(file);
    return refusal(file);
}
template <typename T>
auto set(std::size_t at, T value) {
    return [=](std::vector<std::uint8_t>& file) { store_le(file.data() + at, value); };
}

TEST(File, V01_TooShort) {
    EXPECT_EQ(refusal({}), "no bytes at all: an ExecuTorch program has at least 64");
    const auto file = variant("two_seg.pte");
    EXPECT_EQ(refusal(Bytes(file).first(63)), "cut short: an ExecuTorch program has at least 64 bytes, these are 63");
    EXPECT_EQ(refusal(Bytes(file).first(3)), "cut short: an ExecuTorch program has at least 64 bytes, these are 3");
}

TEST(File, V01_Unaligned) {
    auto file = variant("two_seg.pte");
    file.insert(file.begin(), 0);
    EXPECT_THAT(text(Program::open(Bytes(file).subspan(1)).error()),
                HasSubstr("must lie at a multiple of 16, this one is at 0x"));
}

TEST(File, V02_OtherKindsOfFilesAreNamed) {
    const auto id = [](std::string_view four) {
        return refused([=](std::vector<std::uint8_t>& file) { std::ranges::copy(four, file.begin() + 4); });
    };
    EXPECT_EQ(id("BP08"), "a bundled program (BP08: a program wrapped with test inputs): export the plain .pte");
    EXPECT_EQ(id("FT01"), "a data file (FT01, .ptd) and not an ExecuTorch program: give it with --data");
    EXPECT_EQ(id("ET13"), "a program of another schema generation (ET13): only ET12 is known");
    EXPECT_EQ(id("TFL3"), "not an ExecuTorch program: its identifier is 0x334c4654 ('TFL3'), not 'ET12'");
    EXPECT_EQ(refusal(std::vector<std::uint8_t>(128, 0xFF)),
              "erased flash (0xffffffff) and not an ExecuTorch program: nothing has been written to this address");
    EXPECT_EQ(refusal(std::vector<std::uint8_t>(128, 0)),
              "zeros and not an ExecuTorch program: nothing has been written here");
    const ExactBytes program(variant("two_seg.pte"));
    EXPECT_EQ(text(DataFile::open(program.bytes()).error()), "a program (ET12, .pte) and not an ExecuTorch data file");
}

TEST(File, V03_HeaderOfAnotherGeneration) {
    EXPECT_EQ(refused(set(11, std::uint8_t{'1'})),
              "its extended header is of another generation (eh01), only eh00 is known");
}

TEST(File, V03_HeaderAndRegions) {
    EXPECT_EQ(refused(set(12, std::uint32_t{23})), "its extended header has 23 bytes, at least 24 are needed");
    EXPECT_EQ(refused(set(12, std::uint32_t{100})), "(accepted)") << "longer headers may come";
    EXPECT_EQ(refused(set(12, std::uint32_t{24})), "(accepted)")
        << "files before 1.0 do not record the size of the segments";
    EXPECT_EQ(refused(set(16, std::uint64_t{6225})),
              "cut short: the tables take 6225 bytes by the header, the file has 6224");
    EXPECT_EQ(refused(set(16, ~std::uint64_t{0})),
              "cut short: the tables take 18446744073709551615 bytes by the header, the file has 6224");
    EXPECT_EQ(refused(set(24, std::uint64_t{2000})),
              "the segments would begin at 2000, inside the 2296 bytes of tables");
    EXPECT_EQ(refused(set(24, std::uint64_t{0})), "the header has 3920 bytes of segments at no base");
    EXPECT_EQ(refused(set(24, ~std::uint64_t{0} - 10)),
              "cut short: segments take 3920 bytes from 18446744073709551605 by the header, the file has 6224");
    EXPECT_EQ(refused(set(32, ~std::uint64_t{0})),
              "cut short: segments take 18446744073709551615 bytes from 2304 by the header, the file has 6224");
    EXPECT_EQ(refused(set(16, std::uint64_t{4})), "a FlatBuffer of 4 bytes");
}

TEST(File, V04_RootOffset) {
    EXPECT_EQ(refused(set(0, std::uint32_t{2293})), "the root table would be at offset 2293, outside 8..2292");
    EXPECT_EQ(refused(set(0, std::uint32_t{4})), "the root table would be at offset 4, outside 8..2292");
    EXPECT_EQ(refused(set(0, ~std::uint32_t{0})), "the root table would be at offset 4294967295, outside 8..2292");
    EXPECT_THAT(refused(set(0, std::uint32_t{61})), HasSubstr("offset 61 is misaligned"));
}

TEST(File, SegmentsWithoutAHeaderMayBeEmptyOnly) {
    FileFrame frame;
    const std::array<std::uint8_t, 8> file{};
    EXPECT_TRUE(segment_bytes(file, frame, 0, 0, 0));
    EXPECT_TRUE(segment_bytes(file, frame, 0, 1000, 0)) << "nothing is read";
    EXPECT_EQ(text(segment_bytes(file, frame, 3, 0, 1).error()),
              "segment 3 has 1 bytes, but the file has no segment area");
    frame.segment_base = 4;
    EXPECT_EQ(segment_bytes(file, frame, 0, 1, 3)->size(), 3u);
    EXPECT_EQ(text(segment_bytes(file, frame, 7, 2, 3).error()),
              "segment 7 takes 3 bytes from 2, the segment area has 4");
    EXPECT_EQ(text(segment_bytes(file, frame, 7, ~std::uint64_t{0}, 2).error()),
              "segment 7 takes 2 bytes from 18446744073709551615, the segment area has 4");
}

TEST(DataFile, V02_V03_HeaderOfDataFiles) {
    const auto refused_data = [](auto&& change) {
        auto file = variant("flash.ptd");
        change(file);
        const ExactBytes exact(file);
        const auto data = DataFile::open(exact.bytes());
        return data ? "(accepted)" : text(data.error());
    };
    EXPECT_EQ(refused_data(set(11, std::uint8_t{'2'})),
              "a data file without the header FH01: made by another version of ExecuTorch");
    EXPECT_EQ(refused_data(set(12, std::uint32_t{32})), "the data file's header has 32 bytes, at least 40 are needed");
    EXPECT_EQ(refused_data(set(16, ~std::uint64_t{0})), "offset and size of the data file's tables overflow");
    EXPECT_EQ(refused_data(set(40, std::uint64_t{1} << 40)),
              "cut short: segments take 1099511627776 bytes from 256 by the header, the file has 2176");
}

// Found by fuzzing: a table region of no bytes made the root offset look as if it lay inside.
TEST(DataFile, ARegionOfTablesWithoutBytesIsNotRead) {
    auto file = variant("flash.ptd");
    store_le(file.data(), std::uint32_t{0x40000000});
    store_le(file.data() + 16, std::uint64_t{0});
    store_le(file.data() + 24, std::uint64_t{0});
    const ExactBytes exact(file);
    EXPECT_EQ(text(DataFile::open(exact.bytes()).error()), "a FlatBuffer of 0 bytes");
}

}  // namespace
}  // namespace talpa::pte
