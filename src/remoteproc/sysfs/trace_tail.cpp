#include "remoteproc/sysfs/trace_tail.h"

#include <algorithm>
#include <vector>

namespace talpa::remoteproc {
namespace {

// Length of the longest end of `old` with which `now` begins (Knuth, Morris, Pratt).
std::size_t overlap(std::string_view old, std::string_view now) {
    if (old.size() > now.size()) old.remove_prefix(old.size() - now.size());
    std::vector<std::uint32_t> border(now.size() + 1, 0);
    for (std::size_t i = 1, k = 0; i < now.size(); ++i) {
        while (k > 0 && now[i] != now[k]) k = border[k];
        if (now[i] == now[k]) ++k;
        border[i + 1] = static_cast<std::uint32_t>(k);
    }
    std::size_t k = 0;
    for (const char c : old) {
        while (k > 0 && (k == now.size() || now[k] != c)) k = border[k];
        if (now[k] == c) ++k;
    }
    return k;
}

}  // namespace

std::string TraceTail::update(std::string snapshot) {
    std::string fresh;
    if (snapshot == before_ || snapshot.empty()) {
        // nothing new, or cleared
    } else if (snapshot.starts_with(before_)) {
        fresh = snapshot.substr(before_.size());
    } else if (const std::size_t kept = overlap(before_, snapshot); kept > 0) {
        fresh = snapshot.substr(kept);
    } else if (snapshot.size() == before_.size()) {
        // A full ring: what changed is in the middle.
        const auto first = std::ranges::mismatch(snapshot, before_).in1 - snapshot.begin();
        std::size_t last = snapshot.size();
        while (last > static_cast<std::size_t>(first) && snapshot[last - 1] == before_[last - 1]) --last;
        fresh = snapshot.substr(static_cast<std::size_t>(first), last - static_cast<std::size_t>(first));
    } else {
        fresh = snapshot;
    }
    before_ = std::move(snapshot);
    return fresh;
}

}  // namespace talpa::remoteproc
