#include "board/linux/coredump.h"

#include <vector>

namespace talpa::board {
namespace {

constexpr std::size_t kHeaderBytes = 52, kProgramHeaderBytes = 32;

void put(std::string& out, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

}  // namespace

std::string make_coredump(std::span<const DumpSegment> segments, SystemMemory& memory) {
    std::string out(
        "\x7f"
        "ELF\x01\x01\x01",
        7);  // 32 bits, little-endian, version 1
    out.resize(16);
    put(out, 4, 2);  // ET_CORE
    put(out, 0, 2);  // EM_NONE: Linux does not know the processor
    put(out, 1, 4);
    put(out, 0, 4);             // entry
    put(out, kHeaderBytes, 4);  // program headers
    put(out, 0, 4);             // no section headers
    put(out, 0, 4);
    put(out, kHeaderBytes, 2);
    put(out, kProgramHeaderBytes, 2);
    put(out, segments.size(), 2);
    for (int i = 0; i < 3; ++i) put(out, 0, 2);

    std::size_t offset = kHeaderBytes + segments.size() * kProgramHeaderBytes;
    std::vector<const std::uint8_t*> bytes;
    for (const DumpSegment& segment : segments) {
        const std::uint8_t* const at = memory.at(segment.system, segment.size);
        const std::uint64_t size = at != nullptr ? segment.size : 0;
        bytes.push_back(at);
        put(out, 1, 4);  // PT_LOAD
        put(out, offset, 4);
        put(out, segment.address, 4);
        put(out, segment.address, 4);
        put(out, size, 4);
        put(out, segment.size, 4);
        put(out, 7, 4);  // rwx
        put(out, 0, 4);
        offset += size;
    }
    for (std::size_t i = 0; i < segments.size(); ++i)
        if (bytes[i] != nullptr) out.append(reinterpret_cast<const char*>(bytes[i]), segments[i].size);
    return out;
}

}  // namespace talpa::board
