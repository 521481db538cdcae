// The DMA as the model runs it (ethos-u65, section 3.4): rows of bytes between regions and the shared RAM.
#pragma once

#include <cstdint>
#include <cstring>

#include "npu/extent.h"
#include "npu/operation.h"

namespace talpa::npu_model {

/// Calls row(source offset, destination offset) for each row of dma.length bytes, in order.
template <typename Row>
void for_each_dma_row(const npu::Dma& dma, Row row) {
    if (dma.length == 0) return;
    const npu::Box source = npu::source_box(dma), destination = npu::destination_box(dma);
    const auto length = static_cast<std::int64_t>(dma.length);
    const std::int64_t rows =
        (dma.dimensions() >= 1 ? std::int64_t{dma.size0} : 1) * (dma.dimensions() >= 2 ? std::int64_t{dma.size1} : 1);
    const auto start = [&](const npu::Box& box, unsigned stride_mode, std::int64_t r) {
        if (stride_mode == 0) return box.begin + r * length;
        return box.begin + r % box.count[0] * box.stride[0] + r / box.count[0] * box.stride[1];
    };
    for (std::int64_t r = 0; r < rows; ++r)
        row(start(source, dma.src_stride_mode, r), start(destination, dma.dst_stride_mode, r));
}

/// Copies. Every byte must have been checked to lie in the memories at `source` and `destination`.
inline void run_dma(const npu::Dma& dma, const std::uint8_t* source, std::uint8_t* destination) {
    for_each_dma_row(dma, [&](std::int64_t from, std::int64_t to) {
        std::memmove(destination + to, source + from, static_cast<std::size_t>(dma.length));
    });
}

}  // namespace talpa::npu_model
