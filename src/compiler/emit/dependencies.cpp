#include "compiler/emit/dependencies.h"

#include <algorithm>

#include "npu/block.h"
#include "npu/extent.h"

namespace talpa::compiler {
namespace {

using npu::Extent;
using npu::FeatureMap;
using npu::Operation;
using npu::Volume;

// The bytes of part of a map as sorted runs, or as one hull where there are many.
std::vector<Extent> runs_of(const FeatureMap& fm, const Volume& part) {
    constexpr std::int64_t kMostRuns = 600;
    std::vector<Extent> runs;
    const npu::FeatureMapBoxes boxes = npu::boxes_of(fm, part);
    std::int64_t count = 0;
    for (unsigned i = 0; i < boxes.count; ++i) count += boxes.boxes[i].merged().runs();
    for (unsigned i = 0; i < boxes.count; ++i) {
        const npu::Box box = boxes.boxes[i].merged();
        if (count > kMostRuns)
            runs.push_back(box.hull());
        else
            box.for_each_run([&](Extent e) { runs.push_back(e); });
    }
    std::sort(runs.begin(), runs.end(), [](Extent a, Extent b) { return a.begin < b.begin; });
    return runs;
}

bool meet(const std::vector<Extent>& a, const std::vector<Extent>& b) {
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        if (a[i].overlaps(b[j])) return true;
        if (a[i].end <= b[j].end)
            ++i;
        else
            ++j;
    }
    return false;
}

Volume whole(const FeatureMap& fm) {
    return {0, fm.height, 0, fm.width, 0, fm.depth};
}

std::uint32_t blocks_along(std::uint32_t size, std::uint32_t block) {
    return (size + block - 1) / block;
}

struct Grid {
    std::uint32_t rows, columns, slices;
    explicit Grid(const Operation& op)
        : rows(blocks_along(op.ofm.height, op.block_height)),
          columns(blocks_along(op.ofm.width, op.block_width)),
          slices(blocks_along(op.ofm.depth, op.block_depth)) {}
    [[nodiscard]] std::uint64_t count() const { return std::uint64_t{rows} * columns * slices; }
};

Volume output_block(const Operation& op, std::uint64_t n) {
    const Grid g(op);
    const auto z = static_cast<std::uint32_t>(n % g.slices), x = static_cast<std::uint32_t>(n / g.slices % g.columns),
               y = static_cast<std::uint32_t>(n / g.slices / g.columns);
    return {y * op.block_height, std::min((y + 1) * op.block_height, op.ofm.height),
            x * op.block_width,  std::min((x + 1) * op.block_width, op.ofm.width),
            z * op.block_depth,  std::min((z + 1) * op.block_depth, op.ofm.depth)};
}

std::uint32_t passes(const Operation& op) {
    return npu::sums_over_depth(op.kind) ? blocks_along(op.ifm.depth, npu::ifm_block_depth(op)) : 1;
}

// What job n of an operation reads of its map: rows and columns of a full window, generously.
Volume job_input(const Operation& op, std::uint64_t n, const FeatureMap& fm) {
    const std::uint32_t depth_passes = passes(op);
    Volume v = output_block(op, n / depth_passes);
    if (npu::is_elementwise(op.kind)) return v;
    const std::uint32_t factor = op.upscale == npu::Upscale::None ? 1 : 2;
    const auto window = [&](std::uint32_t& from, std::uint32_t& to, std::uint32_t stride, std::uint32_t kernel,
                            std::uint32_t pad, std::uint32_t size) {
        const std::uint64_t start = std::max<std::int64_t>(0, std::int64_t{from} * stride - pad);
        const std::uint64_t end = start + std::uint64_t{to - from - 1} * stride + kernel;
        from = static_cast<std::uint32_t>(std::min<std::uint64_t>(start / factor, size - 1));
        to = static_cast<std::uint32_t>(std::clamp<std::uint64_t>((end + factor - 1) / factor, from + 1, size));
    };
    window(v.y0, v.y1, op.kernel.stride_y, op.kernel.dilated_height(), op.padding.top, fm.height);
    window(v.x0, v.x1, op.kernel.stride_x, op.kernel.dilated_width(), op.padding.left, fm.width);
    if (npu::sums_over_depth(op.kind)) {
        const std::uint32_t step = npu::ifm_block_depth(op);
        v.c0 = static_cast<std::uint32_t>(n % depth_passes) * step;
        v.c1 = std::min(v.c0 + step, fm.depth);
    } else {
        v.c1 = std::min(v.c1, fm.depth);
        v.c0 = std::min(v.c0, v.c1 - 1);
    }
    return v;
}

// One map is part of the other, axis by axis: only then do blocks of one say something about rows of the other.
bool is_part(const FeatureMap& a, const FeatureMap& b) {
    if (a.layout != b.layout || a.type.bytes != b.type.bytes) return false;
    const bool bricks = a.layout == npu::Layout::Nhcwb16;
    const auto slices = [](const FeatureMap& fm) { return (fm.depth + 15) / 16; };
    if (a.height > 1 && (a.stride_y != b.stride_y || a.height > b.height)) return false;
    if (a.width > 1 && ((!bricks && a.stride_x != b.stride_x) || a.width > b.width)) return false;
    if (bricks && slices(a) > 1 && a.stride_c != b.stride_c) return false;
    return a.depth <= b.depth;
}
bool same_memory_order(const FeatureMap& a, const FeatureMap& b) {
    if (a.stride_y == 0 || a.stride_x == 0) return false;
    return is_part(a, b) || is_part(b, a);
}

// Rows beyond the first tile and the like are rare; they are treated as one.
std::vector<Extent> all_runs(const FeatureMap& fm) {
    return runs_of(fm, whole(fm));
}

}  // namespace

