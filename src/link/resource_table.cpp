#include "link/resource_table.h"

namespace talpa::link {
namespace {

constexpr std::uint32_t kCarveoutBytes = 0x38, kTraceBytes = 0x30, kVdevBytes = 28, kVringBytes = 20;

std::unexpected<Error> truncated(std::uint32_t index) {
    return fail(ErrorCode::InvalidProgram, "rsc table is truncated: entry {} crosses its end", index);
}

}  // namespace

Result<std::uint32_t> check_resource_table(Bytes table) {
    if (table.size() < sizeof(ResourceTableHeader))
        return fail(ErrorCode::InvalidProgram, "header-less resource table: {} bytes", table.size());
    const auto version = load_le<std::uint32_t>(table.data());
    if (version != 1) return fail(ErrorCode::InvalidProgram, "unsupported fw ver: {}", version);
    const auto count = load_le<std::uint32_t>(table.data() + 4);
    if (load_le<std::uint64_t>(table.data() + 8) != 0)
        return fail(ErrorCode::InvalidProgram, "non zero reserved bytes in the resource table");
    if (count > (table.size() - sizeof(ResourceTableHeader)) / 4)
        return fail(ErrorCode::InvalidProgram, "resource table incomplete: {} entries in {} bytes", count,
                    table.size());
    for (std::uint32_t i = 0; i < count; ++i) TRY(resource_entry(table, i));
    return count;
}

Result<ResourceEntry> resource_entry(Bytes table, std::uint32_t index) {
    const ByteReader reader(table);
    TRY_ASSIGN(const auto offset, reader.at<std::uint32_t>(sizeof(ResourceTableHeader) + std::uint64_t{index} * 4));
    if (!range_inside(offset, 4, table.size())) return truncated(index);
    const Bytes bytes = table.subspan(offset);
    const auto type = load_le<std::uint32_t>(bytes.data());
    std::uint64_t need = 4;
    switch (static_cast<ResourceType>(type)) {
        case ResourceType::Carveout:
        case ResourceType::Devmem:
            need = kCarveoutBytes;
            break;
        case ResourceType::Trace:
            need = kTraceBytes;
            break;
        case ResourceType::Vdev:
            if (bytes.size() < kVdevBytes) return truncated(index);
            need = kVdevBytes + std::uint64_t{bytes[25]} * kVringBytes + load_le<std::uint32_t>(bytes.data() + 20);
            break;
        default:
            break;  // unknown types are skipped, as Linux does
    }
    if (bytes.size() < need) return truncated(index);
    return ResourceEntry{type, offset, bytes};
}

}  // namespace talpa::link
