#include "compiler/import/onnx/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "compiler/import/onnx/wire.h"

namespace talpa::compiler::import::onnx {
namespace {

using host::failure;
using host::Result;
namespace fs = std::filesystem;

struct TypeRow {
    std::int64_t code;
    RawType type;
};
constexpr TypeRow kTypes[] = {{1, RawType::Float32},  {2, RawType::UInt8},   {3, RawType::Int8},
                              {4, RawType::UInt16},   {5, RawType::Int16},   {6, RawType::Int32},
                              {7, RawType::Int64},    {9, RawType::Bool},    {10, RawType::Float16},
                              {11, RawType::Float64}, {12, RawType::UInt32}, {13, RawType::UInt64},
                              {16, RawType::BFloat16}};

struct External {
    std::string location;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;
};

struct RawTensor {
    Shape dims;
    std::int64_t type = 0;
    std::optional<talpa::Bytes> raw;
    std::vector<float> floats;
    std::vector<std::int64_t> int32s, int64s, uint64s;
    std::vector<double> doubles;
    bool external = false;
    External where;
    std::string name;
};

Result<std::uint64_t> decimal(std::string_view text) {
    std::uint64_t v = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (status != std::errc() || end != text.data() + text.size())
        return failure(ErrorCode::InvalidProgram, "'{}' is no number", text.substr(0, 40));
    return v;
}

Result<void> read_external(talpa::Bytes message, External& where) {
    TRY_ASSIGN(const auto fields, read_fields(message));
    std::string_view key, value;
    for (const Field& f : fields) {
        if (f.number != 1 && f.number != 2) continue;
        TRY_ASSIGN((f.number == 1 ? key : value), f.text());
    }
    if (key == "location") where.location = std::string(value);
    if (key == "offset") {
        TRY_ASSIGN(where.offset, decimal(value));
    }
    if (key == "length") {
        TRY_ASSIGN(const auto length, decimal(value));
        where.length = length;
    }
    return {};
}

/// Only plain files below the model's own folder (section 4.1).
Result<std::vector<std::uint8_t>> load_external(const External& where, const fs::path& folder, std::uint64_t wanted) {
    const fs::path relative = where.location;
    const auto refuse = [&](const char* why) {
        return failure(ErrorCode::InvalidExternalData, "external data '{}' {}", where.location.substr(0, 200), why);
    };
    if (where.location.empty() || where.location.find('\\') != std::string::npos ||
        where.location.find('\0') != std::string::npos || where.location.find(':') != std::string::npos ||
        where.location.starts_with("*") || relative.is_absolute())
        return refuse("is no relative path");
    for (const auto& part : relative)
        if (part == ".." || part == ".") return refuse("leads out of the model's folder");
    fs::path at = folder.empty() ? fs::path(".") : folder;
    std::error_code error;
    for (const auto& part : relative) {
        at /= part;
        if (fs::is_symlink(fs::symlink_status(at, error))) return refuse("leads over a symbolic link");
    }
    if (!fs::is_regular_file(fs::symlink_status(at, error))) return refuse("is no file");
    TRY_ASSIGN(const auto file, host::MappedFile::open(at));
    if (where.length && *where.length != wanted) return refuse("has another length than its tensor");
    if (!range_inside(where.offset, wanted, file.bytes().size())) return refuse("is shorter than its tensor needs");
    const auto part = file.bytes().subspan(static_cast<std::size_t>(where.offset), static_cast<std::size_t>(wanted));
    return std::vector<std::uint8_t>(part.begin(), part.end());
}

template <typename T, typename Numbers>
std::vector<std::uint8_t> packed(const Numbers& numbers) {
    std::vector<std::uint8_t> out(numbers.size() * sizeof(T));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const T v = static_cast<T>(numbers[i]);
        std::memcpy(out.data() + i * sizeof(T), &v, sizeof(T));
    }
    return out;
}

/// The tensor's bytes out of the field for its type.
std::vector<std::uint8_t> typed_bytes(const RawTensor& t, RawType type) {
    switch (type) {
        case RawType::Float32:
            return packed<float>(t.floats);
        case RawType::Float64:
            return packed<double>(t.doubles);
        case RawType::Int64:
            return packed<std::int64_t>(t.int64s);
        case RawType::UInt32:
            return packed<std::uint32_t>(t.uint64s);
        case RawType::UInt64:
            return packed<std::uint64_t>(t.uint64s);
        case RawType::Int32:
            return packed<std::int32_t>(t.int32s);
        case RawType::Int16:
        case RawType::UInt16:
        case RawType::Float16:
        case RawType::BFloat16:
            return packed<std::uint16_t>(t.int32s);
        default:
            return packed<std::uint8_t>(t.int32s);
    }
}

Result<RawTensor> read_raw(talpa::Bytes message) {
    RawTensor t;
    TRY_ASSIGN(const auto fields, read_fields(message));
    for (const Field& f : fields) {
        switch (f.number) {
            case 1:
                TRY(f.append_to(t.dims));
                break;
            case 2: {
                TRY_ASSIGN(t.type, f.signed_integer());
                break;
            }
            case 3:
                return failure(ErrorCode::NotSupported, "a tensor in segments");
            case 4:
                TRY(f.append_to(t.floats));
                break;
            case 5:
                TRY(f.append_to(t.int32s));
                break;
            case 7:
                TRY(f.append_to(t.int64s));
                break;
            case 8: {
                TRY_ASSIGN(const auto name, f.text());
                t.name = std::string(name);
                break;
            }
            case 9: {
                TRY_ASSIGN(const auto raw, f.message());
                if (t.raw) return failure(ErrorCode::InvalidProgram, "data in two places");
                t.raw = raw;
                break;
            }
            case 10:
                TRY(f.append_to(t.doubles));
                break;
            case 11:
                TRY(f.append_to(t.uint64s));
                break;
            case 13: {
                TRY_ASSIGN(const auto entry, f.message());
                TRY(read_external(entry, t.where));
                break;
            }
            case 14: {
                TRY_ASSIGN(const auto location, f.signed_integer());
                t.external = location == 1;
                break;
            }
            default:
                break;
        }
    }
    return t;
}

Result<TensorData> read_tensor(talpa::Bytes message, const fs::path& folder) {
    TRY_ASSIGN(const RawTensor t, read_raw(message));
    const auto read = [&]() -> Result<Value> {
        const auto row = std::ranges::find(kTypes, t.type, &TypeRow::code);
        if (row == std::end(kTypes)) return failure(ErrorCode::NotSupported, "element type {}", t.type);
        TRY_ASSIGN(const auto count, checked_count(t.dims));
        const auto wanted = static_cast<std::uint64_t>(count) * raw_size(row->type);
        const bool typed =
            !t.floats.empty() || !t.int32s.empty() || !t.int64s.empty() || !t.doubles.empty() || !t.uint64s.empty();
        if ((t.raw ? 1 : 0) + (typed ? 1 : 0) + (t.external ? 1 : 0) > 1)
            return failure(ErrorCode::InvalidProgram, "data in two places");
        std::vector<std::uint8_t> owned;
        talpa::Bytes bytes;
        if (t.external) {
            TRY_ASSIGN(owned, load_external(t.where, folder, wanted));
            bytes = owned;
        } else if (t.raw) {
            bytes = *t.raw;
        } else {
            owned = typed_bytes(t, row->type);
            bytes = owned;
        }
        if (bytes.size() != wanted)
            return failure(ErrorCode::InvalidProgram, "{} bytes of data, {} are needed", bytes.size(), wanted);
        return load_tensor(t.name, {row->type, t.dims, {}, 0, bytes}, Finite::NoNan);
    };
    auto value = read();
    if (!value)
        return std::unexpected(
            std::move(value.error()).with_context(fmt::format("tensor '{}'", t.name.substr(0, 200))));
    return TensorData{t.name, t.type, std::move(*value)};
}

Result<Attribute> read_attribute(talpa::Bytes message, const fs::path& folder) {
    Attribute a;
    TRY_ASSIGN(const auto fields, read_fields(message));
    for (const Field& f : fields) {
        switch (f.number) {
            case 1: {
                TRY_ASSIGN(const auto name, f.text());
                a.name = std::string(name);
                break;
            }
            case 2: {
                TRY_ASSIGN(a.real, f.real());
                break;
            }
            case 3: {
                TRY_ASSIGN(a.integer, f.signed_integer());
                break;
            }
            case 4: {
                TRY_ASSIGN(const auto text, f.text());
                a.text = std::string(text);
                break;
            }
            case 5: {
                TRY_ASSIGN(const auto tensor, f.message());
                TRY_ASSIGN(a.tensor, read_tensor(tensor, folder));
                break;
            }
            case 7:
                TRY(f.append_to(a.reals));
                break;
            case 8:
                TRY(f.append_to(a.integers));
                break;
            case 6:
            case 10:
            case 11:
            case 21:
            case 22:
                a.unsupported = true;
                break;
            default:
                break;
        }
    }
    return a;
}

Result<NodeData> read_node(talpa::Bytes message, const fs::path& folder) {
    NodeData node;
    TRY_ASSIGN(const auto fields, read_fields(message));
    for (const Field& f : fields) {
        if (f.number == 5) {
            TRY_ASSIGN(const auto raw, f.message());
            auto attribute = read_attribute(raw, folder);
            if (!attribute)
                return std::unexpected(std::move(attribute.error()).with_context(fmt::format("node '{}'", node.name)));
            if (std::ranges::find(node.attributes, attribute->name, &Attribute::name) != node.attributes.end())
                return failure(ErrorCode::InvalidProgram, "attribute '{}' stands twice", attribute->name);
            node.attributes.push_back(std::move(*attribute));
            continue;
        }
        if (f.number != 1 && f.number != 2 && f.number != 3 && f.number != 4 && f.number != 7) continue;
        TRY_ASSIGN(const auto text, f.text());
        std::string value(text.substr(0, 1024));
        switch (f.number) {
            case 1:
                node.inputs.push_back(std::move(value));
                break;
            case 2:
                node.outputs.push_back(std::move(value));
                break;
            case 3:
                node.name = std::move(value);
                break;
            case 4:
                node.op = std::move(value);
                break;
            default:
                node.domain = std::move(value);
        }
    }
    return node;
}

/// ValueInfo 2 -> TypeProto 1 -> {1 type, 2 shape {1 dim {1 value, 2 name}}}
Result<Port> read_port(talpa::Bytes message) {
    Port port;
    TRY_ASSIGN(const auto fields, read_fields(message));
    for (const Field& f : fields) {
        if (f.number == 1) {
            TRY_ASSIGN(const auto name, f.text());
            port.name = std::string(name.substr(0, 1024));
        }
        if (f.number != 2) continue;
        TRY_ASSIGN(const auto type, f.message());
        TRY_ASSIGN(const auto kinds, read_fields(type));
        for (const Field& kind : kinds) {
            if (kind.number != 1) continue;
            port.has_type = true;
            TRY_ASSIGN(const auto tensor, kind.message());
            TRY_ASSIGN(const auto parts, read_fields(tensor));
            for (const Field& part : parts) {
                if (part.number == 1) {
                    TRY_ASSIGN(port.data_type, part.signed_integer());
                }
                if (part.number != 2) continue;
                port.has_shape = true;
                TRY_ASSIGN(const auto shape, part.message());
                TRY_ASSIGN(const auto dims, read_fields(shape));
                for (const Field& dim : dims) {
                    if (dim.number != 1) continue;
                    TRY_ASSIGN(const auto raw, dim.message());
                    TRY_ASSIGN(const auto facts, read_fields(raw));
                    std::optional<std::int64_t> size;
                    for (const Field& fact : facts)
                        if (fact.number == 1) {
                            TRY_ASSIGN(size, fact.signed_integer());
                        }
                    port.shape.push_back(size);
                }
            }
        }
    }
    return port;
}

Result<void> read_graph(talpa::Bytes message, const fs::path& folder, Model& model) {
    TRY_ASSIGN(const auto fields, read_fields(message));
    for (const Field& f : fields) {
        if (f.number == 15) return failure(ErrorCode::NotSupported, "sparse initializers");
        if (f.number != 1 && f.number != 2 && f.number != 5 && f.number != 11 && f.number != 12) continue;
        TRY_ASSIGN(const auto raw, f.message());
        if (f.number == 1) {
            TRY_ASSIGN(auto node, read_node(raw, folder));
            model.nodes.push_back(std::move(node));
        } else if (f.number == 2) {
            TRY_ASSIGN(const auto name, f.text());
            model.graph_name = std::string(name.substr(0, 200));
        } else if (f.number == 5) {
            TRY_ASSIGN(auto tensor, read_tensor(raw, folder));
            model.initializers.push_back(std::move(tensor));
        } else {
            TRY_ASSIGN(auto port, read_port(raw));
            (f.number == 11 ? model.inputs : model.outputs).push_back(std::move(port));
        }
    }
    return {};
}

}  // namespace

