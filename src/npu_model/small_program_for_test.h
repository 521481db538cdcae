// For tests and fuzz seeds: streams written operation by operation, with memory of known sizes.
#pragma once

#include <vector>

#include "npu/host/vector_sink.h"
#include "npu_model/one_operation_for_test.h"
#include "npu_model/weight_encoder_for_test.h"

namespace talpa::npu_model::testing {

struct SmallProgram {
    std::vector<npu::Operation> operations;
    std::array<AlignedMemory, npu::kRegionCount> memory;
    std::vector<std::uint32_t> words;

    /// The job of the operations and a STOP. Everything lives in this object.
    [[nodiscard]] npu::Job job() {
        npu::VectorSink sink;
        npu::StreamWriter writer(sink);
        for (const npu::Operation& op : operations) static_cast<void>(writer.emit(op).value());
        npu::Operation stop;
        stop.kind = npu::OpKind::Stop;
        stop.parameter = 0xFFFF;
        static_cast<void>(writer.emit(stop).value());
        words = std::move(sink.words);
        npu::Job job;
        job.stream = words;
        for (std::size_t r = 0; r < npu::kRegionCount; ++r) job.regions[r] = memory[r].region();
        return job;
    }
};

/// An operation with maps at 0, 1024 and 2048 of region 1, all of the given size; legal, and no scaling.
[[nodiscard]] inline npu::Operation simple_operation(npu::OpKind kind, std::uint32_t h = 4, std::uint32_t w = 4,
                                                     std::uint32_t c = 8, npu::ElementType type = kInt8) {
    npu::Operation op = OneOperation(kind).op;
    op.ifm = op.ifm2 = op.ofm = dense_map(h, w, c, type);
    op.ifm2.base[0] = 1024;
    op.ofm.base[0] = 2048;
    op.ofm_rounding = npu::Rounding::Natural;
    op.block_height = op.block_width = 2;
    op.block_depth = 8;
    return op;
}

/// A 1x1 convolution with identity weights: scale records at 0 and weights at 256 of region 0.
[[nodiscard]] inline SmallProgram identity_convolution(std::uint32_t depth = 8) {
    SmallProgram p;
    npu::Operation op = simple_operation(npu::OpKind::Conv, 4, 4, depth);
    op.ofm_global_scale = false;
    WeightOrder order{.ofm_depth = depth, .ifm_depth = depth, .block_depth = op.block_depth};
    std::vector<std::int16_t> bank(order.bank_size());
    for (std::uint32_t i = 0; i < depth; ++i) bank[std::size_t{i} * depth + i] = 1;
    const auto stream = encode_bank(order, 0, bank);
    p.memory[0] = AlignedMemory(256 + stream.size());
    for (std::uint32_t i = 0; i < depth; ++i) {
        store_le(p.memory[0].data() + 10 * i, i);  // bias i
        store_le(p.memory[0].data() + 10 * i + 5, std::uint32_t{1});
    }
    std::memcpy(p.memory[0].data() + 256, stream.data(), stream.size());
    op.weights[0] = {256, stream.size()};
    op.scales[0] = {0, round_up(10u * depth, 16u)};
    p.memory[1] = AlignedMemory(4096);
    p.operations = {op};
    return p;
}

}  // namespace talpa::npu_model::testing
