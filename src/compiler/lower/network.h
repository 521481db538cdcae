// What a part of the graph becomes on the NPU before anything has an address: tensors, and block operations over views
// of them. Scheduling cuts these steps into stripes and gives the tensors memory; nothing here depends on either.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compiler/weights/encoder.h"
#include "compiler/weights/order.h"
#include "npu/operation.h"

namespace talpa::compiler {

using TensorId = std::uint32_t;
inline constexpr TensorId kNoTensor = std::numeric_limits<TensorId>::max();

/// A piece of memory. Elements are counted row-major over (height, width, depth) whatever the layout: where element n
/// really lies is decided when the layout is.
struct Tensor {
    enum class Role : std::uint8_t { Internal, Input, Output, Constant };

    std::string name;
    npu::ElementType type{1, true};
    std::uint32_t height = 1, width = 1, depth = 1;
    Role role = Role::Internal;
    std::vector<std::uint8_t> data;  ///< of a constant
    npu::Layout layout = npu::Layout::Nhwc;

    [[nodiscard]] std::uint64_t elements() const { return std::uint64_t{height} * width * depth; }
    [[nodiscard]] std::uint32_t stored_depth() const {
        return layout == npu::Layout::Nhcwb16 ? (depth + 15) / 16 * 16 : depth;
    }
    [[nodiscard]] std::uint64_t row_bytes() const { return std::uint64_t{width} * stored_depth() * type.bytes; }
    [[nodiscard]] std::uint64_t bytes() const { return height * row_bytes(); }
};

/// Part of a tensor as an operation sees it: element (y, x, c) is the tensor's element offset + y*stride_y +
/// x*stride_x + c.
struct View {
    TensorId tensor = kNoTensor;
    std::uint32_t height = 1, width = 1, depth = 1;
    std::int64_t offset = 0, stride_y = 0, stride_x = 0;
    std::int32_t zero_point = 0;

    friend bool operator==(const View&, const View&) = default;
};

/// Weights with their zero points removed, and the scale records of the output channels.
struct Filter {
    FilterShape shape;
    bool depthwise = false;
    std::vector<std::int16_t> weights;
    std::vector<ScaleRecord> records;
};

/// A table of the activation unit, as it lies in the shared RAM (ethos-u65, section 6.2).
using Table = std::vector<std::uint8_t>;

/// One block operation over whole feature maps.
struct Step {
    npu::Operation op;  ///< kind, kernel, padding, scaling, activation, rounding, broadcasts; no maps, no block
    View ifm, ifm2, ofm;
    std::shared_ptr<const Filter> filter;
    std::shared_ptr<const Table> table;
    std::uint32_t node = 0;  ///< of the graph
};

/// Where a value of the graph lies once it is computed: element (i, j, …) is the tensor's element offset +
/// i*strides[0] + j*strides[1] + …
struct ValuePlace {
    std::uint32_t value = 0;  ///< of the graph
    TensorId tensor = kNoTensor;
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;
};

struct Network {
    std::vector<Tensor> tensors;
    std::vector<Step> steps;  ///< in an order that can be executed
    std::vector<TensorId> inputs, outputs;
    std::vector<ValuePlace> values;  ///< that nodes compute; for those who look at a run
};

/// Rows of the IFM that rows [first, end) of the OFM need, and what of the padding is left for them.
struct RowWindow {
    std::uint32_t first = 0, end = 0;  ///< rows of the IFM view
    std::uint32_t pad_top = 0, pad_bottom = 0;
};
[[nodiscard]] RowWindow input_rows(const Step& step, std::uint32_t first, std::uint32_t end);

/// Columns that the whole operation reads (ethos-u65, section 4.2), before upscaling.
[[nodiscard]] std::uint32_t columns_read(const npu::Operation& op, std::uint32_t ofm_width);

/// "conv", "add" … with sizes, for dumps.
[[nodiscard]] std::string describe(const Network& network, const Step& step);

}  // namespace talpa::compiler
