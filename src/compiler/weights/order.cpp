#include "compiler/weights/order.h"

#include <algorithm>

#include "base/core/checked_math.h"

namespace talpa::compiler {
namespace {

constexpr std::uint32_t kInputLanes = 8;   // IFM ublock depth
constexpr std::uint32_t kSubKernel = 8;    // extent of a sub-kernel before dilation
constexpr std::uint32_t kKernelLanes = 4;  // kernel elements that part-kernel and depthwise take in one step

// One sub-kernel: its corner in the kernel, its size, and the steps that it takes (padded).
struct SubKernel {
    std::uint32_t y, x, height, width, steps;
};

std::vector<SubKernel> sub_kernels(const FilterShape& shape, const StreamOrder& order) {
    std::vector<SubKernel> list;
    const std::uint32_t limit_y = kSubKernel / order.dilation_y, limit_x = kSubKernel / order.dilation_x;
    const std::uint32_t multiple = order.depthwise            ? kKernelLanes
                                   : !order.part_kernel_first ? 1
                                   : order.ifm_16bit          ? kKernelLanes / 2
                                                              : kKernelLanes;
    for (std::uint32_t y = 0; y < shape.height; y += limit_y)
        for (std::uint32_t x = 0; x < shape.width; x += limit_x) {
            const std::uint32_t h = std::min(limit_y, shape.height - y), w = std::min(limit_x, shape.width - x);
            list.push_back({y, x, h, w, round_up(h * w, multiple)});
        }
    return list;
}

class Writer {
  public:
    Writer(std::span<const std::int16_t> dense, const FilterShape& shape, const StreamOrder& order, std::uint32_t first,
           std::uint32_t count, unsigned core)
        : dense_(dense), shape_(shape), order_(order), first_(first), count_(count), core_(core) {}

    std::vector<std::int16_t> run() {
        const std::uint32_t channels = (count_ + order_.cores - 1 - core_) / order_.cores;
        const std::uint32_t block = std::max(1u, (order_.block_depth + order_.cores - 1 - core_) / order_.cores);
        const bool shallow = (order_.part_kernel_first && !order_.depthwise) || order_.ifm_16bit;
        const std::uint32_t input_block = shallow ? 16 : 32;
        const std::vector<SubKernel> subs = sub_kernels(shape_, order_);
        out_.reserve(round_up(channels, order_.ofm_ublock_depth) * std::size_t{shape_.height} * shape_.width *
                     round_up(shape_.ifm_depth, order_.depthwise ? 1u : input_block));
        for (std::uint32_t ob = 0; ob < channels; ob += block) {
            const std::uint32_t in_block = std::min(block, channels - ob);
            if (order_.depthwise) {
                for (const SubKernel& sub : subs) depthwise(sub, ob, in_block);
                continue;
            }
            for (std::uint32_t ib = 0; ib < shape_.ifm_depth; ib += input_block)
                for (const SubKernel& sub : subs) {
                    if (order_.part_kernel_first)
                        part_kernel(sub, ob, in_block, ib, std::min(input_block, shape_.ifm_depth - ib));
                    else
                        depth_first(sub, ob, in_block, ib, input_block);
                }
        }
        return std::move(out_);
    }

  private:
    // The eight (or however many) output channels of a ublock, each with `lanes` inputs of one kernel element.
    void ublock(std::uint32_t ob, std::uint32_t ou, std::uint32_t in_block, const SubKernel& sub, std::uint32_t step,
                std::uint32_t input, std::uint32_t lanes) {
        const bool in_kernel = step < sub.height * sub.width && input < shape_.ifm_depth;
        const std::uint32_t ky = sub.y + step / sub.width, kx = sub.x + step % sub.width;
        const std::uint32_t have = in_kernel ? std::min(lanes, shape_.ifm_depth - input) : 0;
        for (std::uint32_t o = 0; o < order_.ofm_ublock_depth; ++o) {
            std::uint32_t put = 0;
            if (ou + o < in_block && have != 0) {
                const std::uint32_t channel = first_ + (ob + ou + o) * order_.cores + core_;
                const std::int16_t* from =
                    dense_.data() +
                    ((std::size_t{channel} * shape_.height + ky) * shape_.width + kx) * shape_.ifm_depth + input;
                out_.insert(out_.end(), from, from + have);
                put = have;
            }
            out_.insert(out_.end(), lanes - put, std::int16_t{0});
        }
    }
    void depthwise(const SubKernel& sub, std::uint32_t ob, std::uint32_t in_block) {
        for (std::uint32_t ou = 0; ou < in_block; ou += order_.ofm_ublock_depth)
            for (std::uint32_t e = 0; e < sub.steps; ++e) ublock(ob, ou, in_block, sub, e, 0, 1);
    }
    void part_kernel(const SubKernel& sub, std::uint32_t ob, std::uint32_t in_block, std::uint32_t ib,
                     std::uint32_t inputs) {
        for (std::uint32_t io = 0; io < inputs; io += kInputLanes)
            for (std::uint32_t ou = 0; ou < in_block; ou += order_.ofm_ublock_depth)
                for (std::uint32_t e = 0; e < sub.steps; ++e) ublock(ob, ou, in_block, sub, e, ib + io, kInputLanes);
    }
    void depth_first(const SubKernel& sub, std::uint32_t ob, std::uint32_t in_block, std::uint32_t ib,
                     std::uint32_t inputs) {
        for (std::uint32_t ou = 0; ou < in_block; ou += order_.ofm_ublock_depth)
            for (std::uint32_t e = 0; e < sub.steps; ++e)
                for (std::uint32_t ii = 0; ii < inputs; ii += kInputLanes)
                    ublock(ob, ou, in_block, sub, e, ib + ii, kInputLanes);
    }

    std::span<const std::int16_t> dense_;
    const FilterShape& shape_;
    const StreamOrder& order_;
    std::uint32_t first_, count_;
    unsigned core_;
    std::vector<std::int16_t> out_;
};

}  // namespace

std::vector<std::int16_t> stream_symbols(std::span<const std::int16_t> dense, const FilterShape& shape,
                                         const StreamOrder& order, std::uint32_t first, std::uint32_t count,
                                         unsigned core) {
    return Writer(dense, shape, order, first, count, core).run();
}

}  // namespace talpa::compiler
