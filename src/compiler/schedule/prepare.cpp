#include "compiler/schedule/prepare.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace talpa::compiler {
namespace {

constexpr std::size_t kByteTable = 256;

// The whole of a tensor, in its own order.
bool is_whole(const Tensor& t, const View& v) {
    return v.offset == 0 && std::uint64_t{v.height} * v.width * v.depth == t.elements() &&
           (v.width == 1 || v.stride_x == std::int64_t{v.depth}) &&
           (v.height == 1 || v.stride_y == std::int64_t{v.depth} * v.width);
}

bool same_extent(const View& a, const View& b) {
    return a.height == b.height && a.width == b.width && a.depth == b.depth;
}

// A step that does nothing but look up a table: MAX with the least number of the type.
bool only_looks_up(const Step& s) {
    return s.table != nullptr && s.op.kind == npu::OpKind::Max && s.op.ifm2_is_scalar && s.op.ifm.type.bytes <= 2 &&
           s.op.ifm2_scalar == s.op.ifm.type.min() && s.op.ofm.type.bytes == s.op.ifm.type.bytes;
}

// Can the step's output pass through a table of 256 bytes, or of 512 points?
bool can_look_up(const Step& s) {
    return s.table == nullptr && s.op.ofm.type.bytes <= 2 && s.op.activation.clip_range == 0;
}

// Two tables of bytes, one after the other, are one.
bool can_join(const Step& first, const Step& second) {
    return first.table != nullptr && first.table->size() == kByteTable && second.table->size() == kByteTable &&
           first.op.ofm.type.bytes == 1 && first.op.activation.clip_range == 0;
}
std::shared_ptr<const Table> joined(const Table& first, const Table& second, bool is_signed) {
    auto table = std::make_shared<Table>(kByteTable);
    // Entry i is of the number i, or i - 128 where numbers have a sign.
    for (std::size_t i = 0; i < kByteTable; ++i) (*table)[i] = second[first[i] ^ (is_signed ? 0x80u : 0u)];
    return table;
}

}  // namespace

void fuse_tables(Network& n) {
    std::vector<std::uint32_t> readers(n.tensors.size()), writers(n.tensors.size());
    std::vector<std::size_t> writer(n.tensors.size());
    for (std::size_t i = 0; i < n.steps.size(); ++i) {
        const Step& s = n.steps[i];
        if (s.ifm.tensor != kNoTensor) ++readers[s.ifm.tensor];
        if (s.ifm2.tensor != kNoTensor) ++readers[s.ifm2.tensor];
        ++writers[s.ofm.tensor];
        writer[s.ofm.tensor] = i;
    }
    std::vector<bool> gone(n.steps.size());
    for (std::size_t i = 0; i < n.steps.size(); ++i) {
        Step& s = n.steps[i];
        const TensorId t = s.ifm.tensor;
        if (!only_looks_up(s) || n.tensors[t].role != Tensor::Role::Internal || readers[t] != 1 || writers[t] != 1)
            continue;
        Step& p = n.steps[writer[t]];
        if (gone[writer[t]] || !(can_look_up(p) || can_join(p, s)) || !is_whole(n.tensors[t], p.ofm) ||
            !is_whole(n.tensors[t], s.ifm))
            continue;
        if (p.op.ofm.type.is_signed != s.op.ofm.type.is_signed || p.op.ofm.type.bytes != s.op.ofm.type.bytes) continue;
        if (same_extent(p.ofm, s.ofm)) {
            const std::int32_t zero = p.ofm.zero_point;
            p.ofm = s.ofm;
            p.ofm.zero_point = zero;
        } else if (is_whole(n.tensors[s.ofm.tensor], s.ofm)) {
            p.ofm.tensor = s.ofm.tensor;  // the same elements in the same order
        } else {
            continue;
        }
        p.table = p.table == nullptr ? s.table : joined(*p.table, *s.table, s.op.ofm.type.is_signed);
        p.op.activation.function = npu::Activation::Function::Lut;
        writer[p.ofm.tensor] = writer[t];
        gone[i] = true;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n.steps.size(); ++i)
        if (!gone[i]) {
            if (kept != i) n.steps[kept] = std::move(n.steps[i]);
            ++kept;
        }
    n.steps.resize(kept);
}

