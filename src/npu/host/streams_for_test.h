// For tests of this folder: the command streams inside .pte files, found by their block names alone, so that these
// tests do not depend on the .pte reader. (pte-format, section 7.1)
#pragma once

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/file.h"
#include "base/host/testing.h"
#include "npu/cop.h"

namespace talpa::npu::testing {

struct FoundStream {
    std::string name;                    ///< file name without its end, and the number of the delegate in it
    std::vector<std::uint32_t> payload;  ///< cmd_data, whole
    std::optional<std::uint32_t> scratch_size, weight_size;  ///< unknown where the payload is external

    [[nodiscard]] Bytes bytes() const {
        return {reinterpret_cast<const std::uint8_t*>(payload.data()), payload.size() * 4};
    }
    [[nodiscard]] Payload parsed() const { return parse_payload(bytes()).value(); }
};

inline std::vector<FoundStream> streams_in_file(const std::filesystem::path& path) {
    std::vector<FoundStream> found;
    const std::vector<std::uint8_t> file = host::read_file(path).value();
    const auto u32 = [&](std::size_t at) { return load_le<std::uint32_t>(file.data() + at); };
    std::vector<bool> taken(file.size());
    const auto take = [&](std::size_t at, std::size_t size) {
        FoundStream s;
        s.name = path.stem().string() + "." + std::to_string(found.size());
        s.payload.resize(size / 4);
        std::memcpy(s.payload.data(), file.data() + at, size / 4 * 4);
        taken[at] = true;
        return s;
    };
    for (std::size_t at = 0; at + 16 < file.size(); at += 16) {
        if (std::memcmp(file.data() + at, "vela_bin_stream", 16) != 0) continue;
        std::optional<FoundStream> stream;
        std::optional<std::uint32_t> scratch, weights;
        for (std::size_t block = at; block + 32 <= file.size();) {
            const std::string name(reinterpret_cast<const char*>(file.data() + block),
                                   strnlen(reinterpret_cast<const char*>(file.data() + block), 16));
            const std::size_t size = u32(block + 16);
            const bool external = file[block + 20] != 0;
            if (block + 32 + size > file.size() || name == "vela_end_stream") break;
            if (name == "cmd_data" && !external) stream = take(block + 32, size);
            if (name == "weight_data" && !external) weights = static_cast<std::uint32_t>(size);
            if (name == "scratch_size") scratch = u32(block + 32);
            block += 32 + (size + 15) / 16 * 16;
        }
        if (!stream) continue;
        stream->scratch_size = scratch;
        stream->weight_size = weights;
        found.push_back(std::move(*stream));
    }
    // Payloads that are kept outside the blocks begin with COP1 and a configuration action; their length is in the
    // stream action.
    for (std::size_t at = 0; at + 32 < file.size(); at += 16) {
        if (taken[at] || u32(at) != kCop1 || (u32(at + 4) & 0xFF) != 1) continue;
        std::size_t action = at + 16;
        while (action + 4 < file.size() && u32(action) == 5) action += 4;
        const std::size_t size = action + 4 - at + 4 * ((u32(action) >> 16) | ((u32(action) & 0xFF00) << 8));
        if ((u32(action) & 0xFF) != 2 || at + size > file.size()) continue;
        found.push_back(take(at, size));
    }
    return found;
}

/// All streams of the .pte files under a folder, in the order of their names.
inline std::vector<FoundStream> streams_under(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
        if (entry.path().extension() == ".pte") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::vector<FoundStream> all;
    for (const auto& file : files) {
        auto found = streams_in_file(file);
        std::move(found.begin(), found.end(), std::back_inserter(all));
    }
    return all;
}

/// Every stream that the repository carries and that is for a U55 or U65.
inline std::vector<FoundStream> golden_streams() {
    auto all = streams_under(talpa::testing::golden_folder());
    std::erase_if(all, [](const FoundStream& s) { return s.parsed().config >> 28 > 1; });
    return all;
}

}  // namespace talpa::npu::testing
