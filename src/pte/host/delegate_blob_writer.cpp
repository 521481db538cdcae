#include "pte/host/delegate_blob_writer.h"

#include <algorithm>

namespace talpa::pte::host {
namespace {

void append_u32(std::vector<std::uint8_t>& out, std::uint32_t v) {
    out.resize(out.size() + 4);
    store_le(out.data() + out.size() - 4, v);
}

Bytes bytes_of(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

void append_block(std::vector<std::uint8_t>& payload, std::string_view name, Bytes data, bool external) {
    const std::size_t at = payload.size();
    payload.resize(at + 32);
    std::ranges::copy(name.substr(0, 15), payload.begin() + static_cast<std::ptrdiff_t>(at));
    store_le(payload.data() + at + 16, static_cast<std::uint32_t>(data.size()));
    payload[at + 20] = external ? 1 : 0;
    payload.insert(payload.end(), data.begin(), data.end());
    while (payload.size() % 16 != 0) payload.push_back(0);
}

std::vector<std::uint8_t> write_io_table(const std::vector<IoRecordSpec>& records) {
    std::vector<std::uint8_t> table;
    append_u32(table, static_cast<std::uint32_t>(records.size()));
    for (const IoRecordSpec& r : records) {
        for (const std::int32_t d : r.shape) append_u32(table, static_cast<std::uint32_t>(d));
        for (const std::int32_t v : {r.element_size, r.offset, r.region})
            append_u32(table, static_cast<std::uint32_t>(v));
    }
    return table;
}

std::vector<std::uint8_t> write_command_data(std::uint32_t config, std::uint32_t id,
                                             std::span<const std::uint32_t> stream) {
    constexpr std::uint32_t kCop1 = 0x31504F43, kConfigure = 0x00100001, kNoOperation = 5, kStream = 2;
    std::vector<std::uint8_t> out;
    for (const std::uint32_t word : {kCop1, kConfigure, config, id, kNoOperation, kNoOperation, kNoOperation})
        append_u32(out, word);
    const auto length = static_cast<std::uint32_t>(stream.size());
    append_u32(out, (length & 0xFFFF) << 16 | (length >> 16 & 0xFF) << 8 | kStream);
    for (const std::uint32_t word : stream) append_u32(out, word);
    return out;
}

std::vector<std::uint8_t> write_delegate_blob(const DelegateBlobSpec& blob) {
    std::vector<std::uint8_t> payload, scratch;
    append_u32(scratch, blob.scratch_size);
    append_block(payload, "vela_bin_stream", {});
    const auto append = [&](std::string_view name, const std::vector<std::uint8_t>& data, const std::string& key) {
        append_block(payload, name, key.empty() ? Bytes(data) : bytes_of(key), !key.empty());
    };
    append("cmd_data", blob.command_data, blob.command_data_key);
    append("weight_data", blob.weights, blob.weights_key);
    append_block(payload, "scratch_size", scratch);
    append_block(payload, "inputs", write_io_table(blob.inputs));
    append_block(payload, "outputs", write_io_table(blob.outputs));
    append_block(payload, "vela_end_stream", {});
    return payload;
}

}  // namespace talpa::pte::host
