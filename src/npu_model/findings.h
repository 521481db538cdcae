// What the model notices about the data while it runs: results that the hardware's registers cannot hold, and reads of
// memory that nobody wrote. Each finding names the operation; in strict mode the first one stops the run.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "npu/operation.h"

namespace talpa::npu_model {

struct Finding {
    enum class Kind : std::uint8_t {
        AccumulatorOverflow,  ///< a sum does not fit ACC_FORMAT; wrapped (ethos-u65, section 5.2: hardware unknown)
        ResultOverflow,       ///< a 32-bit result does not fit; saturated on store (section 13, item 3)
        ShiftOutOfRange,      ///< SHR or SHL by less than 0 or more than 31; the low five bits are used
        LutIndexOutOfRange,   ///< beyond the table; the index wraps (section 13, item 6)
        UninitialisedRead,    ///< bytes that neither the host nor an earlier operation wrote
    };
    Kind kind = Kind::AccumulatorOverflow;
    npu::OpKind op = npu::OpKind::Stop;
    std::uint32_t offset_bytes = 0;  ///< of the command in the stream
    std::uint64_t count = 0;         ///< elements, or bytes, concerned
    std::uint64_t first = 0;         ///< UninitialisedRead: offset of the first byte in its region
    std::uint8_t region = 0;         ///< UninitialisedRead
};
[[nodiscard]] const char* finding_text(Finding::Kind kind);

/// Counts findings per operation and kind.
class Findings {
  public:
    void start_operation(const npu::Operation& op) {
        kind_ = op.kind;
        offset_bytes_ = op.offset_bytes;
        open_.fill(SIZE_MAX);
    }
    void note(Finding::Kind kind) {
        std::size_t& slot = open_[static_cast<std::size_t>(kind)];
        if (slot == SIZE_MAX) {
            slot = found_.size();
            found_.push_back({kind, kind_, offset_bytes_, 0, 0, 0});
        }
        ++found_[slot].count;
    }
    void note_uninitialised(std::uint8_t region, std::uint64_t first, std::uint64_t count) {
        found_.push_back({Finding::Kind::UninitialisedRead, kind_, offset_bytes_, count, first, region});
    }
    [[nodiscard]] const std::vector<Finding>& all() const { return found_; }
    void clear() { found_.clear(); }

  private:
    npu::OpKind kind_ = npu::OpKind::Stop;
    std::uint32_t offset_bytes_ = 0;
    std::array<std::size_t, 5> open_{};
    std::vector<Finding> found_;
};

}  // namespace talpa::npu_model
