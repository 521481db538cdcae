// Builds FlatBuffers: tables first, what they refer to after them, vtables with their true inline length; what is equal
// (texts, lists, whole tables, vtables) is written once. Small and plain, for a compiler writes one file at a time.
// (pte-format, sections 2 and 15)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/byte_reader.h"

namespace talpa::pte::host {

struct FlatNode;
using FlatRef = std::shared_ptr<FlatNode>;

/// A table in the making. Fields that are not added are absent.
class TableBuilder {
  public:
    TableBuilder();
    /// A scalar of 1, 4 or 8 bytes. `absent` is the schema's default: that value is not stored.
    template <typename T>
    TableBuilder& scalar(unsigned slot, T value, T absent = T{}) {
        if (value != absent) scalar_bytes(slot, value);
        return *this;
    }
    /// A scalar that is stored whatever it is.
    template <typename T>
    TableBuilder& stored(unsigned slot, T value) {
        scalar_bytes(slot, value);
        return *this;
    }
    /// A string, vector or table; a null reference adds nothing.
    TableBuilder& child(unsigned slot, FlatRef node);
    [[nodiscard]] FlatRef ref() const { return node_; }

  private:
    template <typename T>
    void scalar_bytes(unsigned slot, T value) {
        std::vector<std::uint8_t> bytes(sizeof(T));
        store_le(bytes.data(), value);
        add(slot, std::move(bytes));
    }
    void add(unsigned slot, std::vector<std::uint8_t> bytes);
    FlatRef node_;
};

[[nodiscard]] FlatRef flat_string(std::string_view text);
/// A vector of bytes whose first element lies at a multiple of `alignment`.
[[nodiscard]] FlatRef flat_bytes(Bytes bytes, std::size_t alignment = 1);
[[nodiscard]] FlatRef flat_tables(std::vector<FlatRef> tables);
template <typename T>
[[nodiscard]] FlatRef flat_vector(const std::vector<T>& values);

/// Lays the tree out from `first_free` (8, or more to leave room after the identifier) and fills in root offset and
/// identifier. Equal nodes are written once, behind all that refer to them.
[[nodiscard]] std::vector<std::uint8_t> finish_flatbuffer(const FlatRef& root, std::string_view identifier,
                                                          std::size_t first_free);

// The rest is how it works.

struct FlatNode {
    enum class Kind : std::uint8_t { Table, Scalars, Refs } kind = Kind::Scalars;
    std::map<unsigned, std::vector<std::uint8_t>> fields;  ///< Table: scalars
    std::map<unsigned, FlatRef> children;                  ///< Table: offsets
    std::vector<std::uint8_t> bytes;                       ///< Scalars: elements, and a string's NUL
    std::uint32_t count = 0;                               ///< Scalars: elements that are counted
    std::size_t alignment = 4;                             ///< Scalars: of the first element
    std::vector<FlatRef> refs;                             ///< Refs: a vector of tables
};

[[nodiscard]] FlatRef flat_scalars(std::vector<std::uint8_t> bytes, std::uint32_t count, std::size_t alignment);

template <typename T>
FlatRef flat_vector(const std::vector<T>& values) {
    std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) store_le(bytes.data() + i * sizeof(T), values[i]);
    return flat_scalars(std::move(bytes), static_cast<std::uint32_t>(values.size()), sizeof(T));
}

}  // namespace talpa::pte::host
