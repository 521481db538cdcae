#include "base/host/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace talpa::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A file with this header dictionary, as numpy.lib.format describes version 1.0: padded with spaces to a multiple
/// of 64.
template <typename T>
std::vector<std::uint8_t> npy(std::string header, const std::vector<T>& numbers) {
    header.resize(117, ' ');
    header += '\n';
    std::vector<std::uint8_t> file(10 + header.size() + numbers.size() * sizeof(T));
    std::memcpy(file.data(), "\x93NUMPY\1\0\x76\0", 10);
    std::memcpy(file.data() + 10, header.data(), header.size());
    if (!numbers.empty()) std::memcpy(file.data() + 10 + header.size(), numbers.data(), numbers.size() * sizeof(T));
    return file;
}

std::string why(const std::string& header, std::size_t bytes = 4) {
    const auto array = read_npy(npy(header, std::vector<std::uint8_t>(bytes)));
    return array ? "" : array.error().message;
}

// Byte for byte what NumPy 1.24's np.save(f, np.array([[1, -2, 3]], '<i2')) writes.
TEST(Npy, AFileOfNumPys) {
    const std::string text = std::string("\x93NUMPY\x01\x00v\x00", 10) +
                             "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3), }" + std::string(58, ' ') +
                             "\n" + std::string("\x01\x00\xFE\xFF\x03\x00", 6);
    const std::vector<std::uint8_t> file(text.begin(), text.end());
    ASSERT_EQ(file.size(), 134u);
    const auto array = read_npy(file);
    ASSERT_TRUE(array) << array.error().describe();
    EXPECT_EQ(array->type, NpyType::Int16);
    EXPECT_THAT(array->shape, ElementsAre(1, 3));
    EXPECT_THAT(to_float32(*array), ElementsAre(1, -2, 3));
    for (std::size_t cut = 0; cut < file.size(); ++cut) EXPECT_FALSE(read_npy(Bytes(file).first(cut))) << cut;
}

TEST(Npy, EachTypeAndShape) {
    const auto file = npy<double>("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", {0.5, -8});
    const auto floats = read_npy(file);
    ASSERT_TRUE(floats) << floats.error().describe();
    EXPECT_EQ(npy_type_name(floats->type), "float64");
    EXPECT_THAT(to_float32(*floats), ElementsAre(0.5F, -8));
    const auto one = npy<std::uint8_t>("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", {200});
    EXPECT_THAT(to_float32(read_npy(one).value()), ElementsAre(200)) << "an array without dimensions is one number";
    const auto none = npy<float>("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }", {});
    EXPECT_THAT(read_npy(none)->shape, ElementsAre(3, 0));
}

TEST(Npy, TheHeaderOfVersions2And3HasFourBytesOfLength) {
    for (const char version : {'\2', '\3'}) {
        auto file = npy<float>("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", {7});
        file[6] = static_cast<std::uint8_t>(version);
        file.insert(file.begin() + 10, {0, 0});
        ASSERT_TRUE(read_npy(file));
        EXPECT_THAT(to_float32(*read_npy(file)), ElementsAre(7));
        file[11] = 0xFF;
        EXPECT_FALSE(read_npy(file)) << "a length beyond the file";
    }
}

TEST(Npy, WhatCannotBeReadIsTold) {
    EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }"), HasSubstr("Fortran order"));
    EXPECT_THAT(why("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }"), HasSubstr("'>f4'"));
    EXPECT_THAT(why("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"), HasSubstr("type [('a'"))
        << "a structure is no float32 for having one inside";
    EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, }"), HasSubstr("no shape"));
    EXPECT_THAT(why("{'descr': '<f4', 'shape': (1,), }"), HasSubstr("without its order"));
    EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), HasSubstr("makes no sense"));
    EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (x,), }"), HasSubstr("makes no sense"));
    EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"), HasSubstr("as long as its shape"));
    EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 5), HasSubstr("as long as its shape"));
    EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 1), }"),
                HasSubstr("too large"));
    auto newer = npy<float>("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", {7});
    newer[6] = 4;
    EXPECT_THAT(read_npy(newer).error().message, HasSubstr("version 4"));
}

}  // namespace
}  // namespace talpa::host
