#include "pte/data_file.h"

namespace talpa::pte {

Result<DataFile> DataFile::open(Bytes file) {
    DataFile data;
    data.file_ = file;
    TRY_ASSIGN(data.frame_, data_frame(file));
    const Bytes tables = file.first(static_cast<std::size_t>(data.frame_.flatbuffer_size));
    // 0.5 and 0.6 have more fields in the root, and other things in slots 1 and 2: those must not be read as today's.
    const std::uint32_t root = load_le<std::uint32_t>(tables.data());
    if (tables.size() >= 8 && root % 4 == 0 && root >= 8 && root <= tables.size() - 4) {
        const std::int64_t vtable = std::int64_t{root} - load_le<std::int32_t>(tables.data() + root);
        if (vtable >= 0 && vtable % 2 == 0 && vtable + 12 <= static_cast<std::int64_t>(tables.size()) &&
            Table(tables.data(), root).has(3))
            return fail(ErrorCode::NotSupported,
                        "a data file of ExecuTorch 0.5 or 0.6 (or one newer than what is known)");
    }
    TRY_ASSIGN(data.root_, verify(tables, TableKind::FlatTensor));
    return data;
}

DataEntry DataFile::entry(std::uint32_t i) const {
    const Table t = root_.tables(slot::flat_tensor::named_data)[i];
    DataEntry entry{t.string(slot::named::key), t.scalar<std::uint32_t>(slot::named::segment_index), std::nullopt};
    if (const Table layout = t.table(slot::named::tensor_layout); layout.present())
        entry.layout = TensorLayoutView(layout);
    return entry;
}

Result<std::optional<DataEntry>> DataFile::find(std::string_view key) const {
    std::optional<DataEntry> found;
    for (std::uint32_t i = 0; i < count(); ++i) {
        const DataEntry candidate = entry(i);
        if (candidate.key != key) continue;
        if (found) return fail(ErrorCode::InvalidExternalData, "two entries of the data file have the key '{}'", key);
        found = candidate;
    }
    return found;
}

Result<Bytes> DataFile::data(const DataEntry& entry) const {
    const TableVector segments = root_.tables(slot::flat_tensor::segments);
    if (entry.segment_index >= segments.size())
        return fail(ErrorCode::InvalidExternalData, "'{}' is in segment {} of the data file, which has {}", entry.key,
                    entry.segment_index, segments.size());
    const Table segment = segments[entry.segment_index];
    return segment_bytes(file_, frame_, entry.segment_index, segment.scalar<std::uint64_t>(slot::segment::offset),
                         segment.scalar<std::uint64_t>(slot::segment::size));
}

}  // namespace talpa::pte
