// For tests only: makes zip archives, sound ones and broken ones.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace talpa::compiler::import {

struct EntryForTest {
    std::string name;
    std::string data;
    std::uint16_t method = 0;
    std::uint32_t claimed_bytes = 0;  ///< uncompressed size to write instead of the true one; 0: the true one
};

inline std::vector<std::uint8_t> zip_for_test(const std::vector<EntryForTest>& entries) {
    std::string out, directory;
    const auto put = [](std::string& to, std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(value >> (8 * i)));
    };
    for (const auto& e : entries) {
        const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(e.data.data()), e.data.size());
        const auto size = e.claimed_bytes != 0 ? e.claimed_bytes : static_cast<std::uint32_t>(e.data.size());
        const auto offset = out.size();
        const auto common = [&](std::string& to) {
            put(to, 20, 2);
            put(to, 0, 2);
            put(to, e.method, 2);
            put(to, 0, 4);
            put(to, crc, 4);
            put(to, e.data.size(), 4);
            put(to, size, 4);
            put(to, e.name.size(), 2);
            put(to, 0, 2);
        };
        put(out, 0x04034B50, 4);
        common(out);
        out += e.name + e.data;
        put(directory, 0x02014B50, 4);
        put(directory, 20, 2);
        common(directory);
        put(directory, 0, 2);
        put(directory, 0, 2);
        put(directory, 0, 2);
        put(directory, 0, 4);
        put(directory, offset, 4);
        directory += e.name;
    }
    const auto start = out.size();
    out += directory;
    put(out, 0x06054B50, 4);
    put(out, 0, 4);
    put(out, entries.size(), 2);
    put(out, entries.size(), 2);
    put(out, directory.size(), 4);
    put(out, start, 4);
    put(out, 0, 2);
    return {out.begin(), out.end()};
}

}  // namespace talpa::compiler::import
