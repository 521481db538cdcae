#include "board/linux/elf_image.h"

#include <gtest/gtest.h>

#include <cstring>

#include "board/linux/address_map.h"

namespace talpa::board {
namespace {

// A minimal ELF32 for Arm with one PT_LOAD and two sections, put together field by field.
std::vector<std::uint8_t> small_elf() {
    std::vector<std::uint8_t> f(52 + 32 + 3 * 40 + 32 + 16, 0);
    std::memcpy(f.data(),
                "\x7f"
                "ELF\x01\x01\x01",
                7);
    store_le<std::uint16_t>(&f[16], 2);
    store_le<std::uint16_t>(&f[18], 40);  // EM_ARM
    store_le<std::uint32_t>(&f[24], 0x0FFE0471);
    store_le<std::uint32_t>(&f[28], 52);
    store_le<std::uint32_t>(&f[32], 84);
    store_le<std::uint16_t>(&f[42], 32);
    store_le<std::uint16_t>(&f[44], 1);
    store_le<std::uint16_t>(&f[46], 40);
    store_le<std::uint16_t>(&f[48], 3);
    store_le<std::uint16_t>(&f[50], 2);
    store_le<std::uint32_t>(&f[52], 1);  // PT_LOAD
    store_le<std::uint32_t>(&f[56], 236);
    store_le<std::uint32_t>(&f[60], 0x12340000);  // vaddr: not used
    store_le<std::uint32_t>(&f[64], 0x0FFE0000);
    store_le<std::uint32_t>(&f[68], 16);
    store_le<std::uint32_t>(&f[72], 64);
    std::memcpy(&f[204], "\0.resource_table\0.shstrtab\0", 27);
    store_le<std::uint32_t>(&f[84 + 40], 1);  // .resource_table
    store_le<std::uint32_t>(&f[84 + 44], 1);
    store_le<std::uint32_t>(&f[84 + 56], 236);
    store_le<std::uint32_t>(&f[84 + 60], 16);
    store_le<std::uint32_t>(&f[84 + 80], 17);  // .shstrtab
    store_le<std::uint32_t>(&f[84 + 84], 3);
    store_le<std::uint32_t>(&f[84 + 96], 204);
    store_le<std::uint32_t>(&f[84 + 100], 32);
    return f;
}

TEST(ElfImage, LoadsByPhysicalAddressAndFindsSectionsByName) {
    const auto file = small_elf();
    const auto image = ElfImage::open(file).value();
    ASSERT_EQ(image.segments().size(), 1u);
    EXPECT_EQ(image.segments()[0].physical_address, 0x0FFE0000u);
    EXPECT_EQ(image.segments()[0].memory_size, 64u);
    EXPECT_EQ(image.segments()[0].data.size(), 16u);
    ASSERT_NE(image.section(".resource_table"), nullptr);
    EXPECT_EQ(image.section(".resource_table")->data.size(), 16u);
    EXPECT_EQ(image.section(".interrupts"), nullptr);
    EXPECT_EQ(image.entry(), 0x0FFE0471u);
}

TEST(ElfImage, EveryTruncationIsAnErrorOrAWholeImage) {
    const auto file = small_elf();
    for (std::size_t size = 0; size < file.size(); ++size)
        EXPECT_FALSE(ElfImage::open(Bytes(file).first(size))) << size;
}

TEST(ElfImage, BinIsNoElf) {
    const std::vector<std::uint8_t> bin(4096, 0x20);
    EXPECT_NE(ElfImage::open(bin).error().message.find("not an ELF file"), std::string::npos);
}

TEST(ElfImage, AbsurdHeadersAreRefused) {
    for (const std::size_t field : {28u, 32u, 56u, 68u}) {
        auto file = small_elf();
        store_le<std::uint32_t>(&file[field], 0xFFFFFFF0);
        EXPECT_FALSE(ElfImage::open(file)) << field;
    }
    auto shrinking = small_elf();
    store_le<std::uint32_t>(&shrinking[72], 15);  // memsz below filesz
    EXPECT_FALSE(ElfImage::open(shrinking));
    auto no_segments = small_elf();
    store_le<std::uint16_t>(&no_segments[44], 0);
    EXPECT_FALSE(ElfImage::open(no_segments));
}

TEST(AddressMap, EndOfAWindowIsOutside) {
    EXPECT_EQ(device_to_system(0x0FFE0000, 0x1FFFF, {}), 0x201E0000u);
    EXPECT_FALSE(device_to_system(0x0FFE0000, 0x20000, {})) << "strictly less: a full code TCM is refused";
    EXPECT_EQ(device_to_system(0x20003000, 4, {}), 0x20203000u);
    EXPECT_EQ(device_to_system(0x30003000, 4, {}), 0x20203000u);
    EXPECT_FALSE(device_to_system(0x20003000, 0, {}));
    EXPECT_FALSE(device_to_system(0x20480000, 4, {})) << "OCRAM is not in the table";
    EXPECT_FALSE(device_to_system(0xA8000000, 4, {}));
    EXPECT_FALSE(device_to_system(UINT64_MAX - 2, 4, {}));
}

TEST(AddressMap, DdrOnlyInsideAMappedBlock) {
    EXPECT_FALSE(device_to_system(0xC0000000, 16, {}));
    const MappedBlock blocks[] = {{0xC0000000, 0x1000}};
    EXPECT_EQ(device_to_system(0xD0000010, 16, blocks), 0xC0000010u) << "the secure alias is the same memory";
    EXPECT_FALSE(device_to_system(0xC0000000, 0x1000, blocks));
}

}  // namespace
}  // namespace talpa::board
