#include "compiler/import/pickle/globals.h"

#include <algorithm>
#include <iterator>

namespace talpa::compiler::import::pickle {
namespace {

struct NamedType {
    std::string_view name;
    std::optional<RawType> type;
};
constexpr NamedType kStorageTypes[] = {
    {"torch DoubleStorage", RawType::Float64},
    {"torch FloatStorage", RawType::Float32},
    {"torch HalfStorage", RawType::Float16},
    {"torch BFloat16Storage", RawType::BFloat16},
    {"torch LongStorage", RawType::Int64},
    {"torch IntStorage", RawType::Int32},
    {"torch ShortStorage", RawType::Int16},
    {"torch CharStorage", RawType::Int8},
    {"torch ByteStorage", RawType::UInt8},
    {"torch BoolStorage", RawType::Bool},
    {"torch ComplexFloatStorage", {}},
    {"torch ComplexDoubleStorage", {}},
    {"torch QInt8Storage", {}},
    {"torch QUInt8Storage", {}},
    {"torch QInt32Storage", {}},
};
constexpr std::string_view kUntyped[] = {"torch.storage UntypedStorage", "torch UntypedStorage"};

constexpr NamedType kDtypes[] = {
    {"torch float32", RawType::Float32},   {"torch float64", RawType::Float64}, {"torch float16", RawType::Float16},
    {"torch bfloat16", RawType::BFloat16}, {"torch int64", RawType::Int64},     {"torch int32", RawType::Int32},
    {"torch int16", RawType::Int16},       {"torch int8", RawType::Int8},       {"torch uint8", RawType::UInt8},
    {"torch uint16", RawType::UInt16},     {"torch uint32", RawType::UInt32},   {"torch uint64", RawType::UInt64},
    {"torch bool", RawType::Bool},
};

/// Names that may appear; what they do when called is in Machine::call.
constexpr std::string_view kCallable[] = {
    "collections OrderedDict",
    "collections defaultdict",
    "collections Counter",
    "torch Size",
    "torch device",
    "torch.nn.parameter Parameter",
    "_codecs encode",
    "builtins set",
    "torch._utils _rebuild_tensor_v2",
    "torch._utils _rebuild_tensor_v3",
    "torch._utils _rebuild_tensor",
    "torch._utils _rebuild_parameter",
    "torch._utils _rebuild_parameter_with_state",
};

template <typename Table>
const NamedType* find(const Table& types, std::string_view name) {
    const auto* at = std::ranges::find(types, name, &NamedType::name);
    return at == std::end(types) ? nullptr : at;
}

}  // namespace

bool known_global(std::string_view name) {
    return std::ranges::find(kCallable, name) != std::end(kCallable) || is_untyped_storage(name) ||
           find(kStorageTypes, name) != nullptr || find(kDtypes, name) != nullptr;
}

std::optional<RawType> storage_type(std::string_view name) {
    const NamedType* type = find(kStorageTypes, name);
    return type == nullptr ? std::nullopt : type->type;
}

bool is_untyped_storage(std::string_view name) {
    return std::ranges::find(kUntyped, name) != std::end(kUntyped);
}

std::optional<RawType> dtype(std::string_view name) {
    const NamedType* type = find(kDtypes, name);
    return type == nullptr ? std::nullopt : type->type;
}

}  // namespace talpa::compiler::import::pickle
