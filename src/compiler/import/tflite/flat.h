// Checked access to the FlatBuffers of .tflite files (model-formats, sections 3.1 and 3.5): every offset, vtable and
// vector is held against the file when it is used, and a file that leads in circles runs out of tables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"

namespace talpa::compiler::import::tflite {

class FlatTable {
  public:
    /// An absent table: every field has its default.
    FlatTable() = default;
    /// The root table; the file's identifier must be "TFL3".
    [[nodiscard]] static host::Result<FlatTable> root(talpa::Bytes file);

    [[nodiscard]] bool present() const { return !file_.empty(); }
    [[nodiscard]] std::uint32_t position() const { return position_; }

    template <typename T>
    [[nodiscard]] host::Result<T> scalar(unsigned slot, T absent) const {
        TRY_ASSIGN(const auto at, field(slot, sizeof(T)));
        if (at == 0) return absent;
        if constexpr (std::is_same_v<T, bool>)
            return file_[at] != 0;
        else
            return load_le<T>(file_.data() + at);
    }
    [[nodiscard]] host::Result<std::string_view> text(unsigned slot) const;
    [[nodiscard]] host::Result<FlatTable> table(unsigned slot) const;
    [[nodiscard]] host::Result<std::vector<FlatTable>> tables(unsigned slot) const;
    [[nodiscard]] host::Result<talpa::Bytes> bytes(unsigned slot) const;
    template <typename T>
    [[nodiscard]] host::Result<std::vector<T>> numbers(unsigned slot) const {
        TRY_ASSIGN(const auto raw, vector(slot, sizeof(T)));
        std::vector<T> out(raw.size() / sizeof(T));
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = load_le<T>(raw.data() + i * sizeof(T));
        return out;
    }

  private:
    [[nodiscard]] static host::Result<FlatTable> at(talpa::Bytes file, std::uint64_t position,
                                                    const std::shared_ptr<std::size_t>& budget);
    /// Where the slot's field lies; 0 when absent.
    [[nodiscard]] host::Result<std::uint32_t> field(unsigned slot, std::size_t size) const;
    /// Where the slot's offset leads; 0 when absent.
    [[nodiscard]] host::Result<std::uint32_t> target(unsigned slot) const;
    [[nodiscard]] host::Result<talpa::Bytes> vector(unsigned slot, std::size_t item) const;

    talpa::Bytes file_;
    std::uint32_t position_ = 0, vtable_ = 0;
    std::uint16_t vtable_bytes_ = 0, table_bytes_ = 0;
    std::shared_ptr<std::size_t> budget_;  ///< tables that may still be visited
};

}  // namespace talpa::compiler::import::tflite