unsigned block_dependency(const Operation& previous, const Operation& op, const npu::Hardware& hw) {
    constexpr unsigned kMost = 3;
    const auto uses_table = [](const Operation& o) { return o.activation.function == npu::Activation::Function::Lut; };
    if (hw.reserved_end_banks == 0 && uses_table(previous) != uses_table(op)) return 0;
    const bool second = npu::has_ifm2(op.kind) && !op.ifm2_is_scalar;
    const auto reads = [&](const FeatureMap& fm) {
        if (fm.region != previous.ofm.region) return false;
        if (!npu::hull(fm).overlaps(npu::hull(previous.ofm))) return false;
        return meet(all_runs(fm), all_runs(previous.ofm));
    };
    const bool first_meets = reads(op.ifm), second_meets = second && reads(op.ifm2);
    if (!first_meets && !second_meets) return kMost;
    if (first_meets && second_meets) return 0;
    if (second_meets && (op.ifm2_broadcast_h || op.ifm2_broadcast_w || op.ifm2_broadcast_c)) return 0;
    const FeatureMap& source = first_meets ? op.ifm : op.ifm2;
    if (!same_memory_order(source, previous.ofm)) return 0;
    const std::uint64_t jobs = Grid(op).count() * passes(op), blocks = Grid(previous).count();
    auto allowed = static_cast<unsigned>(std::min<std::uint64_t>({kMost, jobs, blocks}));
    for (unsigned i = 0; i < allowed; ++i) {
        const std::vector<Extent> read = runs_of(source, job_input(op, i, source));
        for (unsigned j = 0; i + j < allowed; ++j)
            if (meet(read, runs_of(previous.ofm, output_block(previous, blocks - 1 - j)))) allowed = i + j;
    }
    return allowed;
}

bool conflict(const Operation& a, const Operation& b, const npu::Hardware& hw) {
    bool found = false;
    npu::for_each_access(
        a,
        [&](const npu::Access& x, Extent ex) {
            if (found) return;
            npu::for_each_access(
                b,
                [&](const npu::Access& y, Extent ey) {
                    if (!x.is_write && !y.is_write) return;
                    if (x.internal != y.internal || (!x.internal && x.region != y.region)) return;
                    if (ex.overlaps(ey)) found = true;
                },
                hw.lut_base());
        },
        hw.lut_base());
    return found;
}

}  // namespace talpa::compiler
