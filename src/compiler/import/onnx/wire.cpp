#include "compiler/import/onnx/wire.h"

#include <bit>

namespace talpa::compiler::import::onnx {
namespace {

using host::failure;
using host::Result;

constexpr std::size_t kMostFields = 4 << 20;

Result<std::uint64_t> varint(talpa::Bytes bytes, std::size_t& at) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at >= bytes.size())
            return failure(ErrorCode::InvalidProgram, "a number at offset {} runs past the end", at);
        const std::uint8_t byte = bytes[at++];
        if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) return value;
    }
    return failure(ErrorCode::InvalidProgram, "a number at offset {} has more than ten bytes", at);
}

}  // namespace

Result<std::vector<Field>> read_fields(talpa::Bytes message) {
    std::vector<Field> fields;
    std::size_t at = 0;
    while (at < message.size()) {
        if (fields.size() >= kMostFields) return failure(ErrorCode::OutOfResources, "more than {} fields", kMostFields);
        TRY_ASSIGN(const auto key, varint(message, at));
        Field f;
        if (key >> 3 == 0 || key >> 3 > 0x1FFFFFFF)
            return failure(ErrorCode::InvalidProgram, "field number {} at offset {}", key >> 3, at);
        f.number = static_cast<std::uint32_t>(key >> 3);
        switch (key & 7) {
            case 0: {
                TRY_ASSIGN(f.integer, varint(message, at));
                break;
            }
            case 1:
            case 5: {
                const std::size_t size = (key & 7) == 1 ? 8 : 4;
                if (message.size() - at < size)
                    return failure(ErrorCode::InvalidProgram, "field {} runs past the end", f.number);
                f.type = size == 8 ? Field::Type::Fixed64 : Field::Type::Fixed32;
                f.integer = size == 8 ? load_le<std::uint64_t>(message.data() + at)
                                      : load_le<std::uint32_t>(message.data() + at);
                at += size;
                break;
            }
            case 2: {
                f.type = Field::Type::Bytes;
                TRY_ASSIGN(const auto size, varint(message, at));
                if (size > message.size() - at)
                    return failure(ErrorCode::InvalidProgram, "field {} at offset {} has {} bytes, {} are left",
                                   f.number, at, size, message.size() - at);
                f.bytes = message.subspan(at, static_cast<std::size_t>(size));
                at += static_cast<std::size_t>(size);
                break;
            }
            default:
                return failure(ErrorCode::InvalidProgram, "field {} at offset {} is of wire type {}", f.number, at,
                               key & 7);
        }
        fields.push_back(f);
    }
    return fields;
}

Result<std::int64_t> Field::signed_integer() const {
    if (type != Type::Varint) return failure(ErrorCode::InvalidProgram, "field {} is no integer", number);
    return static_cast<std::int64_t>(integer);
}

Result<float> Field::real() const {
    if (type != Type::Fixed32) return failure(ErrorCode::InvalidProgram, "field {} is no float", number);
    return std::bit_cast<float>(static_cast<std::uint32_t>(integer));
}

Result<talpa::Bytes> Field::message() const {
    if (type != Type::Bytes) return failure(ErrorCode::InvalidProgram, "field {} is no message", number);
    return bytes;
}

Result<std::string_view> Field::text() const {
    TRY_ASSIGN(const auto raw, message());
    return std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size());
}

Result<void> Field::append_to(std::vector<std::int64_t>& list) const {
    if (type == Type::Varint) {
        list.push_back(static_cast<std::int64_t>(integer));
        return {};
    }
    TRY_ASSIGN(const auto packed, message());
    for (std::size_t at = 0; at < packed.size();) {
        TRY_ASSIGN(const auto v, varint(packed, at));
        list.push_back(static_cast<std::int64_t>(v));
    }
    return {};
}

Result<void> Field::append_to(std::vector<float>& list) const {
    if (type == Type::Fixed32) {
        list.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(integer)));
        return {};
    }
    TRY_ASSIGN(const auto packed, message());
    if (packed.size() % 4 != 0) return failure(ErrorCode::InvalidProgram, "field {} holds no whole floats", number);
    for (std::size_t at = 0; at < packed.size(); at += 4) list.push_back(load_le<float>(packed.data() + at));
    return {};
}

Result<void> Field::append_to(std::vector<double>& list) const {
    if (type == Type::Fixed64) {
        list.push_back(std::bit_cast<double>(integer));
        return {};
    }
    TRY_ASSIGN(const auto packed, message());
    if (packed.size() % 8 != 0) return failure(ErrorCode::InvalidProgram, "field {} holds no whole doubles", number);
    for (std::size_t at = 0; at < packed.size(); at += 8) list.push_back(load_le<double>(packed.data() + at));
    return {};
}

}  // namespace talpa::compiler::import::onnx
