// A .ptd data file: named blobs and tensors outside the program. (pte-format, section 1.6)
#pragma once

#include <optional>

#include "pte/program.h"

namespace talpa::pte {

/// Type and shape of a tensor in a data file.
class TensorLayoutView {
  public:
    explicit TensorLayoutView(Table t) : table_(t) {}
    [[nodiscard]] std::int8_t scalar_type() const { return table_.scalar<std::int8_t>(slot::layout::scalar_type); }
    [[nodiscard]] Vector<std::int32_t> sizes() const { return table_.vector<std::int32_t>(slot::layout::sizes); }
    [[nodiscard]] Vector<std::uint8_t> dim_order() const {
        return table_.vector<std::uint8_t>(slot::layout::dim_order);
    }

  private:
    Table table_;
};

struct DataEntry {
    std::string_view key;
    std::uint32_t segment_index = 0;
    std::optional<TensorLayoutView> layout;  ///< absent for opaque blobs
};

class DataFile {
  public:
    /// Errors as Program::open; data files of ExecuTorch 0.5 and 0.6, which share the identifier, are refused by name.
    [[nodiscard]] static Result<DataFile> open(Bytes file);

    [[nodiscard]] Bytes bytes() const { return file_; }
    [[nodiscard]] const FileFrame& frame() const { return frame_; }
    [[nodiscard]] std::uint32_t count() const { return root_.tables(slot::flat_tensor::named_data).size(); }
    [[nodiscard]] DataEntry entry(std::uint32_t i) const;
    /// Nothing when there is no such key; InvalidExternalData when two have it.
    [[nodiscard]] Result<std::optional<DataEntry>> find(std::string_view key) const;
    [[nodiscard]] Result<Bytes> data(const DataEntry& entry) const;

  private:
    Bytes file_;
    FileFrame frame_;
    Table root_;
};

/// The data files that belong to a program. The firmware is given none, so its span says so, and nothing of them is
/// compiled into it.
#ifdef TALPA_NO_DATA_FILES
using DataFiles = std::span<const DataFile, 0>;
#else
using DataFiles = std::span<const DataFile>;
#endif

}  // namespace talpa::pte
