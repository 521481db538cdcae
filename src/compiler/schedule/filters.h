// Encodes the weights of steps for the blocks that were chosen.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "compiler/schedule/plan.h"

namespace talpa::compiler {

[[nodiscard]] EncodedFilter encode_filter(const Step& step, const Block& block, const npu::Hardware& hardware);

/// Bytes that the weights of a step will take, about.
[[nodiscard]] std::uint64_t estimated_weight_bytes(const Step& step);
[[nodiscard]] std::uint64_t record_bytes(const Step& step);

/// Encodes filters and keeps what it has encoded, for plans are made several times.
class FilterEncoder {
  public:
    explicit FilterEncoder(const npu::Hardware& hardware) : hardware_(hardware) {}

    /// The filters of all steps that have one (`blocks` as steps), on as many threads as the machine has.
    [[nodiscard]] std::vector<EncodedFilter> encode(const Network& network, const std::vector<Block>& blocks);

  private:
    using Key = std::tuple<const Filter*, std::uint32_t, bool>;
    const npu::Hardware& hardware_;
    std::map<Key, EncodedFilter> known_;
};

}  // namespace talpa::compiler
