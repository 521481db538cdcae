// Who wrote which byte last: an interval map a region. Ranges are half open.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "npu/extent.h"

namespace talpa::inspect {

class Owners {
  public:
    void assign(npu::Extent e, int owner) {
        if (e.empty()) return;
        cut(e.begin);
        cut(e.end);
        map_.erase(map_.lower_bound(e.begin), map_.lower_bound(e.end));
        map_[e.begin] = {e.end, owner};
    }
    /// Calls fn(owner) for each piece that lies in the range, at most once in a row for the same owner.
    template <typename Fn>
    void visit(npu::Extent e, Fn&& fn) const {
        auto it = map_.upper_bound(e.begin);
        if (it != map_.begin() && std::prev(it)->second.end > e.begin) --it;
        for (; it != map_.end() && it->first < e.end; ++it) fn(it->second.owner);
    }

  private:
    struct Piece {
        std::int64_t end = 0;
        int owner = 0;
    };
    void cut(std::int64_t at) {
        auto it = map_.upper_bound(at);
        if (it == map_.begin()) return;
        --it;
        if (it->first == at || it->second.end <= at) return;
        map_[at] = it->second;
        it->second.end = at;
    }
    std::map<std::int64_t, Piece> map_;
};

}  // namespace talpa::inspect
