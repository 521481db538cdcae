// .safetensors (model-formats, section 5).
#include <fmt/format.h>

#include <algorithm>

#include "compiler/import/json_tree.h"
#include "compiler/import/weights_file/weights.h"

namespace talpa::compiler::import {
namespace {

using host::failure;
using host::Result;

struct TypeName {
    std::string_view name;
    RawType type;
};
constexpr TypeName kTypes[] = {
    {"BOOL", RawType::Bool},   {"U8", RawType::UInt8},    {"I8", RawType::Int8},       {"I16", RawType::Int16},
    {"U16", RawType::UInt16},  {"F16", RawType::Float16}, {"BF16", RawType::BFloat16}, {"I32", RawType::Int32},
    {"U32", RawType::UInt32},  {"F32", RawType::Float32}, {"I64", RawType::Int64},     {"U64", RawType::UInt64},
    {"F64", RawType::Float64},
};

struct Interval {
    std::uint64_t begin, end;
};

Result<std::vector<std::int64_t>> numbers(Json list) {
    TRY(list.array());
    std::vector<std::int64_t> out;
    for (const Json item : each(list)) {
        TRY_ASSIGN(const auto v, item.integer());
        if (v < 0) return std::unexpected(item.error("a negative number"));
        out.push_back(v);
    }
    return out;
}

Result<StoredTensor> read_tensor(Json entry, talpa::Bytes data, Interval& interval) {
    StoredTensor t;
    TRY_ASSIGN(const Json dtype, entry.member("dtype"));
    TRY_ASSIGN(const auto name, dtype.text());
    const auto type = std::ranges::find(kTypes, name, &TypeName::name);
    if (type == std::end(kTypes))
        return std::unexpected(
            host::Error(ErrorCode::NotSupported, fmt::format("{}: element type '{}'", dtype.path(), name)));
    t.type = type->type;
    TRY_ASSIGN(const Json shape, entry.member("shape"));
    TRY_ASSIGN(t.sizes, numbers(shape));
    TRY_ASSIGN(const Json offsets, entry.member("data_offsets"));
    TRY_ASSIGN(const auto ends, numbers(offsets));
    if (ends.size() != 2 || ends[0] > ends[1] || static_cast<std::uint64_t>(ends[1]) > data.size())
        return std::unexpected(offsets.error(fmt::format("no interval of the {} bytes of data", data.size())));
    TRY_ASSIGN(const auto count, checked_count(t.sizes));
    if (static_cast<std::uint64_t>(count) * raw_size(t.type) != static_cast<std::uint64_t>(ends[1] - ends[0]))
        return std::unexpected(
            offsets.error(fmt::format("{} bytes for {} elements of {}", ends[1] - ends[0], count, name)));
    t.storage = data.subspan(static_cast<std::size_t>(ends[0]), static_cast<std::size_t>(ends[1] - ends[0]));
    interval = {static_cast<std::uint64_t>(ends[0]), static_cast<std::uint64_t>(ends[1])};
    return t;
}

}  // namespace

Result<WeightsFile> read_safetensors(talpa::Bytes file) {
    constexpr std::uint64_t kMostHeader = 100'000'000;
    if (file.size() < 10) return failure(ErrorCode::InvalidProgram, "{} bytes are no safetensors file", file.size());
    const auto size = load_le<std::uint64_t>(file.data());
    if (size < 2 || size > kMostHeader || size > file.size() - 8)
        return failure(ErrorCode::InvalidProgram, "a header of {} bytes", size);
    const std::string_view text(reinterpret_cast<const char*>(file.data() + 8), static_cast<std::size_t>(size));
    TRY_ASSIGN(const auto tree, JsonTree::parse(text, 4));
    const auto data = file.subspan(static_cast<std::size_t>(8 + size));
    WeightsFile out;
    std::vector<Interval> intervals;
    TRY(tree->root().object());
    for (const Json entry : each(tree->root())) {
        if (entry.key() == "__metadata__") {
            TRY(entry.object());
            for (const Json word : each(entry)) TRY(word.text());
            continue;
        }
        if (entry.key().empty()) return std::unexpected(entry.error("a tensor without a name"));
        Interval interval{};
        TRY_ASSIGN(auto tensor, read_tensor(entry, data, interval));
        out.tensors.emplace(std::string(entry.key()), std::move(tensor));
        intervals.push_back(interval);
    }
    std::ranges::sort(intervals, [](const Interval& a, const Interval& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t end = 0;
    for (const auto& i : intervals) {
        if (i.begin != end)
            return failure(ErrorCode::InvalidProgram, "the tensors overlap or leave a hole at byte {}", end);
        end = i.end;
    }
    if (end != data.size())
        return failure(ErrorCode::InvalidProgram, "{} bytes belong to no tensor", data.size() - end);
    return out;
}

}  // namespace talpa::compiler::import
