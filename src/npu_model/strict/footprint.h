// The bytes that an operation touches, ready to be compared with those of another: exact where that is affordable,
// hulls where a malicious stream would make it expensive.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "npu/extent.h"
#include "npu/hardware.h"

namespace talpa::npu_model {

/// One box of one access. `space` is the region, or kSharedRam.
inline constexpr unsigned kSharedRam = npu::kRegionCount;
struct Touch {
    npu::Access access;
    npu::Box box;      ///< merged
    npu::Extent hull;  ///< without padding channels
    unsigned space = 0;
};
[[nodiscard]] std::vector<Touch> footprint(const npu::Operation& op, const npu::Hardware& hardware);
[[nodiscard]] std::vector<Touch> touches_of(const npu::FeatureMap& fm, const npu::Volume& part);

/// Runs of bytes that may still be visited. The largest of the reference networks takes 60,000; the worst stream that
/// we could think of takes a third of a second.
using Effort = std::int64_t;
inline constexpr Effort kDefaultEffort = 1 << 22;
/// Takes the runs off the effort; false (and nothing taken) if it does not suffice.
[[nodiscard]] inline bool spend(Effort& effort, std::int64_t runs) {
    if (runs > effort) return false;
    effort -= runs;
    return true;
}

/// Some bytes that both boxes hold, or nothing.
[[nodiscard]] std::optional<npu::Extent> common_bytes(const Touch& a, const Touch& b, Effort& effort);

/// Bytes as disjoint intervals.
class IntervalSet {
  public:
    void add(npu::Extent e);
    void remove(npu::Extent e);
    /// The first bytes of `e` that are not in the set, or nothing.
    [[nodiscard]] std::optional<npu::Extent> first_gap(npu::Extent e) const;
    [[nodiscard]] std::size_t size() const { return intervals_.size(); }

  private:
    std::map<std::int64_t, std::int64_t> intervals_;  // begin -> end
};

}  // namespace talpa::npu_model
