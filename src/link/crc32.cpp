#include "link/crc32.h"

#include <array>

namespace talpa::link {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0xEDB88320u : 0);
        table[i] = c;
    }
    return table;
}
constexpr auto kTable = make_table();

}  // namespace

std::uint32_t crc32(Bytes bytes, std::uint32_t so_far) {
    std::uint32_t c = ~so_far;
    for (const std::uint8_t b : bytes) c = kTable[(c ^ b) & 0xFF] ^ (c >> 8);
    return ~c;
}

}  // namespace talpa::link
