// Writes the payload of an Ethos-U delegate ("vela_bin_stream"). (pte-format, sections 7.1, 7.2 and 7.4)
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/byte_reader.h"

namespace talpa::pte::host {

struct IoRecordSpec {
    std::array<std::int32_t, 6> shape{1, 1, 1, 1, 1, 1};
    std::int32_t element_size = 1;
    std::int32_t offset = 0;  ///< in the scratch
    std::int32_t region = 1;
};

struct DelegateBlobSpec {
    std::vector<std::uint8_t> command_data;  ///< a COP1 container: `write_command_data`
    std::vector<std::uint8_t> weights;
    std::uint32_t scratch_size = 0;
    std::vector<IoRecordSpec> inputs, outputs;
    /// 64-character keys; when given the block holds the key, and the data belongs into named data.
    std::string command_data_key, weights_key;
};

[[nodiscard]] std::vector<std::uint8_t> write_delegate_blob(const DelegateBlobSpec& blob);

/// One block: header, data, zeros up to a multiple of 16.
void append_block(std::vector<std::uint8_t>& payload, std::string_view name, Bytes data, bool external = false);

/// A COP1 container: configuration, no-operations up to a 16-aligned stream, the stream.
[[nodiscard]] std::vector<std::uint8_t> write_command_data(std::uint32_t config, std::uint32_t id,
                                                           std::span<const std::uint32_t> stream);

/// The table `inputs` or `outputs`.
[[nodiscard]] std::vector<std::uint8_t> write_io_table(const std::vector<IoRecordSpec>& records);

}  // namespace talpa::pte::host
