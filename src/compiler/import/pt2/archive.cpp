#include "compiler/import/pt2/archive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

constexpr std::uint64_t kMostJsonBytes = 256 << 20, kMostTextBytes = 1024;
constexpr std::uint64_t kMostPayloadBytes = std::uint64_t{16} << 30;

struct TypeCode {
    std::int64_t code;
    const char* name;
    std::optional<RawType> type;
};
constexpr TypeCode kTypeCodes[] = {
    // section 1.3
    {1, "uint8", RawType::UInt8},
    {2, "int8", RawType::Int8},
    {3, "int16", RawType::Int16},
    {4, "int32", RawType::Int32},
    {5, "int64", RawType::Int64},
    {6, "float16", RawType::Float16},
    {7, "float32", RawType::Float32},
    {8, "float64", RawType::Float64},
    {9, "complex32", {}},
    {10, "complex64", {}},
    {11, "complex128", {}},
    {12, "bool", RawType::Bool},
    {13, "bfloat16", RawType::BFloat16},
    {28, "uint16", RawType::UInt16},
    {29, "float8_e4m3fn", {}},
    {30, "float8_e5m2", {}},
    {31, "float8_e4m3fnuz", {}},
    {32, "float8_e5m2fnuz", {}},
    {33, "float8_e8m0fnu", {}},
    {34, "uint32", RawType::UInt32},
    {35, "uint64", RawType::UInt64},
};

constexpr const char* kExportAgain =
    "Export it again with a current PyTorch: torch.export.save(torch.export.export(...)).";

Result<std::int64_t> read_size(Json size) {
    TRY_ASSIGN(const Json only, size.only());
    if (only.key() == "as_int") return only.integer();
    if (only.key() == "as_expr") {
        const Json text = only.find("expr_str");
        const auto expression = text ? text.text().value_or("?") : "?";
        return std::unexpected(host::Error(ErrorCode::NotSupported,
                                           fmt::format("{}: the dynamic size {}", size.path(), expression),
                                           "Sizes must be fixed: export without dynamic_shapes."));
    }
    return std::unexpected(only.error("an unknown kind of size"));
}

Result<std::vector<std::int64_t>> read_sizes(Json list) {
    TRY(list.array());
    std::vector<std::int64_t> sizes;
    for (const Json item : each(list)) {
        TRY_ASSIGN(const auto size, read_size(item));
        sizes.push_back(size);
    }
    return sizes;
}

bool plain_name(std::string_view name) {
    return !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    });
}

Result<void> expect_text(const Zip& zip, const std::string& entry, std::string_view wanted, const char* meaning) {
    if (!zip.has(entry)) return {};
    TRY_ASSIGN(const auto bytes, zip.read(entry, kMostTextBytes));
    std::string_view text = bytes.text();
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    if (text != wanted)
        return std::unexpected(host::Error(ErrorCode::NotSupported,
                                           fmt::format("{} '{}', '{}' is known", meaning, text.substr(0, 40), wanted),
                                           kExportAgain));
    return {};
}

}  // namespace

Result<RawType> read_dtype(Json json) {
    TRY_ASSIGN(const auto code, json.integer());
    for (const TypeCode& t : kTypeCodes) {
        if (t.code != code) continue;
        if (t.type) return *t.type;
        return std::unexpected(
            host::Error(ErrorCode::NotSupported, fmt::format("{}: tensors of {}", json.path(), t.name)));
    }
    return std::unexpected(json.error(fmt::format("element type {} is unknown", code)));
}

Result<TensorMeta> read_tensor_meta(Json meta) {
    TensorMeta out;
    TRY_ASSIGN(const Json dtype, meta.member("dtype"));
    TRY_ASSIGN(out.type, read_dtype(dtype));
    if (const Json layout = meta.find("layout")) {
        TRY_ASSIGN(const auto code, layout.integer());
        if (code != 7)
            return std::unexpected(
                host::Error(ErrorCode::NotSupported,
                            fmt::format("{}: layout {}: only dense tensors are read", layout.path(), code)));
    }
    TRY_ASSIGN(const Json sizes, meta.member("sizes"));
    TRY_ASSIGN(out.sizes, read_sizes(sizes));
    if (const Json strides = meta.find("strides")) {
        TRY_ASSIGN(out.strides, read_sizes(strides));
        if (out.strides.size() != out.sizes.size())
            return std::unexpected(
                strides.error(fmt::format("{} strides for {} sizes", out.strides.size(), out.sizes.size())));
    }
    if (const Json offset = meta.find("storage_offset")) {
        TRY_ASSIGN(out.offset, read_size(offset));
    }
    if (const auto count = checked_count(out.sizes); !count) return std::unexpected(sizes.error(count.error().message));
    return out;
}

Result<std::unique_ptr<JsonTree>> Archive::read_json(const std::string& entry) const {
    TRY_ASSIGN(const auto bytes, zip_.read(entry, kMostJsonBytes));
    return host::with_context(JsonTree::parse(bytes.text()), entry);
}

