#include "compiler/backend/cpu_call.h"

#include <algorithm>
#include <cstring>

namespace talpa::compiler {
namespace {

/// The elements of a quantized constant, as float32.
std::vector<std::uint8_t> real_bytes(const Value& v) {
    const Quantization& q = *v.quantization;
    const auto count = static_cast<std::size_t>(element_count(v.shape));
    std::size_t inner = 1;
    if (!q.per_tensor())
        for (std::size_t d = static_cast<std::size_t>(q.axis) + 1; d < v.shape.size(); ++d)
            inner *= static_cast<std::size_t>(v.shape[d]);
    std::vector<std::uint8_t> bytes(count * 4);
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t stored = 0;
        const std::uint8_t* from = v.constant->data() + i * dtype_size(q.type);
        switch (q.type) {
            case DType::Int8:
                stored = static_cast<std::int8_t>(*from);
                break;
            case DType::UInt8:
                stored = *from;
                break;
            case DType::Int16:
                stored = static_cast<std::int16_t>(from[0] | from[1] << 8);
                break;
            case DType::Int64:
                std::memcpy(&stored, from, sizeof stored);
                break;
            default:
                stored = static_cast<std::int32_t>(from[0] | std::uint32_t{from[1]} << 8 |
                                                   std::uint32_t{from[2]} << 16 | std::uint32_t{from[3]} << 24);
        }
        const std::size_t c = q.per_tensor() ? 0 : i / inner % q.scales.size();
        const float real = static_cast<float>(stored - q.zero_points[c]) * static_cast<float>(q.scales[c]);
        std::copy_n(reinterpret_cast<const std::uint8_t*>(&real), 4, bytes.data() + 4 * i);
    }
    return bytes;
}

}  // namespace

Shape channels_first(const Shape& s) {
    return {s[0], s[3], s[1], s[2]};
}

void call_quantize(ProgramBuilder& p, std::int32_t from, const Quantization& q, std::int32_t to) {
    p.call("quantized_decomposed::quantize_per_tensor.out",
           {from, p.real(q.scales[0]), p.number(q.zero_points[0]), p.number(q.min), p.number(q.max),
            p.number(scalar_type(q.type)), to, to});
}

void call_dequantize(ProgramBuilder& p, std::int32_t from, const Quantization& q, std::int32_t to) {
    p.call("quantized_decomposed::dequantize_per_tensor.out",
           {from, p.real(q.scales[0]), p.number(q.zero_points[0]), p.number(q.min), p.number(q.max),
            p.number(scalar_type(q.type)), p.null(), to, to});
}

std::int32_t CpuCall::real(ValueId id) {
    const Value& v = graph_[id];
    if (!v.quantization) return value_of_(id);
    if (v.is_constant()) return p.constant(DType::Float32, v.shape, real_bytes(v));
    const std::int32_t t = temporary(v.shape);
    call_dequantize(p, value_of_(id), *v.quantization, t);
    return t;
}

std::int32_t CpuCall::optional_operand(std::size_t i) {
    return i < node_.inputs.size() && node_.inputs[i] != kNoValue ? operand(i) : p.null();
}

std::int32_t CpuCall::out() {
    if (!result().quantization) return raw_result();
    return real_out_ = temporary(result().shape);
}

void CpuCall::finish() {
    if (real_out_ >= 0) call_quantize(p, real_out_, *result().quantization, raw_result());
}

bool CpuCall::stored_alike() const {
    return value(0).quantization == result().quantization && value(0).stored_type() == result().stored_type();
}

void CpuCall::clamp(const Clamp& c, std::int32_t from, std::int32_t to) {
    constexpr double kFar = 1e30;
    p.call("aten::clamp.out",
           {from, c.min > -kFar ? p.real(c.min) : p.null(), c.max < kFar ? p.real(c.max) : p.null(), to, to});
}

void CpuCall::clamped(const Clamp& c, const std::function<void(std::int32_t to)>& run) {
    if (!c.any()) {
        run(out());
    } else {
        const std::int32_t t = temporary(result().shape);
        run(t);
        clamp(c, t, out());
    }
    finish();
}

void CpuCall::spatial(const Clamp& c, const std::function<void(std::int32_t in, std::int32_t to)>& run) {
    std::int32_t in = 0;
    if (beyond_.from != kNoValue) {
        in = real(beyond_.from);
    } else {
        const std::int32_t last = operand(0);
        in = temporary(channels_first(value(0).shape));
        p.call("aten::permute_copy.out", {last, p.integers({0, 3, 1, 2}), in, in});
    }
    const Shape shape = channels_first(result().shape);
    // Where the result is wanted channels first, as real numbers, it is made in its place.
    const bool in_place = beyond_.to != kNoValue && !result().quantization;
    std::int32_t made = in_place && !c.any() ? value_of_(beyond_.to) : temporary(shape);
    run(in, made);
    if (c.any()) {
        const std::int32_t within = in_place ? value_of_(beyond_.to) : temporary(shape);
        clamp(c, made, within);
        made = within;
    }
    if (beyond_.to != kNoValue) {
        if (!in_place) call_quantize(p, made, *result().quantization, value_of_(beyond_.to));
        return;
    }
    const std::int32_t to = out();
    p.call("aten::permute_copy.out", {made, p.integers({0, 2, 3, 1}), to, to});
    finish();
}

}  // namespace talpa::compiler
