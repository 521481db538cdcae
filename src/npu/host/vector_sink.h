// A sink for command words that grows. Hosts only.
#pragma once

#include <vector>

#include "npu/encoder.h"

namespace talpa::npu {

class VectorSink final : public WordSink {
  public:
    [[nodiscard]] Result<void> put(std::uint32_t word) override {
        words.push_back(word);
        return {};
    }
    std::vector<std::uint32_t> words;
};

}  // namespace talpa::npu
