#include "npu_model/prepared.h"

#include <algorithm>

namespace talpa::npu_model {

bool PreparedJob::is_of(const npu::Job& other) const {
    if (job.constant_id != other.constant_id || job.stream.data() != other.stream.data() ||
        job.stream.size() != other.stream.size() || job.regions[0].data != other.regions[0].data)
        return false;
    for (std::size_t r = 0; r < npu::kRegionCount; ++r)
        if (job.regions[r].size != other.regions[r].size ||
            (job.regions[r].data == nullptr) != (other.regions[r].data == nullptr))
            return false;
    return true;
}

PreparedJob* PreparedJobs::find(const npu::Job& job) {
    if (job.constant_id == 0) return nullptr;
    const auto found = std::ranges::find_if(jobs_, [&](const PreparedJob& p) { return p.is_of(job); });
    if (found == jobs_.end()) return nullptr;
    jobs_.splice(jobs_.begin(), jobs_, found);
    return &jobs_.front();
}

void PreparedJobs::add(PreparedJob prepared) {
    jobs_.push_front(std::move(prepared));
    std::size_t bytes = 0, count = 0;
    std::erase_if(jobs_, [&](const PreparedJob& p) {
        bytes += p.filter_bytes;
        return ++count > kMaxJobs || bytes > limit_bytes_;
    });
}

}  // namespace talpa::npu_model
