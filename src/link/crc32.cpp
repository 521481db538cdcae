#include "link/crc32.h"

#include <array>

namespace talpa::link {
namespace {

using Table = std::array<std::uint32_t, 256>;

Table make_table() {
    Table table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0xEDB88320u : 0);
        table[i] = c;
    }
    return table;
}

// In RAM, made at the first use: the M33 has more of that than of memory for code.
const Table& table() {
    static const Table made = make_table();
    return made;
}

}  // namespace

std::uint32_t crc32(Bytes bytes, std::uint32_t so_far) {
    const Table& of = table();
    std::uint32_t c = ~so_far;
    const std::uint8_t* p = bytes.data();
    const std::uint8_t* const end = p + bytes.size();
    const auto one = [&] { c = of[c & 0xFF] ^ (c >> 8); };
    while (p != end) {
        // By words where they lie so: the M33 has no cache, and each access to DDR takes its time.
        if (reinterpret_cast<std::uintptr_t>(p) % 4 == 0 && end - p >= 4) {
            c ^= load_le<std::uint32_t>(static_cast<const std::uint8_t*>(__builtin_assume_aligned(p, 4)));
            p += 4;
            for (int i = 0; i < 4; ++i) one();
        } else {
            c ^= *p++;
            one();
        }
    }
    return ~c;
}

}  // namespace talpa::link
