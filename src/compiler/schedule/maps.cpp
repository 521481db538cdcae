#include "compiler/schedule/maps.h"

#include <algorithm>

#include "compiler/schedule/prepare.h"

namespace talpa::compiler {

npu::FeatureMap feature_map(const Tensor& t, const Placement& p, const View& v, std::uint32_t first,
                            std::uint32_t end) {
    npu::FeatureMap fm;
    const std::int64_t es = t.type.bytes, row_bytes = static_cast<std::int64_t>(t.row_bytes());
    fm.type = t.type;
    fm.layout = t.layout;
    fm.region = p.region;
    fm.zero_point = v.zero_point;
    fm.height = end - first;
    fm.width = v.width;
    fm.depth = v.depth;
    fm.height0 = fm.height1 = fm.height;
    fm.width0 = fm.width;
    const auto base = static_cast<std::int64_t>(p.address);
    if (t.layout == npu::Layout::Nhwc && p.ring_rows == 0) {
        fm.base[0] = static_cast<std::uint64_t>(base + (v.offset + std::int64_t{first} * v.stride_y) * es);
        fm.stride_x = v.stride_x * es;
        fm.stride_y = v.stride_y * es;
        fm.stride_c = es;
        return fm;
    }
    const Band band = *band_of(t, v);
    const std::uint32_t row = band.first + first * band.step;
    std::int64_t inside = 0;  // of the row
    if (t.layout == npu::Layout::Nhwc) {
        inside = (std::int64_t{band.column} * t.depth + band.channel) * es;
        fm.stride_x = v.width == 1 ? std::int64_t{t.depth} * es : v.stride_x * es;
        fm.stride_c = es;
    } else {
        inside = std::int64_t{band.channel / 16} * 16 * es * t.width +
                 (std::int64_t{band.column} * 16 + band.channel % 16) * es;
        fm.stride_x = 16 * es;
        fm.stride_c = 16 * es * t.width;
    }
    fm.stride_y = band.step * row_bytes;
    if (p.ring_rows == 0) {
        fm.base[0] = static_cast<std::uint64_t>(base + row * row_bytes + inside);
        return fm;
    }
    const std::uint32_t at = row % p.ring_rows;
    fm.base[0] = static_cast<std::uint64_t>(base + at * row_bytes + inside);
    if (at + fm.height > p.ring_rows) {
        // The band goes on at the start of the buffer: tile 2.
        fm.height0 = p.ring_rows - at;
        fm.base[2] = static_cast<std::uint64_t>(base + inside);
    }
    return fm;
}

View whole_of(TensorId id, const Tensor& t, std::int32_t zero_point) {
    return {id, t.height, t.width, t.depth, 0, std::int64_t{t.width} * t.depth, t.depth, zero_point};
}

npu::Operation rows_of_step(const Network& n, const std::vector<Placement>& placements, const Step& step,
                            std::uint32_t first, std::uint32_t end) {
    npu::Operation op = step.op;
    const auto map = [&](const View& v, std::uint32_t from, std::uint32_t to) {
        return feature_map(n.tensors[v.tensor], placements[v.tensor], v, from, to);
    };
    op.ofm = map(step.ofm, first, end);
    if (op.kind == npu::OpKind::Dma) {
        op.ifm = map(step.ifm, first, end);
        op.dma.src_region = op.ifm.region;
        op.dma.src = op.ifm.base[0];
        op.dma.dst_region = op.ofm.region;
        op.dma.dst = op.ofm.base[0];
        op.dma.length = std::uint64_t{end - first} * step.ofm.width * step.ofm.depth * op.ofm.type.bytes;
        return op;
    }
    const RowWindow rows = input_rows(step, first, end);
    if (npu::is_elementwise(op.kind)) {
        op.ifm = map(step.ifm, first, end);
        if (npu::has_ifm2(op.kind) && !op.ifm2_is_scalar)
            op.ifm2 = op.ifm2_broadcast_h ? map(step.ifm2, 0, 1) : map(step.ifm2, first, end);
        else if (op.ifm2_is_scalar)
            op.ifm2.zero_point = step.ifm2.zero_point;
        return op;
    }
    op.ifm = map(step.ifm, rows.first, rows.end);
    op.padding.top = rows.pad_top;
    op.padding.bottom = rows.pad_bottom;
    op.ifm.width = std::min(op.ifm.width, columns_read(op, op.ofm.width));
    op.ifm.width0 = op.ifm.width;
    // A padded average divides by what its windows hold; a stripe without padding needs the number (section 5.5).
    if (op.kind == npu::OpKind::AvgPool && step.op.padding.any() && !op.padding.any()) {
        const std::uint32_t area = op.kernel.height * op.kernel.width;
        std::uint32_t bits = 0;
        while ((std::uint64_t{1} << bits) < area) ++bits;
        op.ofm_scale = {
            static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + bits)) + (std::uint64_t{1} << bits)) / area),
            static_cast<std::uint8_t>(31 + bits)};
    }
    return op;
}

}  // namespace talpa::compiler