Result<Archive::Payloads> Archive::read_config(const std::string& folder, const char* suffix) const {
    Payloads payloads;
    const std::string entry = root_ + folder + name_ + suffix;
    if (!zip_.has(entry)) return payloads;
    TRY_ASSIGN(const auto tree, read_json(entry));
    const auto read = [&]() -> Result<void> {
        TRY_ASSIGN(const Json config, tree->root().member("config"));
        TRY(config.object());
        for (const Json item : each(config)) {
            if (const Json pickled = item.find("use_pickle"); pickled && pickled.boolean().value_or(true))
                return std::unexpected(host::Error(ErrorCode::NotSupported,
                                                   fmt::format("{} is stored as a pickle", item.key()), kExportAgain));
            TRY_ASSIGN(const Json path, item.member("path_name"));
            TRY_ASSIGN(const auto name, path.text());
            if (!plain_name(name)) return std::unexpected(path.error("no plain name"));
            TRY_ASSIGN(const Json meta, item.member("tensor_meta"));
            TRY_ASSIGN(TensorMeta tensor, read_tensor_meta(meta));
            payloads.emplace(item.key(), Payload{root_ + folder + std::string(name), std::move(tensor)});
        }
        return {};
    };
    TRY(host::with_context(read(), entry));
    return payloads;
}

Result<Archive> Archive::open(talpa::Bytes file, const std::string& program) {
    TRY_ASSIGN(Zip zip, Zip::open(file));
    std::string root;
    bool found = false;
    for (const auto& [name, entry] : zip.entries()) {
        const auto slash = name.find('/');
        if (slash == name.npos || name.substr(slash) != "/archive_format") continue;
        if (found) return failure(ErrorCode::InvalidProgram, "two archives in one file");
        found = true;
        root = name.substr(0, slash + 1);
    }
    if (!found) {
        if (zip.has("serialized_exported_program.json"))
            return std::unexpected(host::Error(ErrorCode::NotSupported,
                                               "an archive of PyTorch 2.7 or older, which keeps its weights as pickles",
                                               kExportAgain));
        for (const auto& [name, entry] : zip.entries())
            if (name.ends_with("/constants.pkl"))
                return std::unexpected(host::Error(ErrorCode::NotSupported, "a TorchScript archive",
                                                   "Export the model with torch.export instead of torch.jit."));
        return failure(ErrorCode::InvalidProgram, "a zip archive, but none that torch.export.save has written");
    }
    for (const auto& [name, entry] : zip.entries())
        if (!name.starts_with(root))
            return failure(ErrorCode::InvalidProgram, "entry '{}' lies outside the archive's folder '{}'", name, root);
    TRY(expect_text(zip, root + "archive_format", "pt2", "archive format"));
    TRY(expect_text(zip, root + "archive_version", "0", "archive version"));
    TRY(expect_text(zip, root + "byteorder", "little", "byte order"));

    std::vector<std::string> programs;
    const std::string models = root + "models/";
    for (const auto& [name, entry] : zip.entries())
        if (name.starts_with(models) && name.ends_with(".json"))
            programs.push_back(name.substr(models.size(), name.size() - models.size() - 5));
    if (programs.empty())
        return std::unexpected(
            host::Error(ErrorCode::NotSupported, "a compiled package: there is no graph in it", kExportAgain));
    Archive archive(std::move(zip));
    archive.root_ = std::move(root);
    const auto chosen =
        program.empty() && programs.size() == 1 ? programs.begin() : std::ranges::find(programs, program);
    if (chosen == programs.end())
        return std::unexpected(
            host::Error(ErrorCode::NotFound,
                        program.empty() ? "several programs in one archive" : fmt::format("no program '{}'", program),
                        fmt::format("Choose one with --program: {}", fmt::join(programs, ", "))));
    archive.name_ = *chosen;
    TRY_ASSIGN(archive.model_, archive.read_json(models + archive.name_ + ".json"));
    TRY_ASSIGN(archive.weights_, archive.read_config("data/weights/", "_weights_config.json"));
    TRY_ASSIGN(archive.constants_, archive.read_config("data/constants/", "_constants_config.json"));
    return archive;
}

Result<Value> Archive::load(Kind kind, const std::string& fqn, const std::string& value_name, Finite finite) const {
    const Payloads& payloads = kind == Kind::Weight ? weights_ : constants_;
    const auto found = payloads.find(fqn);
    if (found == payloads.end())
        return failure(ErrorCode::InvalidProgram, "the archive has no {} '{}'",
                       kind == Kind::Weight ? "weight" : "constant", fqn);
    const Payload& p = found->second;
    const auto read = [&]() -> Result<Value> {
        TRY_ASSIGN(const auto bytes, zip_.read(p.entry, kMostPayloadBytes));
        return load_tensor(value_name, {p.meta.type, p.meta.sizes, p.meta.strides, p.meta.offset, bytes.bytes()},
                           finite);
    };
    return host::with_context(read(), fmt::format("'{}' in entry '{}'", fqn, p.entry));
}

}  // namespace talpa::compiler::import::pt2
