#include "npu_model/strict/block_dependency.h"

#include <algorithm>
#include <optional>

#include "base/core/checked_math.h"
#include "npu/block.h"
#include "npu_model/strict/footprint.h"

namespace talpa::npu_model {

namespace {

using npu::FeatureMap;
using npu::Operation;
using npu::Volume;

bool overlap(const std::vector<Touch>& a, const std::vector<Touch>& b, Effort& effort) {
    for (const Touch& x : a)
        for (const Touch& y : b)
            if (common_bytes(x, y, effort)) return true;
    return false;
}

std::vector<Touch> all_of(const FeatureMap& fm) {
    return touches_of(fm, {0, fm.height, 0, fm.width, 0, fm.depth});
}

// The blocks of an OFM in the order in which they are computed: depth fastest, then width, then height.
class Blocks {
  public:
    explicit Blocks(const Operation& op) : op_(op) {}
    [[nodiscard]] std::uint64_t count() const { return std::uint64_t{rows()} * columns() * slices(); }
    [[nodiscard]] Volume at(std::uint64_t n) const {
        const auto z = static_cast<std::uint32_t>(n % slices()),
                   x = static_cast<std::uint32_t>(n / slices() % columns());
        const auto y = static_cast<std::uint32_t>(n / slices() / columns());
        const auto end = [](std::uint32_t start, std::uint32_t step, std::uint32_t limit) {
            return std::min(start + step, limit);
        };
        Volume v;
        v.y0 = y * op_.block_height;
        v.x0 = x * op_.block_width;
        v.c0 = z * op_.block_depth;
        v.y1 = end(v.y0, op_.block_height, op_.ofm.height);
        v.x1 = end(v.x0, op_.block_width, op_.ofm.width);
        v.c1 = end(v.c0, op_.block_depth, op_.ofm.depth);
        return v;
    }

  private:
    [[nodiscard]] std::uint32_t rows() const { return ceil_div(op_.ofm.height, op_.block_height); }
    [[nodiscard]] std::uint32_t columns() const { return ceil_div(op_.ofm.width, op_.block_width); }
    [[nodiscard]] std::uint32_t slices() const { return ceil_div(op_.ofm.depth, op_.block_depth); }
    const Operation& op_;
};

// The jobs of an operation as reader: for each OFM block, a pass over the input's depth blocks where all channels are
// summed.
class Jobs {
  public:
    explicit Jobs(const Operation& op) : op_(op), blocks_(op) {
        if (npu::sums_over_depth(op.kind)) {
            depth_step_ = npu::ifm_block_depth(op);
            passes_ = ceil_div(op.ifm.depth, depth_step_);
        }
    }
    [[nodiscard]] std::uint64_t count() const { return blocks_.count() * passes_; }
    /// What job n reads of the IFM (or of an IFM2 that is not broadcast).
    [[nodiscard]] Volume input(std::uint64_t n, const FeatureMap& fm) const {
        Volume v = blocks_.at(n / passes_);
        if (npu::is_elementwise(op_.kind)) return v;
        const std::uint32_t factor = op_.upscale == npu::Upscale::None ? 1 : 2;
        // A box of (block - 1) * stride + kernel from the first row on that exists: the rows that padding takes away at
        // the front are not taken off its end.
        const auto window = [&](std::uint32_t& from, std::uint32_t& to, std::uint32_t stride, std::uint32_t kernel,
                                std::uint32_t padding, std::uint32_t limit) {
            const std::uint64_t extent = std::uint64_t{to - from - 1} * stride + kernel;
            const std::uint64_t first = std::uint64_t{from} * stride, start = first > padding ? first - padding : 0;
            from = static_cast<std::uint32_t>(std::min<std::uint64_t>(start / factor, limit - 1));
            to = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(ceil_div<std::uint64_t>(start + extent, factor), from + 1, limit));
        };
        window(v.y0, v.y1, op_.kernel.stride_y, op_.kernel.dilated_height(), op_.padding.top, fm.height);
        window(v.x0, v.x1, op_.kernel.stride_x, op_.kernel.dilated_width(), op_.padding.left, fm.width);
        if (depth_step_ != 0) {
            v.c0 = static_cast<std::uint32_t>(n % passes_) * depth_step_;
            v.c1 = std::min(v.c0 + depth_step_, fm.depth);
        }
        return v;
    }

