// What the NPU has once a weight stream is decoded: the dense filter bank with the scale records of its channels.
// Decoded once per content: a cache finds it again by the bytes of stream and records, so memory that changed is always
// noticed.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/core/error.h"
#include "npu/device.h"
#include "npu/operation.h"
#include "npu_model/weights.h"

namespace talpa::npu_model {

namespace fast {
struct PackedWeights;  // the fast kernels' own form of a bank; they define it
}

/// Ten bytes per OFM channel (ethos-u65, section 6.1).
struct ScaleRecord {
    std::int64_t bias = 0;  ///< signed 40 bits
    std::uint32_t multiplier = 0;
    std::uint8_t shift = 0;
};

struct Filter {
    WeightOrder shape;
    std::vector<std::int16_t> weights;  ///< [ofm_depth][kernel_height][kernel_width][bank_ifm_depth], -255..255
    std::vector<ScaleRecord> records;   ///< per OFM channel; empty when the operation scales globally

    /// A place for what the fast kernels make of this bank, kept as long as the entry lives in the cache. Only one
    /// operation runs at a time, so no lock is needed; whoever needs several forms keeps them in PackedWeights.
    mutable std::shared_ptr<fast::PackedWeights> packed;
};

/// The bytes that a convolution's filter comes from, one stream and one block of records per core. Ranges were checked.
struct FilterSource {
    WeightOrder order;
    std::array<Bytes, npu::kMaxCores> weights, records;
    bool scales_globally = false;  ///< no records
};

/// Decodes without a cache. Errors: WeightStream; CommandStream when there are fewer records than channels;
/// OutOfResources for a bank of more than 2^28 weights.
[[nodiscard]] Result<Filter> decode_filter(const FilterSource& source);

class FilterCache {
  public:
    explicit FilterCache(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

    /// The filter of these bytes, decoded now if it is not here. `hint` is any number that is likely to mean the same
    /// source in the next run (the operation's offset in the stream); it only saves the hash. The pointer holds the
    /// filter even when the cache drops it, least recently used first, to stay under its limit.
    [[nodiscard]] Result<std::shared_ptr<const Filter>> get(const FilterSource& source, std::uint64_t hint);

    [[nodiscard]] std::size_t size_bytes() const { return size_bytes_; }
    [[nodiscard]] std::uint64_t decoded() const { return decoded_; }  ///< how many streams were decoded so far

  private:
    struct Entry {
        std::uint64_t hash = 0;
        std::vector<std::uint8_t> content;  // the source's bytes, in order
        std::array<std::size_t, 4> sizes{};
        std::size_t size_bytes = 0;
        std::shared_ptr<const Filter> filter;
    };
    using Entries = std::list<Entry>;  // most recently used first

    [[nodiscard]] static bool same(const Entry& entry, const FilterSource& source);
    void drop_last();

    std::size_t limit_bytes_;
    std::size_t size_bytes_ = 0;
    std::uint64_t decoded_ = 0;
    Entries entries_;
    std::unordered_multimap<std::uint64_t, Entries::iterator> by_hash_;
    std::unordered_map<std::uint64_t, std::uint64_t> hash_of_hint_;
};

}  // namespace talpa::npu_model
