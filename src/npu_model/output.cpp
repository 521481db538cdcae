#include "npu_model/output.h"

#include <algorithm>

#include "npu_model/feature_map_access.h"

namespace talpa::npu_model {

namespace {

struct ValueRange {
    std::int64_t min, max;
    bool is_signed;
};

// The clip field of ACTIVATION: 0 the OFM's own range, else a narrower one.
ValueRange clip_range(const npu::Operation& op) {
    switch (op.activation.clip_range) {
        case 2:
            return {0, 255, false};
        case 3:
            return {-128, 127, true};
        case 5:
            return {-32768, 32767, true};
        default:
            return {op.ofm.type.min(), op.ofm.type.max(), op.ofm.type.is_signed};
    }
}

}  // namespace

OutputStage::OutputStage(const Context& context, OutputZeroPoint zero_point)
    : op_(context.op),
      memory_(context.memory(context.op.ofm)),
      lut_(context.lut),
      findings_(context.findings),
      zero_point_(zero_point == OutputZeroPoint::Added ? context.op.ofm.zero_point : 0) {
    const ValueRange range = clip_range(op_);
    low_ = range.min;
    high_ = range.max;
    // A 32-bit OFM saturates and does not look at MIN and MAX, which have 16 bits only.
    if (op_.ofm.type.bytes == 4 && op_.activation.clip_range == 0) {
        low_ = INT32_MIN;
        high_ = INT32_MAX;
        return;
    }
    low_ = std::max<std::int64_t>(low_, op_.activation.min(range.is_signed));
    high_ = std::min<std::int64_t>(high_, op_.activation.max(range.is_signed));
}

std::int64_t OutputStage::finish(std::int64_t v) const {
    using Function = npu::Activation::Function;
    if (op_.activation.function == Function::Tanh) v = tanh_q15(v);
    if (op_.activation.function == Function::Sigmoid) v = sigmoid_q15(v);
    // Far from the ends of 64 bits, so that the zero point cannot overflow; the clamp below is narrower.
    std::int64_t t = std::clamp(v, INT64_MIN / 2, INT64_MAX / 2) + zero_point_;
    if (op_.ofm.type.bytes == 4 && op_.activation.clip_range == 0 && (t < low_ || t > high_))
        findings_.note(Finding::Kind::ResultOverflow);
    t = std::min(std::max(t, low_), high_);  // not std::clamp: a program may set MIN above MAX
    if (op_.activation.function != Function::Lut) return t;
    bool in_range = true;
    t = look_up(op_, lut_, t, in_range);
    if (!in_range) findings_.note(Finding::Kind::LutIndexOutOfRange);
    return t;
}

void OutputStage::store(std::uint32_t y, std::uint32_t x, std::uint32_t c, std::int64_t v) const {
    store_element(memory_ + op_.ofm.offset_of(y, x, c), op_.ofm.type, finish(v));
}

}  // namespace talpa::npu_model