  private:
    const Operation& op_;
    Blocks blocks_;
    std::uint32_t depth_step_ = 0;  // 0: the block's own channels
    std::uint64_t passes_ = 1;
};

// Do both address one tensor: as it is, a slice of it, or with its axes exchanged? Then every stride that one of them
// takes is one of the other's. Otherwise the tensor was reshaped in between, or the memory is another's.
bool same_map(const FeatureMap& a, const FeatureMap& b) {
    if (a.layout != b.layout || a.type.bytes != b.type.bytes) return false;
    struct Axis {
        std::uint32_t size;
        std::int64_t stride;
    };
    const auto axes = [](const FeatureMap& fm) {
        const std::int64_t es = fm.type.bytes;
        return fm.layout == npu::Layout::Nhwc
                   ? std::array<Axis, 3>{{{fm.height, fm.stride_y}, {fm.width, fm.stride_x}, {fm.depth, es}}}
                   : std::array<Axis, 3>{
                         {{fm.height, fm.stride_y}, {(fm.depth + 15) / 16, fm.stride_c}, {fm.width, 16 * es}}};
    };
    const auto within = [](const std::array<Axis, 3>& part, const std::array<Axis, 3>& whole) {
        return std::all_of(part.begin(), part.end(), [&](const Axis& p) {
            return p.size == 1 || std::any_of(whole.begin(), whole.end(),
                                              [&](const Axis& w) { return w.stride == p.stride && p.size <= w.size; });
        });
    };
    return within(axes(a), axes(b)) || within(axes(b), axes(a));
}

bool uses_lut(const Operation& op) {
    return op.activation.function == npu::Activation::Function::Lut;
}

}  // namespace

unsigned max_block_dependency(const Operation& previous, const Operation& op, const npu::Hardware& hardware,
                              Effort& effort) {
    // Without reserved end banks, accumulators lie where the tables are.
    if (hardware.reserved_end_banks == 0 && uses_lut(previous) && !uses_lut(op)) return 0;
    const std::vector<Touch> written = all_of(previous.ofm);
    // Weights, scale records or a table that the previous operation computes: not seen by the block counting.
    for (const Touch& t : footprint(op, hardware))
        if (t.access.operand == npu::Operand::Weights || t.access.operand == npu::Operand::Scales)
            for (const Touch& w : written)
                if (common_bytes(t, w, effort)) return 0;
    const bool from_ifm = overlap(all_of(op.ifm), written, effort);
    const bool two_maps = npu::has_ifm2(op.kind) && !op.ifm2_is_scalar;
    const bool from_ifm2 = two_maps && overlap(all_of(op.ifm2), written, effort);
    if (!from_ifm && !from_ifm2) return kMaxBlockDependency;
    if (from_ifm && from_ifm2) return 0;
    if (from_ifm2 && (op.ifm2_broadcast_h || op.ifm2_broadcast_w || op.ifm2_broadcast_c)) return 0;
    const FeatureMap& source = from_ifm ? op.ifm : op.ifm2;
    if (!same_map(source, previous.ofm)) return 0;

    const Jobs jobs(op);
    const Blocks blocks(previous);
    const auto limit =
        static_cast<unsigned>(std::min<std::uint64_t>({kMaxBlockDependency, jobs.count(), blocks.count()}));
    unsigned allowed = limit;
    for (unsigned i = 0; i < allowed; ++i) {
        const std::vector<Touch> read = touches_of(source, jobs.input(i, source));
        for (unsigned j = 0; i + j < allowed; ++j)
            if (overlap(read, touches_of(previous.ofm, blocks.at(blocks.count() - 1 - j)), effort)) allowed = i + j;
    }
    return allowed;
}

}  // namespace talpa::npu_model
