#include "pte/file.h"

#include <string_view>

#include "base/core/checked_math.h"

namespace talpa::pte {
namespace {

constexpr std::uint32_t tag(const char (&text)[5]) {
    std::uint32_t word = 0;
    for (unsigned i = 4; i-- > 0;) word = word << 8 | static_cast<std::uint8_t>(text[i]);
    return word;
}

constexpr std::uint32_t kProgram = tag("ET12"), kBundled = tag("BP08"), kData = tag("FT01");

bool is_digit(std::uint8_t c) {
    return c >= '0' && c <= '9';
}

// Size, alignment and identifier (V1, V2). `wanted` is the identifier, `what` names the kind of file.
Result<void> check_start(Bytes file, std::uint32_t wanted, const char* what) {
    if (file.empty()) return fail(ErrorCode::InvalidProgram, "no bytes at all: {} has at least 64", what);
    if (file.size() >= 8) {
        const std::uint32_t word = load_le<std::uint32_t>(file.data() + 4);
        if (word != wanted) {
            const std::uint32_t root = load_le<std::uint32_t>(file.data());
            if (word == 0xFFFFFFFF && root == 0xFFFFFFFF)
                return fail(ErrorCode::InvalidProgram,
                            "erased flash (0xffffffff) and not {}: nothing has been written to this address", what);
            if (word == 0 && root == 0)
                return fail(ErrorCode::InvalidProgram, "zeros and not {}: nothing has been written here", what);
            if (word == kBundled)
                return fail(ErrorCode::NotSupported,
                            "a bundled program (BP08: a program wrapped with test inputs): export the plain .pte");
            if (word == kData)
                return fail(ErrorCode::InvalidProgram, "a data file (FT01, .ptd) and not {}: give it with --data",
                            what);
            if (word == kProgram) return fail(ErrorCode::InvalidProgram, "a program (ET12, .pte) and not {}", what);
            const std::string_view id(reinterpret_cast<const char*>(file.data()) + 4, 4);
            if (id.starts_with("ET"))
                return fail(ErrorCode::NotSupported, "a program of another schema generation ({}): only ET12 is known",
                            id);
            return fail(ErrorCode::InvalidProgram, "not {}: its identifier is {} ('{}'), not '{}'", what, hex(word), id,
                        wanted == kProgram ? "ET12" : "FT01");
        }
    }
    if (file.size() < kMinFileSize)
        return fail(ErrorCode::InvalidProgram, "cut short: {} has at least 64 bytes, these are {}", what, file.size());
    const auto address = reinterpret_cast<std::uintptr_t>(file.data());
    if (address % kFileAlignment != 0)
        return fail(ErrorCode::InvalidArgument, "{} must lie at a multiple of 16, this one is at {}", what,
                    hex(address));
    return {};
}

// Sizes and places of the two regions (V3).
Result<FileFrame> check_regions(Bytes file, const FileFrame& frame) {
    if (frame.flatbuffer_size > file.size())
        return fail(ErrorCode::InvalidProgram, "cut short: the tables take {} bytes by the header, the file has {}",
                    frame.flatbuffer_size, file.size());
    if (frame.segment_base == 0) {
        if (frame.segment_data_size != 0)
            return fail(ErrorCode::InvalidProgram, "the header has {} bytes of segments at no base",
                        frame.segment_data_size);
        return frame;
    }
    if (frame.segment_base < frame.flatbuffer_size)
        return fail(ErrorCode::InvalidProgram, "the segments would begin at {}, inside the {} bytes of tables",
                    frame.segment_base, frame.flatbuffer_size);
    if (!range_inside(frame.segment_base, frame.segment_data_size, file.size()))
        return fail(ErrorCode::InvalidProgram,
                    "cut short: segments take {} bytes from {} by the header, the file has {}", frame.segment_data_size,
                    frame.segment_base, file.size());
    return frame;
}

}  // namespace

Result<FileFrame> program_frame(Bytes file) {
    TRY(check_start(file, kProgram, "an ExecuTorch program"));
    FileFrame frame;
    frame.flatbuffer_size = file.size();
    const std::uint8_t* const p = file.data();
    if (p[8] != 'e' || p[9] != 'h' || !is_digit(p[10]) || !is_digit(p[11])) return frame;
    if (p[10] != '0' || p[11] != '0')
        return fail(ErrorCode::NotSupported, "its extended header is of another generation ({}), only eh00 is known",
                    std::string_view(reinterpret_cast<const char*>(p) + 8, 4));
    frame.has_header = true;
    frame.header_length = load_le<std::uint32_t>(p + 12);
    if (frame.header_length < 24)
        return fail(ErrorCode::InvalidProgram, "its extended header has {} bytes, at least 24 are needed",
                    frame.header_length);
    frame.flatbuffer_size = load_le<std::uint64_t>(p + 16);
    frame.segment_base = load_le<std::uint64_t>(p + 24);
    if (frame.header_length >= 32) frame.segment_data_size = load_le<std::uint64_t>(p + 32);
    return check_regions(file, frame);
}

Result<FileFrame> data_frame(Bytes file) {
    TRY(check_start(file, kData, "an ExecuTorch data file"));
    const std::uint8_t* const p = file.data();
    if (std::string_view(reinterpret_cast<const char*>(p) + 8, 4) != "FH01")
        return fail(ErrorCode::NotSupported,
                    "a data file without the header FH01: made by another version of ExecuTorch");
    FileFrame frame;
    frame.has_header = true;
    frame.header_length = load_le<std::uint32_t>(p + 12);
    if (frame.header_length < 40)
        return fail(ErrorCode::InvalidProgram, "the data file's header has {} bytes, at least 40 are needed",
                    frame.header_length);
    const auto end = checked_add(load_le<std::uint64_t>(p + 16), load_le<std::uint64_t>(p + 24));
    if (!end) return fail(ErrorCode::InvalidProgram, "offset and size of the data file's tables overflow");
    frame.flatbuffer_size = *end;
    frame.segment_base = load_le<std::uint64_t>(p + 32);
    frame.segment_data_size = load_le<std::uint64_t>(p + 40);
    return check_regions(file, frame);
}

Result<Bytes> segment_bytes(Bytes file, const FileFrame& frame, std::uint32_t index, std::uint64_t offset,
                            std::uint64_t size) {
    if (size == 0) return Bytes();
    if (frame.segment_base == 0)
        return fail(ErrorCode::InvalidProgram, "segment {} has {} bytes, but the file has no segment area", index,
                    size);
    const std::uint64_t room = file.size() - frame.segment_base;  // the frame's check: base <= size
    if (!range_inside(offset, size, room))
        return fail(ErrorCode::InvalidProgram, "segment {} takes {} bytes from {}, the segment area has {}", index,
                    size, offset, room);
    return file.subspan(static_cast<std::size_t>(frame.segment_base + offset), static_cast<std::size_t>(size));
}

}  // namespace talpa::pte
