// The verifier, on tables built for the purpose and on real programs that are cut or changed. Names begin with the
// check of pte-format, section 9.
#include "pte/flatbuffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/host/file.h"
#include "base/host/testing.h"
#include "pte/file_for_test.h"
#include "pte/host/flatbuffer_builder.h"
#include "pte/program.h"

namespace talpa::pte {
namespace {

using host::flat_string;
using host::flat_tables;
using host::flat_vector;
using host::TableBuilder;
using testing::ExactBytes;
using ::testing::HasSubstr;
using testing::text;

/// A ContainerMetadata with two strings, broken by `change`.
template <typename Fn>
std::string refused(TableKind kind, const host::FlatRef& root, Fn&& change) {
    auto bytes = host::finish_flatbuffer(root, "ET12", 8);
    const Table table = verify(bytes, kind).value();
    change(bytes, table);
    const ExactBytes exact(bytes);
    const auto verified = verify(exact.bytes(), kind);
    return verified ? "(accepted)" : text(verified.error());
}

host::FlatRef two_strings() {
    return TableBuilder().child(0, flat_string("in")).child(1, flat_string("out")).ref();
}
std::uint32_t word(const std::vector<std::uint8_t>& b, std::uint32_t at) {
    return load_le<std::uint32_t>(b.data() + at);
}

using File = std::vector<std::uint8_t>&;

TEST(FlatBuffer, V05_OffsetsOutside) {
    EXPECT_EQ(refused(TableKind::ContainerMetadata, two_strings(), [](File, Table) {}), "(accepted)");
    EXPECT_THAT(refused(TableKind::ContainerMetadata, two_strings(),
                        [](File b, Table t) { store_le(b.data() + t.field(0), 0xFFFFFFF0U); }),
                HasSubstr("ContainerMetadata at 16: slot 0 points to offset"));
    EXPECT_THAT(refused(TableKind::ContainerMetadata, two_strings(),
                        [](File b, Table t) { store_le(b.data() + t.field(1), 0U); }),
                HasSubstr("slot 1 points to offset"))
        << "an offset of 0 leads nowhere";
    EXPECT_THAT(refused(TableKind::ContainerMetadata, two_strings(),
                        [](File b, Table t) { store_le(b.data() + t.field(1), 2U); }),
                HasSubstr("misaligned"));
}

// Texts, tables and vtables that are equal stand in the file once, behind all that refer to them; the reader follows.
TEST(FlatBuffer, WhatIsEqualIsWrittenOnce) {
    const auto pair = [] {
        return TableBuilder().child(0, flat_string("twice the same")).child(1, flat_string("another")).ref();
    };
    const auto plan = [&] { return TableBuilder().child(0, flat_string("twice the same")).child(1, pair()).ref(); };
    const auto size = [&](std::vector<host::FlatRef> plans) {
        const auto bytes =
            host::finish_flatbuffer(TableBuilder().child(1, flat_tables(std::move(plans))).ref(), "ET12", 8);
        const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        EXPECT_EQ(all.find("twice the same"), all.rfind("twice the same"));
        const auto root = verify(bytes, TableKind::Program);
        EXPECT_TRUE(root) << text(root.error());
        return bytes.size();
    };
    const std::size_t one = size({plan()}), three = size({plan(), plan(), plan()});
    EXPECT_LE(three, one + 16) << "two offsets more";
}

TEST(FlatBuffer, V05_VtablesOutside) {
    const auto vtable = [](std::int32_t back) {
        return refused(TableKind::ContainerMetadata, two_strings(),
                       [=](File b, Table t) { store_le(b.data() + t.position(), back); });
    };
    EXPECT_THAT(vtable(0x7FFFFFFF), HasSubstr("its vtable would be at"));
    EXPECT_THAT(vtable(-0x7FFFFFFF), HasSubstr("its vtable would be at"));
    EXPECT_THAT(vtable(3), HasSubstr("its vtable would be at"));
    const auto length = [](std::uint16_t n) {
        return refused(TableKind::ContainerMetadata, two_strings(),
                       [=](File b, Table t) { store_le(b.data() + t.position() - word(b, t.position()), n); });
    };
    EXPECT_THAT(length(2), HasSubstr("its vtable has a length of 2"));
    EXPECT_THAT(length(7), HasSubstr("its vtable has a length of 7"));
    EXPECT_THAT(length(0xFFF0), HasSubstr("its vtable has a length of 65520"));
    EXPECT_EQ(length(4), "(accepted)") << "all slots absent";
}

TEST(FlatBuffer, V05_VectorsAndStrings) {
    const auto count_of_string = [](std::uint32_t n) {
        return refused(TableKind::ContainerMetadata, two_strings(),
                       [=](File b, Table t) { store_le(b.data() + t.field(0) + word(b, t.field(0)), n); });
    };
    EXPECT_THAT(count_of_string(1), HasSubstr("does not end with a NUL"));
    EXPECT_THAT(count_of_string(0xFFFFFFFF), HasSubstr("the vector of slot 0 has 4294967295 elements"));
    const host::FlatRef longs = TableBuilder().child(0, flat_vector(std::vector<std::int64_t>{1, 2})).ref();
    const auto count_of_longs = [&](std::uint32_t n) {
        return refused(TableKind::IntList, longs,
                       [=](File b, Table t) { store_le(b.data() + t.field(0) + word(b, t.field(0)), n); });
    };
    EXPECT_EQ(count_of_longs(2), "(accepted)");
    EXPECT_THAT(count_of_longs(1 << 29), HasSubstr("the vector of slot 0 has 536870912 elements"))
        << "4 GiB: overflows 32 bits";
    EXPECT_THAT(refused(TableKind::IntList, longs,
                        [](File b, Table t) {
                            b.insert(b.end(), 16, 0);
                            store_le(b.data() + t.field(0), word(b, t.field(0)) + 4);
                        }),
                HasSubstr("which is misaligned"));
}

TEST(FlatBuffer, V06_TheInlineLengthOfAVtableIsNotUsed) {
    const host::FlatRef number = TableBuilder().stored(0, 1.5).ref();
    EXPECT_EQ(refused(TableKind::Double, number,
                      [](File b, Table t) {
                          store_le(b.data() + t.position() - word(b, t.position()) + 2, std::uint16_t{8});
                      }),
              "(accepted)");
}

TEST(FlatBuffer, V07_Unions) {
    const host::FlatRef value =
        TableBuilder().scalar<std::uint8_t>(0, 2).child(1, TableBuilder().scalar<std::int64_t>(0, 5).ref()).ref();
    const auto type = [&](std::uint8_t n) {
        return refused(TableKind::EValue, value, [=](File b, Table t) { b[t.field(0)] = n; });
    };
    EXPECT_EQ(type(2), "(accepted)");
    EXPECT_THAT(type(0), HasSubstr("has a value of type 0, which is none"));
    EXPECT_THAT(type(12), HasSubstr("has type 12, which no known schema has"));
    EXPECT_THAT(type(255), HasSubstr("has type 255"));
    EXPECT_THAT(refused(TableKind::EValue, value,
                        [](File b, Table t) {
                            store_le(b.data() + t.position() - word(b, t.position()) + 6, std::uint16_t{0});
                        }),
                HasSubstr("has type 2, but no value"));
}

TEST(FlatBuffer, UnknownSlotsAreIgnored) {
    const host::FlatRef more = TableBuilder().scalar<std::int64_t>(0, 5).scalar<std::int64_t>(40, 7).ref();
    EXPECT_EQ(refused(TableKind::Int, more, [](File, Table) {}), "(accepted)");
}

// A few bytes can describe a tree of any size when parents share their children: the walk must end.
TEST(FlatBuffer, TablesSharedWithoutEnd) {
    constexpr std::uint32_t kWide = 2000;
    std::vector<std::uint8_t> crafted(8);
    const auto put = [&](std::uint32_t v) {
        crafted.resize(crafted.size() + 4);
        store_le(crafted.data() + crafted.size() - 4, v);
    };
    // [vtable of a table with one slot n] table, vector of kWide offsets to the next level, and so on; the last is an
    // empty table.
    const unsigned slots[] = {slot::program::execution_plan, slot::plan::chains, slot::chain::instructions};
    for (const unsigned s : slots) {
        const std::uint32_t vtable_words = (4 + (s + 1) * 2 + 3) / 4;
        const std::size_t vtable = crafted.size();
        crafted.resize(vtable + vtable_words * std::size_t{4});
        store_le(crafted.data() + vtable, static_cast<std::uint16_t>(4 + (s + 1) * 2));
        store_le(crafted.data() + vtable + 4 + s * 2, std::uint16_t{4});
        if (s == slots[0]) store_le(crafted.data(), static_cast<std::uint32_t>(crafted.size()));
        put(vtable_words * 4);  // the table
        put(4);                 // its vector follows
        put(kWide);
        const unsigned next_slot = s == slots[0] ? slots[1] : slots[2];
        const std::uint32_t next_vtable = s == slots[2] ? 4 : (4 + (next_slot + 1) * 2 + 3) / 4 * 4;
        for (std::uint32_t i = 0; i < kWide; ++i) put((kWide - i) * 4 + next_vtable);
    }
    crafted.resize(crafted.size() + 4);
    store_le(crafted.data() + crafted.size() - 4, std::uint16_t{4});
    put(4);
    const auto verified = verify(crafted, TableKind::Program);
    ASSERT_FALSE(verified);
    EXPECT_THAT(text(verified.error()), HasSubstr("they are shared without end"));
}

// Offsets that lead back cannot be written (they are unsigned), so a cycle shows as an offset past the end.
TEST(FlatBuffer, CyclesInOffsets) {
    EXPECT_THAT(refused(TableKind::ContainerMetadata, two_strings(),
                        [](File b, Table t) { store_le(b.data() + t.field(0), t.position() - t.field(0)); }),
                HasSubstr("slot 0 points to offset 4294967312"));
}

// No prefix of a program is a program, and none leads to a read past its end (the sanitizers look at exact
// allocations).
TEST(Truncation, EveryPrefixIsRefusedOrComplete) {
    for (const char* name : {"pte_variants/two_seg.pte", "pte_variants/two_inline.pte", "pte_variants/cond.pte",
                             "pte_variants/many.pte", "pte_variants/mut_init.pte", "pte_variants/two_qio.pte"}) {
        const auto file = talpa::host::read_file(talpa::testing::golden_folder() / name).value();
        std::size_t accepted = 0;
        for (std::size_t size = 0; size < file.size(); size += 64) {
            const ExactBytes exact(Bytes(file).first(size));
            const auto program = Program::open(exact.bytes());
            if (!program) {
                EXPECT_FALSE(text(program.error()).empty());
                continue;
            }
            ++accepted;
            for (std::uint32_t i = 0; i < program->method(0).delegate_count(); ++i)
                EXPECT_FALSE(program->delegate_data(program->method(0).delegate(i))) << name << " at " << size;
        }
        EXPECT_EQ(accepted, 0u) << name;
    }
}

}  // namespace
}  // namespace talpa::pte
