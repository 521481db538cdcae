#include "classifier/feature_input.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace talpa::classifier {
namespace {

using runtime::ScalarType;
using runtime::host::PortInfo;

/// What np.save writes (NumPy's format version 1.0).
template <typename T>
std::vector<std::uint8_t> npy(const char* type, const std::string& shape, std::vector<T> numbers) {
    std::string header = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize(117, ' ');
    header += '\n';
    std::vector<std::uint8_t> file(10 + header.size() + numbers.size() * sizeof(T));
    std::memcpy(file.data(), "\x93NUMPY\1\0\x76\0", 10);
    std::memcpy(file.data() + 10, header.data(), header.size());
    std::memcpy(file.data() + 10 + header.size(), numbers.data(), numbers.size() * sizeof(T));
    return file;
}

PortInfo port_of(ScalarType type, std::vector<std::int32_t> sizes, std::vector<std::uint8_t> order) {
    PortInfo port;
    port.type = type;
    port.sizes = std::move(sizes);
    port.dim_order = std::move(order);
    port.size_bytes = scalar_size(type);
    for (const std::int32_t n : port.sizes) port.size_bytes *= static_cast<std::size_t>(n);
    return port;
}

TEST(Features, AnArrayOfAnyShapeWithTheRightCountIsTheInput) {
    const PortInfo port = port_of(ScalarType::Float32, {1, 1, 2, 2}, {0, 1, 2, 3});
    const std::vector<float> numbers{1, -2, 3.5F, 0};
    const auto made = features(npy<float>("<f4", "(2, 2)", numbers), port);
    ASSERT_TRUE(made) << made.error().describe();
    ASSERT_EQ(made->size(), 16u);
    EXPECT_EQ(std::memcmp(made->data(), numbers.data(), 16), 0);
    EXPECT_FALSE(features(npy<float>("<f4", "(3,)", {1, 2, 3}), port));
}

TEST(Features, AnArrayOfAnotherTypeOrOrderIsRefused) {
    const PortInfo port = port_of(ScalarType::Int8, {1, 4}, {0, 1});
    const auto same = features(npy<std::int8_t>("|i1", "(4,)", {0, 1, -128, 127}), port);
    ASSERT_TRUE(same) << same.error().describe();
    EXPECT_EQ(*same, (std::vector<std::uint8_t>{0, 1, 0x80, 0x7F}));
    const auto floats = features(npy<float>("<f4", "(4,)", {0, 1, 2, 3}), port);
    ASSERT_FALSE(floats);
    EXPECT_NE(floats.error().message.find("not the input's int8"), std::string::npos) << floats.error().message;
    const auto whole = npy<std::int8_t>("|i1", "(4,)", {0, 1, 2, 3});
    for (std::size_t cut = 6; cut < whole.size(); ++cut) EXPECT_FALSE(features(Bytes(whole).first(cut), port)) << cut;
}

TEST(Features, RawBytesAreReorderedIntoTheStoredOrder) {
    const PortInfo port = port_of(ScalarType::UInt8, {1, 2, 1, 2}, {0, 2, 3, 1});  // channels last
    const std::vector<std::uint8_t> logical{1, 2, 3, 4};
    EXPECT_TRUE(is_features(logical, port));
    EXPECT_EQ(features(logical, port).value(), (std::vector<std::uint8_t>{1, 3, 2, 4}));
    EXPECT_FALSE(is_features(std::vector<std::uint8_t>{1, 2, 3}, port));
    EXPECT_FALSE(features(std::vector<std::uint8_t>{1, 2, 3}, port));
}

TEST(Features, APictureOfTheInputsSizeIsAPicture) {
    std::vector<std::uint8_t> bmp(54 + 4);
    bmp[0] = 'B', bmp[1] = 'M';
    EXPECT_FALSE(is_features(bmp, port_of(ScalarType::UInt8, {1, 58}, {0, 1})));
}

}  // namespace
}  // namespace talpa::classifier
