// What a command stream needs before it may run: how far it reads and writes in every region. The size of the fast
// scratch is in no file, so the executor takes it from here; the same pass refuses streams that are malformed or
// address nonsense. Freestanding. (pte-format, section 7.5)
#pragma once

#include <array>
#include <cstdint>

#include "base/core/error.h"
#include "npu/decoder.h"
#include "npu/operation.h"

namespace talpa::npu {

/// An operation and where its command stands in the stream.
struct OpPlace {
    std::uint32_t offset_bytes = 0;
    OpKind kind = OpKind::Stop;
};

/// Ends are one past the highest byte, from the region's base: the size that the region must at least have.
struct RegionUse {
    std::uint64_t read_end = 0, write_end = 0;
    OpPlace furthest;     ///< the first operation that reaches to `size()`
    OpPlace first_write;  ///< where `written`
    bool read = false, written = false;

    [[nodiscard]] std::uint64_t size() const { return read_end > write_end ? read_end : write_end; }
    [[nodiscard]] bool used() const { return read || written; }
};

struct ScanResult {
    std::array<RegionUse, kRegionCount> regions{};
    std::array<std::uint32_t, kOpKindCount> counts{};  ///< operations, by kind
    std::uint32_t size_bytes = 0;                      ///< of the stream, STOP included
    std::uint8_t cores = 1;                            ///< most that an operation asks for

    [[nodiscard]] std::uint32_t count(OpKind kind) const { return counts[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] std::uint32_t kernels() const;
    [[nodiscard]] std::uint32_t operations() const;
};

/// Walks the stream to its STOP. Errors name the stream offset: CommandStream as the decoder; OutOfBounds for an access
/// below the start of a region or beyond 40 bits.
[[nodiscard]] Result<ScanResult> scan(Words words);

}  // namespace talpa::npu