bool slice_filters(Network& n) {
    constexpr std::uint64_t kFewPositions = 64, kLarge = 128 << 10, kSlice = 56 << 10;
    constexpr std::uint32_t kStep = 16;
    std::vector<Step> steps;
    steps.reserve(n.steps.size());
    bool any = false;
    for (Step& s : n.steps) {
        const bool large = s.filter && !s.filter->depthwise && s.filter->shape.size() >= kLarge &&
                           std::uint64_t{s.ofm.height} * s.ofm.width <= kFewPositions;
        if (!large) {
            steps.push_back(std::move(s));
            continue;
        }
        const FilterShape& whole = s.filter->shape;
        const std::size_t each = whole.size() / whole.ofm_depth;
        const auto depth = std::max<std::uint32_t>(kStep, static_cast<std::uint32_t>(kSlice / each) / kStep * kStep);
        for (std::uint32_t from = 0; from < whole.ofm_depth; from += depth) {
            const std::uint32_t count = std::min(depth, whole.ofm_depth - from);
            auto part = std::make_shared<Filter>();
            part->shape = whole;
            part->shape.ofm_depth = count;
            const auto begin = static_cast<std::ptrdiff_t>(from * each),
                       end = static_cast<std::ptrdiff_t>((from + count) * each);
            part->weights.assign(s.filter->weights.begin() + begin, s.filter->weights.begin() + end);
            part->records.assign(s.filter->records.begin() + from, s.filter->records.begin() + from + count);
            Step slice = s;
            slice.filter = std::move(part);
            slice.ofm.offset += from;
            slice.ofm.depth = count;
            steps.push_back(std::move(slice));
        }
        any = true;
    }
    n.steps = std::move(steps);
    return any;
}

std::optional<Band> band_of(const Tensor& t, const View& v) {
    const std::int64_t row = std::int64_t{t.width} * t.depth;
    Band b;
    if (v.offset < 0) return std::nullopt;
    b.first = static_cast<std::uint32_t>(v.offset / row);
    b.column = static_cast<std::uint32_t>(v.offset % row / t.depth);
    b.channel = static_cast<std::uint32_t>(v.offset % t.depth);
    if (v.width > 1 && v.stride_x != std::int64_t{t.depth}) return std::nullopt;
    if (b.column + v.width > t.width || b.channel + v.depth > t.depth) return std::nullopt;
    if (v.height > 1) {
        if (v.stride_y <= 0 || v.stride_y % row != 0) return std::nullopt;
        b.step = static_cast<std::uint32_t>(v.stride_y / row);
    }
    if (b.first + std::uint64_t{b.step} * (v.height - 1) >= t.height) return std::nullopt;
    return b;
}

void choose_layouts(Network& n) {
    constexpr std::uint32_t kBrick = 16, kShallow = 8;
    std::vector<bool> bricks(n.tensors.size()), windows(n.tensors.size());
    for (const Step& s : n.steps)
        if (!npu::is_elementwise(s.op.kind)) windows[s.ifm.tensor] = windows[s.ofm.tensor] = true;
    for (std::size_t i = 0; i < n.tensors.size(); ++i) {
        const Tensor& t = n.tensors[i];
        // Bricks are for windows. Where there are none, they would take memory for channels that there are not.
        bricks[i] = t.role == Tensor::Role::Internal && t.depth > kShallow && t.width > 0 &&
                    (windows[i] || t.depth % kBrick == 0);
    }
    const auto look = [&](const View& v) {
        if (v.tensor == kNoTensor || !bricks[v.tensor]) return;
        const Tensor& t = n.tensors[v.tensor];
        const auto band = band_of(t, v);
        // A part written must not end inside a brick that another writes too: it begins at one.
        if (!band || band->channel % kBrick != 0) bricks[v.tensor] = false;
    };
    for (const Step& s : n.steps) {
        look(s.ifm);
        if (s.ifm2.tensor != kNoTensor) look(s.ifm2);
        look(s.ofm);
        if (s.op.kind == npu::OpKind::Dma) bricks[s.ifm.tensor] = bricks[s.ofm.tensor] = false;  // copies bytes
        if (s.op.kind == npu::OpKind::ReduceSum) bricks[s.ifm.tensor] = false;  // 32 bits: rows only (section 5.7)
    }
    for (std::size_t i = 0; i < n.tensors.size(); ++i)
        n.tensors[i].layout = bricks[i] ? npu::Layout::Nhcwb16 : npu::Layout::Nhwc;
}

}  // namespace talpa::compiler