Result<Model> read_model(talpa::Bytes file, const fs::path& folder) {
    if (file.size() > INT32_MAX) return failure(ErrorCode::NotSupported, "a model of more than 2 GiB");
    Model model;
    bool has_graph = false;
    TRY_ASSIGN(const auto fields, read_fields(file));
    for (const Field& f : fields) {
        if (f.number == 7) {
            if (has_graph) return failure(ErrorCode::InvalidProgram, "two graphs");
            has_graph = true;
            TRY_ASSIGN(const auto graph, f.message());
            TRY(read_graph(graph, folder, model));
        } else if (f.number == 8) {
            TRY_ASSIGN(const auto raw, f.message());
            TRY_ASSIGN(const auto import, read_fields(raw));
            std::string_view domain;
            std::int64_t version = 0;
            for (const Field& part : import) {
                if (part.number == 1) {
                    TRY_ASSIGN(domain, part.text());
                }
                if (part.number == 2) {
                    TRY_ASSIGN(version, part.signed_integer());
                }
            }
            if (domain.empty() || domain == "ai.onnx") model.opset = version;
        } else if (f.number == 25) {
            model.functions.emplace_back("function");
        }
    }
    if (!has_graph) return failure(ErrorCode::InvalidProgram, "the file holds no graph");
    return model;
}

}  // namespace talpa::compiler::import::onnx
