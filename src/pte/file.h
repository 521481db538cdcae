// The frame of .pte and .ptd files: identifier, extended header, FlatBuffer region and segments. (pte-format,
// sections 1.1 to 1.6; V1 to V4)
#pragma once

#include <cstdint>

#include "base/core/byte_reader.h"
#include "base/core/error.h"

namespace talpa::pte {

/// Where the parts of a file lie. All offsets are from its first byte.
struct FileFrame {
    bool has_header = false;              ///< an extended header is present
    std::uint32_t header_length = 0;      ///< as the header says; 0 without one
    std::uint64_t flatbuffer_size = 0;    ///< bytes from offset 0 that tables may lie in
    std::uint64_t segment_base = 0;       ///< 0: the file has no segments
    std::uint64_t segment_data_size = 0;  ///< 0: none, or not recorded (before 1.0)
};

inline constexpr std::size_t kMinFileSize = 64;
inline constexpr std::size_t kFileAlignment = 16;

/// The frame of a program, or an error that says what the bytes are instead: too short, unaligned, erased flash, a
/// bundled program (BP08), a data file (FT01), another schema generation (ETxx).
[[nodiscard]] Result<FileFrame> program_frame(Bytes file);
/// The frame of a data file (.ptd), likewise.
[[nodiscard]] Result<FileFrame> data_frame(Bytes file);

/// Bytes of a segment of `file`. An empty one needs no segment area (files without header list one). `index` is for the
/// message.
[[nodiscard]] Result<Bytes> segment_bytes(Bytes file, const FileFrame& frame, std::uint32_t index, std::uint64_t offset,
                                          std::uint64_t size);

}  // namespace talpa::pte
