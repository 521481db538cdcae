// Convolution and depthwise convolution, plain (ethos-u65, section 5.2). Fully connected layers are 1x1 convolutions;
// transposed ones come with zeros inserted between the elements of the IFM.
#include "npu_model/feature_map_access.h"
#include "npu_model/output.h"
#include "npu_model/reference.h"
#include "npu_model/rounding.h"
#include "npu_model/window.h"

namespace talpa::npu_model {

std::int64_t accumulated(const Context& context, std::int64_t sum) {
    const std::int64_t wrapped = wrap_to(sum, context.op.acc_format == npu::AccFormat::Int40 ? 40 : 32);
    if (wrapped != sum) context.findings.note(Finding::Kind::AccumulatorOverflow);
    return wrapped;
}

namespace {

// From an accumulator to the value before the output stage: per-channel bias and scale, or the global scale without
// bias.
std::int64_t scaled(const Context& context, std::uint32_t channel, std::int64_t sum) {
    const std::int64_t acc = accumulated(context, sum);
    if (context.op.ofm_global_scale) return scale(acc, context.op.ofm_scale, context.op.ofm_rounding);
    const ScaleRecord& r = context.filter->records[channel];
    return scale(acc + r.bias, r.multiplier, r.shift, context.op.ofm_rounding);
}

// `sum(o, taps, ifm)` is one output channel at one position.
template <typename Sum>
void for_each_output(const Context& context, Sum sum) {
    const npu::Operation& op = context.op;
    const OutputStage output(context);
    const DenseMap ifm = load_map(context.memory(op.ifm), op.ifm, op.ifm.zero_point);
    std::vector<StoredTap> taps;
    for (std::uint32_t y = 0; y < op.ofm.height; ++y)
        for (std::uint32_t x = 0; x < op.ofm.width; ++x) {
            stored_taps(op, y, x, taps);  // padding and inserted zeros are the zero point: they add nothing
            for (std::uint32_t o = 0; o < op.ofm.depth; ++o)
                output.store(y, x, o, scaled(context, o, sum(o, taps, ifm)));
        }
}

}  // namespace

Result<void> convolution(const Context& context) {
    const npu::Kernel& kernel = context.op.kernel;
    const std::uint32_t depth = context.op.ifm.depth;
    const std::size_t bank = std::size_t{kernel.height} * kernel.width * depth;
    const std::int16_t* weights = context.filter->weights.data();
    for_each_output(context, [&](std::uint32_t o, const std::vector<StoredTap>& taps, const DenseMap& ifm) {
        std::int64_t sum = 0;
        for (const StoredTap& t : taps) {
            const std::int32_t* in = ifm.at(t.y, t.x);
            const std::int16_t* w = weights + o * bank + (std::size_t{t.ky} * kernel.width + t.kx) * depth;
            for (std::uint32_t i = 0; i < depth; ++i) sum += std::int64_t{in[i]} * w[i];
        }
        return sum;
    });
    return {};
}

Result<void> depthwise(const Context& context) {
    const npu::Kernel& kernel = context.op.kernel;
    const std::size_t bank = std::size_t{kernel.height} * kernel.width;
    const std::int16_t* weights = context.filter->weights.data();
    for_each_output(context, [&](std::uint32_t o, const std::vector<StoredTap>& taps, const DenseMap& ifm) {
        std::int64_t sum = 0;
        for (const StoredTap& t : taps)
            sum += std::int64_t{ifm.at(t.y, t.x)[o]} * weights[o * bank + std::size_t{t.ky} * kernel.width + t.kx];
        return sum;
    });
    return {};
}

}  // namespace talpa::npu_model
