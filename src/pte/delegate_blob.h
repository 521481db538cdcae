// The payload of an Ethos-U delegate ("vela_bin_stream"): its blocks, its tables of inputs and outputs, and the command
// container inside. Everything is a view of the payload. (pte-format, sections 7.1, 7.2 and 7.4; V25 to V29, V31)
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

/// The container around the NPU's commands.
struct CommandData {
    std::uint32_t config = 0;               ///< CONFIG that the stream is compiled for
    std::uint32_t id = 0;                   ///< ID likewise
    std::span<const std::uint32_t> stream;  ///< the NPU command words, 16-aligned
    std::uint32_t stream_offset = 0;        ///< bytes from the start of cmd_data
};

/// COP1 containers; COP2 and the reserved actions are refused by name.
[[nodiscard]] Result<CommandData> parse_command_data(Bytes data);

/// "ethos-u65-256" for a CONFIG word; "an unknown NPU" for products that nobody has heard of.
[[nodiscard]] std::string_view accelerator_name(std::uint32_t config);

}  // namespace talpa::pte
