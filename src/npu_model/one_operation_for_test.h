// For tests: an operation on small dense int8 (or other) maps given as lists, run by the reference kernels.
#pragma once

#include <vector>

#include "npu_model/aligned_memory_for_test.h"
#include "npu_model/feature_map_access.h"
#include "npu_model/kernels.h"

namespace talpa::npu_model::testing {

inline constexpr npu::ElementType kInt8{1, true}, kUint8{1, false}, kInt16{2, true}, kInt32{4, true};

/// A dense NHWC map; its place in region 1 is chosen by OneOperation.
[[nodiscard]] inline npu::FeatureMap dense_map(std::uint32_t h, std::uint32_t w, std::uint32_t c, npu::ElementType type,
                                               std::int32_t zero_point = 0) {
    npu::FeatureMap fm;
    fm.type = type;
    fm.region = 1;
    fm.zero_point = zero_point;
    fm.height = fm.height0 = fm.height1 = h;
    fm.width = fm.width0 = w;
    fm.depth = c;
    fm.stride_x = std::int64_t{c} * type.bytes;
    fm.stride_y = fm.stride_x * w;
    return fm;
}

/// Maps lie at 0 (IFM), 64 KiB (IFM2) and 128 KiB (OFM) of region 1.
struct OneOperation {
    npu::Operation op;
    Filter filter;
    std::vector<std::uint8_t> lut;
    Findings findings;
    AlignedMemory memory{3u << 16};

    explicit OneOperation(npu::OpKind kind) {
        op.kind = kind;
        op.ofm_global_scale = true;
        op.ofm_scale = {1, 0};
        op.ofm_rounding = npu::Rounding::Natural;
        op.opa_scale = {1, 0};
        op.opb_scale = 1;
        op.activation.raw_min = 0x8000;
        op.activation.raw_max = 0x7FFF;
    }
    std::vector<std::int32_t> run(const std::vector<std::int32_t>& ifm, const std::vector<std::int32_t>& ifm2 = {}) {
        op.ifm2.base[0] = 1u << 16;
        op.ofm.base[0] = 2u << 16;
        const auto fill = [&](const npu::FeatureMap& fm, const std::vector<std::int32_t>& values) {
            for (std::size_t i = 0; i < values.size(); ++i)
                store_element(memory.data() + fm.base[0] + i * fm.type.bytes, fm.type, values[i]);
        };
        fill(op.ifm, ifm);
        fill(op.ifm2, ifm2);
        ThreadPool pool(1);
        Context context{op, {}, &filter, lut, pool, findings};
        context.regions[1] = memory.region();
        findings.start_operation(op);
        if (!run_reference(context)) return {};
        return load_map(memory.data(), op.ofm, 0).values;
    }
};

}  // namespace talpa::npu_model::testing
