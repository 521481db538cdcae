// Values that belong together, by union and find: those that share one quantization, or one scale for each channel.
#pragma once

#include <numeric>
#include <vector>

#include "compiler/graph/graph.h"

namespace talpa::compiler {

class ValueGroups {
  public:
    explicit ValueGroups(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), ValueId{0}); }
    /// The value that stands for the group of `id`.
    ValueId find(ValueId id) {
        while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
        return id;
    }
    /// What stood for the group of `a` stands for both.
    void unite(ValueId a, ValueId b) { parent_[find(b)] = find(a); }

  private:
    std::vector<ValueId> parent_;
};

}  // namespace talpa::compiler
