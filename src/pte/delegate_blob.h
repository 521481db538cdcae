// The payload of an Ethos-U delegate ("vela_bin_stream"): its blocks and its tables of inputs and outputs. Everything
// is a view of the payload. The commands inside cmd_data are npu/cop.h's. (pte-format, sections 7.1 and 7.2; V25 to
// V29)
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/core/byte_reader.h"
#include "base/core/error.h"

namespace talpa::pte {

/// A block whose data is in the payload, or is found elsewhere under a key (since 1.5).
struct BlobBlock {
    Bytes data;             ///< the data, or the 64 characters of the key
    bool external = false;  ///< `data` is a key into named data
    [[nodiscard]] std::string_view key() const { return {reinterpret_cast<const char*>(data.data()), data.size()}; }
};

/// One row of the tables `inputs` and `outputs`, checked: entries > 0, element size 1, 2, 4 or 8, bytes without
/// overflow.
struct IoRecord {
    std::array<std::uint32_t, 6> shape{};  ///< padded with 1 on the left
    std::uint32_t element_size = 0;
    std::uint32_t offset = 0;  ///< in the region
    std::uint32_t region = 0;
    std::uint32_t size_bytes = 0;

    [[nodiscard]] std::uint32_t row_bytes() const { return shape[5] * element_size; }
    [[nodiscard]] std::uint32_t rows() const { return size_bytes / row_bytes(); }
};

/// The table `inputs` or `outputs`.
class IoTable {
  public:
    IoTable() = default;
    /// Errors name the table, the record and the field. Tables of 0.7 and before (4-D records) are refused by name.
    [[nodiscard]] static Result<IoTable> open(Bytes block, const char* name, std::uint32_t scratch_size);
    [[nodiscard]] std::uint32_t count() const { return count_; }
    [[nodiscard]] IoRecord operator[](std::uint32_t i) const;

  private:
    const std::uint8_t* records_ = nullptr;
    std::uint32_t count_ = 0;
};

struct DelegateBlob {
    BlobBlock command_data;
    BlobBlock weights;
    std::uint32_t scratch_size = 0;  ///< bytes of region 1
    IoTable inputs, outputs;
};

/// Walks the blocks. Errors (InvalidProgram, with offsets) for everything of V25 to V29; InvalidArgument when the
/// payload is not 16-aligned in memory; NotSupported for the payloads of 0.7 and before.
[[nodiscard]] Result<DelegateBlob> parse_delegate_blob(Bytes payload);

}  // namespace talpa::pte
