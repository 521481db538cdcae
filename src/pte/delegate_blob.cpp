#include "pte/delegate_blob.h"

#include <string_view>

#include "base/core/checked_math.h"

namespace talpa::pte {
namespace {

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kNameBytes = 16;
constexpr std::size_t kAlignment = 16;
constexpr std::size_t kKeyBytes = 64;
constexpr std::uint32_t kRecordWords = 9;
constexpr std::uint32_t kOldRecordWords = 7;  // 0.7 and before: 4-D shapes

struct RawBlock {
    std::string_view name;
    BlobBlock block;
    std::size_t end = 0;  // offset of the next header
};

// The block at `offset` (V25, V27). The caller checked that a header's 32 bytes are there.
Result<RawBlock> read_block(Bytes payload, std::size_t offset) {
    const std::uint8_t* const p = payload.data() + offset;
    RawBlock raw;
    std::size_t length = 0;
    while (length < kNameBytes && p[length] != 0) ++length;
    raw.name = {reinterpret_cast<const char*>(p), length};
    if (length == kNameBytes)
        return fail(ErrorCode::InvalidProgram, "the delegate payload's block at {} has a name without an end: '{}'",
                    offset, raw.name);
    const std::uint32_t size = load_le<std::uint32_t>(p + kNameBytes);
    const std::size_t room = payload.size() - offset - kHeaderBytes;
    if (round_up(std::uint64_t{size}, std::uint64_t{kAlignment}) > room)
        return fail(ErrorCode::InvalidProgram, "block '{}' at {} of the delegate payload has {} bytes, {} are left",
                    raw.name, offset, size, room);
    raw.block.data = payload.subspan(offset + kHeaderBytes, size);
    if (p[20] > 1)
        return fail(ErrorCode::InvalidProgram, "block '{}' at {} of the delegate payload has the external flag {}",
                    raw.name, offset, p[20]);
    raw.block.external = p[20] == 1;
    if (raw.block.external && size != kKeyBytes)
        return fail(ErrorCode::InvalidProgram, "the external key of block '{}' has {} characters, not 64", raw.name,
                    size);
    raw.end = offset + kHeaderBytes + round_up<std::size_t>(size, kAlignment);
    return raw;
}

enum BlockId : unsigned { kCommands, kWeights, kScratchSize, kInputs, kOutputs, kBlockCount };
constexpr const char* kBlockNames[kBlockCount] = {"cmd_data", "weight_data", "scratch_size", "inputs", "outputs"};

struct Blocks {
    std::array<BlobBlock, kBlockCount> block;
    std::array<bool, kBlockCount> present{};
};

// All blocks between the first and the last (V25, V26).
Result<Blocks> walk(Bytes payload) {
    Blocks blocks;
    std::size_t offset = 0;
    for (bool first = true;; first = false) {
        if (payload.size() - offset < kHeaderBytes)
            return fail(ErrorCode::InvalidProgram,
                        "the delegate payload ends at {} without its last block, vela_end_stream", offset);
        TRY_ASSIGN(const RawBlock raw, read_block(payload, offset));
        if (first != (raw.name == "vela_bin_stream"))
            return fail(ErrorCode::InvalidProgram,
                        "block '{}' at {} of the delegate payload: vela_bin_stream must come first, and once", raw.name,
                        offset);
        const bool last = raw.name == "vela_end_stream";
        if ((first || last) && !raw.block.data.empty())
            return fail(ErrorCode::InvalidProgram, "block '{}' at {} of the delegate payload must be empty", raw.name,
                        offset);
        offset = raw.end;
        if (first) continue;
        if (last) break;
        if (raw.name == "scratch_data")
            return fail(ErrorCode::NotSupported,
                        "the delegate payload has the layout of ExecuTorch 0.6 and before (scratch_data): export again "
                        "with 1.2 or later");
        unsigned id = 0;
        while (id < kBlockCount && raw.name != kBlockNames[id]) ++id;
        if (id == kBlockCount)
            return fail(ErrorCode::InvalidProgram, "the delegate payload has an unknown block '{}'", raw.name);
        if (blocks.present[id])
            return fail(ErrorCode::InvalidProgram, "the delegate payload has block '{}' twice", raw.name);
        if (raw.block.external && id != kCommands && id != kWeights)
            return fail(ErrorCode::InvalidProgram, "block '{}' of the delegate payload cannot be external", raw.name);
        blocks.present[id] = true;
        blocks.block[id] = raw.block;
    }
    if (offset != payload.size())
        return fail(ErrorCode::InvalidProgram, "vela_end_stream ends at {} of a delegate payload of {} bytes", offset,
                    payload.size());
    for (unsigned id = 0; id < kBlockCount; ++id)
        if (!blocks.present[id])
            return fail(ErrorCode::InvalidProgram, "the delegate payload has no block '{}'", kBlockNames[id]);
    return blocks;
}

// V29 for one record. Bytes stay below 2^31, so 32-bit arithmetic elsewhere is safe.
Result<void> check_record(const std::uint8_t* record, const char* table, std::uint32_t index,
                          std::uint32_t scratch_size) {
    const auto word = [&](unsigned i) { return load_le<std::int32_t>(record + i * 4); };
    std::uint64_t bytes = 1;
    for (unsigned i = 0; i < 7; ++i) {
        const std::int32_t v = word(i);
        const bool good = i < 6 ? v > 0 : v == 1 || v == 2 || v == 4 || v == 8;
        if (!good)
            return (fail)(ErrorCode::InvalidProgram,
                          i < 6 ? TALPA_SENTENCE("record {} of the delegate's {}: dimension {} is {}")
                                : TALPA_SENTENCE("record {} of the delegate's {}: element size (word {}) is {}"),
                          index, table, i, v);
        bytes *= static_cast<std::uint64_t>(v);
        if (bytes > INT32_MAX)
            return fail(ErrorCode::InvalidProgram, "record {} of the delegate's {} has more than 2^31 bytes", index,
                        table);
    }
    const std::int32_t offset = word(7), region = word(8);
    if (region == 3 || region == 4)
        return fail(ErrorCode::NotSupported,
                    "record {} of the delegate's {} has region {}: separate I/O regions (COP2) are not supported",
                    index, table, region);
    if (region != 1)
        return fail(ErrorCode::InvalidProgram,
                    "record {} of the delegate's {} has region {}, only the scratch (1) is possible", index, table,
                    region);
    if (offset < 0 || !range_inside(static_cast<std::uint32_t>(offset), bytes, scratch_size))
        return fail(ErrorCode::InvalidProgram,
                    "record {} of the delegate's {} takes {} bytes from {} of the scratch, which has {}", index, table,
                    bytes, offset, scratch_size);
    return {};
}

}  // namespace

Result<IoTable> IoTable::open(Bytes block, const char* name, std::uint32_t scratch_size) {
    if (block.size() < 4)
        return fail(ErrorCode::InvalidProgram, "the delegate's table {} has {} bytes", name, block.size());
    const std::int32_t count = load_le<std::int32_t>(block.data());
    const std::uint64_t rest = block.size() - 4;
    if (count < 0) return fail(ErrorCode::InvalidProgram, "the delegate's table {} has {} records", name, count);
    const auto records = static_cast<std::uint64_t>(count);
    if (count > 0 && rest == records * kOldRecordWords * 4)
        return fail(
            ErrorCode::NotSupported,
            "the delegate's table {} has the 4-D records of ExecuTorch 0.7 and before: export again with 1.2 or later",
            name);
    if (rest != records * kRecordWords * 4)
        return fail(ErrorCode::InvalidProgram, "the delegate's table {} has {} records and {} bytes, {} are needed",
                    name, count, block.size(), 4 + records * kRecordWords * 4);
    IoTable table;
    table.records_ = block.data() + 4;
    table.count_ = static_cast<std::uint32_t>(count);
    for (std::uint32_t i = 0; i < table.count_; ++i)
        TRY(check_record(table.records_ + i * kRecordWords * 4, name, i, scratch_size));
    return table;
}

IoRecord IoTable::operator[](std::uint32_t i) const {
    const std::uint8_t* const record = records_ + i * kRecordWords * 4;
    const auto word = [&](unsigned w) { return load_le<std::uint32_t>(record + w * 4); };
    IoRecord r;
    r.element_size = word(6);
    r.size_bytes = r.element_size;
    for (unsigned d = 0; d < 6; ++d) {
        r.shape[d] = word(d);
        r.size_bytes *= r.shape[d];
    }
    r.offset = word(7);
    r.region = word(8);
    return r;
}

Result<DelegateBlob> parse_delegate_blob(Bytes payload) {
    const auto address = reinterpret_cast<std::uintptr_t>(payload.data());
    if (address % kAlignment != 0)
        return fail(ErrorCode::InvalidArgument, "the delegate payload must lie at a multiple of 16, it is at {}",
                    hex(address));
    if (payload.size() % kAlignment != 0)
        return fail(ErrorCode::InvalidProgram,
                    "the delegate payload has {} bytes, not a multiple of 16: it is cut short or no vela_bin_stream",
                    payload.size());
    TRY_ASSIGN(const Blocks blocks, walk(payload));
    DelegateBlob blob;
    blob.command_data = blocks.block[kCommands];
    blob.weights = blocks.block[kWeights];
    const Bytes scratch = blocks.block[kScratchSize].data;
    if (scratch.size() != 4)
        return fail(ErrorCode::InvalidProgram, "the delegate's block scratch_size has {} bytes, not 4", scratch.size());
    blob.scratch_size = load_le<std::uint32_t>(scratch.data());
    if (blob.scratch_size > INT32_MAX)
        return fail(ErrorCode::InvalidProgram, "the delegate asks for {} bytes of scratch, the limit is 2^31",
                    blob.scratch_size);
    TRY_ASSIGN(blob.inputs, IoTable::open(blocks.block[kInputs].data, "inputs", blob.scratch_size));
    TRY_ASSIGN(blob.outputs, IoTable::open(blocks.block[kOutputs].data, "outputs", blob.scratch_size));
    return blob;
}

}  // namespace talpa::pte
