#include "npu_model/shadow.h"

#include <algorithm>

#include "npu_model/dma.h"
#include "npu_model/model.h"

namespace talpa::npu_model {

Shadow::Shadow(const npu::Job& job, std::size_t shram_size, std::span<const InitialisedRange> initialised) {
    for (std::size_t r = 0; r < npu::kRegionCount; ++r) maps_[r].assign(job.regions[r].size, r == 0 ? 1 : 0);
    maps_[npu::kRegionCount].assign(shram_size, 0);
    for (const InitialisedRange& i : initialised) {
        Flags& map = maps_[i.region % npu::kRegionCount];
        const std::uint64_t begin = std::min<std::uint64_t>(i.range.offset, map.size());
        const std::uint64_t size = std::min<std::uint64_t>(i.range.size, map.size() - begin);
        std::fill_n(map.begin() + static_cast<std::ptrdiff_t>(begin), size, std::uint8_t{1});
    }
}

void Shadow::before(const npu::Operation& op, std::int64_t lut_base, Findings& findings) const {
    if (op.kind == npu::OpKind::Dma) return;
    npu::for_each_box(
        op,
        [&](const npu::Access& access, const npu::Box& box) {
            if (access.is_write) return;
            const Flags& map = flags(access.internal, access.region);
            std::uint64_t missing = 0, first = 0;
            box.merged().for_each_run([&](npu::Extent run) {
                for (std::int64_t i = run.begin; i < run.end; ++i)
                    if (map[static_cast<std::size_t>(i)] == 0 && missing++ == 0) first = static_cast<std::uint64_t>(i);
            });
            if (missing != 0) findings.note_uninitialised(access.region, first, missing);
        },
        lut_base);
}

void Shadow::after(const npu::Operation& op) {
    if (op.kind == npu::OpKind::Dma) {
        run_dma(op.dma, flags(op.dma.src_internal, op.dma.src_region).data(),
                flags(op.dma.dst_internal, op.dma.dst_region).data());
        return;
    }
    npu::for_each_box(op, [&](const npu::Access& access, const npu::Box& box) {
        if (!access.is_write) return;
        Flags& map = flags(access.internal, access.region);
        box.merged().for_each_run(
            [&](npu::Extent run) { std::fill(map.begin() + run.begin, map.begin() + run.end, std::uint8_t{1}); });
    });
}

}  // namespace talpa::npu_model
