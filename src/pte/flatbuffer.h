// FlatBuffers read in place, with the rules that .pte files need (pte-format, section 2). First `verify` walks
// everything that the schema knows, once, and refuses whatever points outside; after that the views below need no
// checks. The inline length in a vtable is not used: programs of 1.2 and later share vtables between tables of
// different length (V6). Freestanding; reads only naturally aligned words, since on the M33 a program may lie in Device
// memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/core/byte_reader.h"
#include "base/core/error.h"
#include "pte/schema.h"

namespace talpa::pte {

/// Elements of a verified vector of scalars. `data` is aligned to sizeof(T) where the file is.
template <typename T>
class Vector {
  public:
    Vector() = default;
    Vector(const std::uint8_t* data, std::uint32_t count) : data_(data), count_(count) {}

    [[nodiscard]] std::uint32_t size() const { return count_; }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    /// i < size().
    [[nodiscard]] T operator[](std::uint32_t i) const { return load_le<T>(data_ + std::size_t{i} * sizeof(T)); }
    /// Little-endian elements; null for an absent vector.
    [[nodiscard]] const std::uint8_t* data() const { return data_; }
    [[nodiscard]] Bytes bytes() const { return {data_, std::size_t{count_} * sizeof(T)}; }

  private:
    const std::uint8_t* data_ = nullptr;
    std::uint32_t count_ = 0;
};

class TableVector;

/// A table in verified bytes. A default-made one stands for an absent table: all its fields have their defaults.
class Table {
  public:
    Table() = default;
    Table(const std::uint8_t* base, std::uint32_t position) : base_(base), position_(position) {}

    [[nodiscard]] bool present() const { return base_ != nullptr; }
    /// Offset of the table in the file.
    [[nodiscard]] std::uint32_t position() const { return position_; }
    /// Offset of a slot's field in the file; 0 when the slot is absent.
    [[nodiscard]] std::uint32_t field(unsigned slot) const;
    [[nodiscard]] bool has(unsigned slot) const { return field(slot) != 0; }

    template <typename T>
    [[nodiscard]] T scalar(unsigned slot, T absent = T{}) const {
        const std::uint32_t at = field(slot);
        return at == 0 ? absent : load_le<T>(base_ + at);
    }
    [[nodiscard]] std::string_view string(unsigned slot) const;  ///< empty when absent
    [[nodiscard]] Table table(unsigned slot) const;
    [[nodiscard]] TableVector tables(unsigned slot) const;
    template <typename T>
    [[nodiscard]] Vector<T> vector(unsigned slot) const {
        const std::uint32_t at = target(slot);
        return at == 0 ? Vector<T>() : Vector<T>(base_ + at + 4, load_le<std::uint32_t>(base_ + at));
    }

  private:
    /// What the slot's offset points to; 0 when absent.
    [[nodiscard]] std::uint32_t target(unsigned slot) const;

    const std::uint8_t* base_ = nullptr;
    std::uint32_t position_ = 0;
};

/// A verified vector of tables.
class TableVector {
  public:
    TableVector() = default;
    TableVector(const std::uint8_t* base, std::uint32_t first, std::uint32_t count)
        : base_(base), first_(first), count_(count) {}

    [[nodiscard]] std::uint32_t size() const { return count_; }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    /// i < size().
    [[nodiscard]] Table operator[](std::uint32_t i) const {
        const std::uint32_t at = first_ + i * 4;
        return {base_, at + load_le<std::uint32_t>(base_ + at)};
    }

  private:
    const std::uint8_t* base_ = nullptr;
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
};

/// Verifies the FlatBuffer `bytes` from its root word down (V4, V5, V7). The bytes must stay unchanged while views are
/// used. Errors (InvalidProgram) name the table, its offset, and what is wrong with which slot. Vectors of tables that
/// many parents share could make the walk long: it ends after as many tables as the buffer has bytes.
[[nodiscard]] Result<Table> verify(Bytes bytes, TableKind root);

}  // namespace talpa::pte
