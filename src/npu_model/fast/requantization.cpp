#include "npu_model/fast/requantization.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "npu_model/output.h"
#include "npu_model/rounding.h"

namespace talpa::npu_model::fast {
namespace {

ScaleRecord record_of(const Context& context, std::size_t channel) {
    const npu::Operation& op = context.op;
    if (op.ofm_global_scale || context.filter->records.empty()) return {0, op.ofm_scale.multiplier, op.ofm_scale.shift};
    return context.filter->records[channel];
}

// A multiplier of 2^31 or more, halved if it is even: both terms of the rounded product are then even too.
ScaleRecord reduced(ScaleRecord r) {
    if (r.multiplier >= 0x80000000u && r.multiplier % 2 == 0 && r.shift >= 2) {
        r.multiplier /= 2;
        --r.shift;
    }
    return r;
}

// Bits by which a value must go left first, so that a shift of at least one remains after the upper half is taken.
unsigned left_shift(const ScaleRecord& r) {
    return r.shift < 33 ? 33u - r.shift : 0;
}

// Does each step of the narrow form stay within 32 bits? `bound`: of the absolute value that is scaled.
bool fits_narrow(const ScaleRecord& r, std::int64_t bound, std::int32_t offset) {
    constexpr std::int64_t kLimit = std::int64_t{1} << 31;
    const unsigned left = left_shift(r), shift = r.shift + left - 32u;
    if (shift > 22 || bound >= kLimit >> left) return false;
    const auto high = static_cast<std::int64_t>((static_cast<std::uint64_t>(bound << left) * r.multiplier) >> 32) + 1;
    const std::int64_t round = (std::int64_t{1} << (shift - 1)) + (std::abs(std::int64_t{offset}) << shift);
    return high + round < kLimit;
}

}  // namespace

std::optional<ByteRange> byte_range(const npu::Operation& op, std::int32_t zero_point) {
    if (op.ofm.type.bytes != 1) return std::nullopt;
    const bool is_signed = op.ofm.type.is_signed;
    std::int32_t low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
    const std::uint8_t clip = op.activation.clip_range;
    if (clip != 0 && clip != (is_signed ? 3 : 2)) return std::nullopt;
    low = std::max(low, op.activation.min(is_signed));
    high = std::min(high, op.activation.max(is_signed));
    if (low > high) return std::nullopt;
    const std::int32_t shift = is_signed ? 0 : 128;
    if (std::abs(zero_point - shift) > 255) return std::nullopt;
    return ByteRange{zero_point - shift, static_cast<std::int8_t>(low - shift), static_cast<std::int8_t>(high - shift),
                     static_cast<std::uint8_t>(is_signed ? 0 : 0x80)};
}

void byte_table(const Context& context, std::uint8_t* table) {
    const unsigned turn = context.op.ofm.type.is_signed ? 0x80 : 0;
    for (unsigned i = 0; i < 256; ++i) table[i] = context.lut[i ^ turn];
}

namespace {

// Fills one lane. `bias` of the block is the caller's.
void set_lane(ChannelBlock& b, std::size_t lane, const ScaleRecord& record, bool narrow, std::int32_t offset) {
    b.multiplier[lane] = static_cast<std::int32_t>(record.multiplier);
    if (lane % 2 == 1) b.multiplier_odd[lane - 1] = b.multiplier[lane];
    if (!narrow) {
        b.shift[lane] = record.shift;
        return;
    }
    const unsigned left = left_shift(record), shift = record.shift + left - 32u;
    b.left[lane] = static_cast<std::int32_t>(left);
    b.large[lane] = record.multiplier >= 0x80000000u ? -1 : 0;
    if (left > 0 || b.large[lane] != 0) b.is_special = 1;
    b.shift[lane] = static_cast<std::int32_t>(shift);
    b.round[lane] = (1 << (shift - 1)) + offset * (1 << shift);
}

Epilogue make_epilogue(const ByteRange& range, bool narrow, npu::Rounding rounding) {
    Epilogue e;
    e.wide = !narrow;
    e.tfl = rounding == npu::Rounding::Tfl;
    e.offset = range.offset;
    e.low = range.low;
    e.high = range.high;
    e.flip = range.flip;
    return e;
}

}  // namespace

std::optional<Requantization> plan_requantization(const Context& context, std::span<const ChannelSums> sums,
                                                  ActivationCode code) {
    const npu::Operation& op = context.op;
    const std::int64_t zero_point = op.ifm.zero_point;
    const std::int64_t largest =
        std::max(std::abs(op.ifm.type.min() - zero_point), std::abs(op.ifm.type.max() - zero_point));

    const auto range = byte_range(op, op.ofm.zero_point);
    const bool natural = op.ofm_rounding == npu::Rounding::Natural;
    bool narrow = natural, wide = op.ofm_rounding != npu::Rounding::Truncate;
    for (std::size_t c = 0; c < sums.size(); ++c) {
        const ScaleRecord record = record_of(context, c);
        const std::int64_t bound = sums[c].magnitude * largest + std::abs(record.bias);
        if (bound >= (std::int64_t{1} << 31)) return std::nullopt;
        const ScaleRecord scale = natural ? reduced(record) : record;
        narrow = narrow && range && fits_narrow(scale, bound, range->offset);
        wide = wide && scale.multiplier < 0x80000000u;
    }
    const bool function = op.activation.function == npu::Activation::Function::Tanh ||
                          op.activation.function == npu::Activation::Function::Sigmoid;
    Requantization r;
    r.raw = !range || function || (!narrow && !wide);
    if (!r.raw) r.epilogue = make_epilogue(*range, narrow, op.ofm_rounding);
    r.blocks.resize((sums.size() + kLanes - 1) / kLanes, ChannelBlock{});
    for (std::size_t c = 0; c < sums.size(); ++c) {
        const ScaleRecord record = record_of(context, c);
        ChannelBlock& b = r.blocks[c / kLanes];
        // Sums of the coded activations may leave 32 bits on the way; they come back modulo 2^32, where the true sum
        // fits.
        b.bias[c % kLanes] = static_cast<std::int32_t>(static_cast<std::uint32_t>(
            static_cast<std::uint64_t>(record.bias - (zero_point + code.added) * sums[c].sum)));
        if (!r.raw) set_lane(b, c % kLanes, natural ? reduced(record) : record, narrow, range->offset);
    }
    return r;
}

std::optional<Requantization> uniform_requantization(const npu::Operation& op, npu::Scale scale, npu::Rounding rounding,
                                                     const ByteRange& range, std::int64_t largest) {
    const bool function = op.activation.function == npu::Activation::Function::Tanh ||
                          op.activation.function == npu::Activation::Function::Sigmoid;
    if (function || rounding == npu::Rounding::Truncate || largest >= (std::int64_t{1} << 31)) return std::nullopt;
    // Up to shift 31 TFL rounds as natural does.
    if (scale.shift <= 31) rounding = npu::Rounding::Natural;
    ScaleRecord record{0, scale.multiplier, scale.shift};
    if (rounding == npu::Rounding::Natural) record = reduced(record);
    const bool narrow = rounding == npu::Rounding::Natural && fits_narrow(record, largest, range.offset);
    if (!narrow && record.multiplier >= 0x80000000u) return std::nullopt;
    Requantization r;
    r.epilogue = make_epilogue(range, narrow, rounding);
    r.blocks.resize(1, ChannelBlock{});
    for (std::size_t lane = 0; lane < kLanes; ++lane) set_lane(r.blocks[0], lane, record, narrow, range.offset);
    return r;
}

struct OutputFinisher::State {
    explicit State(const Context& c) : context{c.op, c.regions, c.filter, c.lut, c.pool, findings}, output(context) {
        findings.start_operation(c.op);
    }
    Findings findings;  // dropped: only the reference reports
    Context context;
    OutputStage output;
};

OutputFinisher::OutputFinisher(const Context& context) : state_(std::make_unique<State>(context)) {}
OutputFinisher::~OutputFinisher() = default;

void OutputFinisher::finish_raw(const std::int32_t* accumulators, std::uint32_t y, std::uint32_t pixels,
                                std::uint32_t c0, std::uint32_t vectors) const {
    const npu::Operation& op = state_->context.op;
    const std::uint32_t channels = std::min(op.ofm.depth - c0, vectors * kLanes);
    for (std::uint32_t x = 0; x < pixels; ++x)
        for (std::uint32_t c = 0; c < channels; ++c) {
            const ScaleRecord record = record_of(state_->context, c0 + c);
            const std::int64_t v = scale(accumulators[std::size_t{x} * vectors * kLanes + c], record.multiplier,
                                         record.shift, op.ofm_rounding);
            state_->output.store(y, x, c0 + c, v);
        }
}

}  // namespace talpa::npu_model::fast
