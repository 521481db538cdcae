#include "compiler/import/tflite/flat.h"

#include <fmt/format.h>

#include <cstring>

namespace talpa::compiler::import::tflite {
namespace {

using host::failure;
using host::Result;

constexpr std::size_t kMostTables = 1'000'000;

std::unexpected<host::Error> outside(const char* what, std::uint64_t position) {
    return failure(ErrorCode::InvalidProgram, "{} at offset {} leads outside the file", what, position);
}

}  // namespace

Result<FlatTable> FlatTable::root(talpa::Bytes file) {
    if (file.size() < 8 || std::memcmp(file.data() + 4, "TFL3", 4) != 0)
        return failure(ErrorCode::InvalidProgram, "no TensorFlow Lite model: the identifier TFL3 is missing");
    if (file.size() > INT32_MAX) return failure(ErrorCode::NotSupported, "a model of more than 2 GiB");
    return at(file, load_le<std::uint32_t>(file.data()), std::make_shared<std::size_t>(kMostTables));
}

Result<FlatTable> FlatTable::at(talpa::Bytes file, std::uint64_t position, const std::shared_ptr<std::size_t>& budget) {
    if (*budget == 0) return failure(ErrorCode::OutOfResources, "more than {} tables", kMostTables);
    --*budget;
    if (!range_inside(position, 4, file.size()) || position < 8) return outside("a table", position);
    const std::int64_t vtable = static_cast<std::int64_t>(position) - load_le<std::int32_t>(file.data() + position);
    if (vtable < 0 || !range_inside(static_cast<std::uint64_t>(vtable), 4, file.size()))
        return outside("the vtable of the table", position);
    FlatTable t;
    t.file_ = file;
    t.position_ = static_cast<std::uint32_t>(position);
    t.vtable_ = static_cast<std::uint32_t>(vtable);
    t.vtable_bytes_ = load_le<std::uint16_t>(file.data() + vtable);
    t.table_bytes_ = load_le<std::uint16_t>(file.data() + vtable + 2);
    t.budget_ = budget;
    if (t.vtable_bytes_ < 4 || t.vtable_bytes_ % 2 != 0 || t.table_bytes_ < 4 ||
        !range_inside(t.vtable_, t.vtable_bytes_, file.size()) || !range_inside(position, t.table_bytes_, file.size()))
        return failure(ErrorCode::InvalidProgram, "the table at offset {} has a vtable of {} and {} bytes", position,
                       t.vtable_bytes_, t.table_bytes_);
    return t;
}

Result<std::uint32_t> FlatTable::field(unsigned slot, std::size_t size) const {
    if (!present() || 4 + 2 * std::size_t{slot} + 2 > vtable_bytes_) return 0u;
    const auto offset = load_le<std::uint16_t>(file_.data() + vtable_ + 4 + 2 * slot);
    if (offset == 0) return 0u;
    if (offset < 4 || offset + size > table_bytes_)
        return failure(ErrorCode::InvalidProgram, "field {} of the table at offset {} lies outside it", slot,
                       position_);
    return position_ + offset;
}

Result<std::uint32_t> FlatTable::target(unsigned slot) const {
    TRY_ASSIGN(const auto at, field(slot, 4));
    if (at == 0) return 0u;
    const std::uint64_t there = std::uint64_t{at} + load_le<std::uint32_t>(file_.data() + at);
    if (there == at || !range_inside(there, 4, file_.size())) return outside("an offset", at);
    return static_cast<std::uint32_t>(there);
}

Result<talpa::Bytes> FlatTable::vector(unsigned slot, std::size_t item) const {
    TRY_ASSIGN(const auto at, target(slot));
    if (at == 0) return talpa::Bytes();
    const std::uint64_t size = std::uint64_t{load_le<std::uint32_t>(file_.data() + at)} * item;
    if (!range_inside(std::uint64_t{at} + 4, size, file_.size())) return outside("a vector", at);
    return file_.subspan(at + 4, static_cast<std::size_t>(size));
}

Result<talpa::Bytes> FlatTable::bytes(unsigned slot) const {
    return vector(slot, 1);
}

Result<std::string_view> FlatTable::text(unsigned slot) const {
    TRY_ASSIGN(const auto raw, vector(slot, 1));
    return std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size());
}

Result<FlatTable> FlatTable::table(unsigned slot) const {
    TRY_ASSIGN(const auto there, target(slot));
    if (there == 0) return FlatTable();
    return at(file_, there, budget_);
}

Result<std::vector<FlatTable>> FlatTable::tables(unsigned slot) const {
    TRY_ASSIGN(const auto offsets, vector(slot, 4));
    std::vector<FlatTable> out;
    for (std::size_t i = 0; i < offsets.size(); i += 4) {
        const auto here = static_cast<std::uint64_t>(offsets.data() - file_.data()) + i;
        TRY_ASSIGN(auto table, at(file_, here + load_le<std::uint32_t>(file_.data() + here), budget_));
        out.push_back(std::move(table));
    }
    return out;
}

}  // namespace talpa::compiler::import::tflite
