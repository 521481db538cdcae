// What the lowering of every operator works with: where values lie, how an operation is put together, how elements are
// copied. One object lowers one network.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/host/error.h"
#include "compiler/graph/graph.h"
#include "compiler/lower/network.h"
#include "compiler/lower/place.h"
#include "compiler/lower/rescale.h"

namespace talpa::compiler {

[[nodiscard]] npu::ElementType element_type(DType type);

/// Integer limits of a result: its quantization's, narrowed by a fused clamp.
struct Limits {
    std::int32_t min = -128, max = 127;
};
[[nodiscard]] Limits limits_of(const Value& result, const Clamp& clamp);
void set_limits(npu::Operation& op, npu::ElementType ofm, Limits limits);

/// An operation of a kind with everything else at rest: no clamp beyond the type, scale 1.
[[nodiscard]] npu::Operation plain_operation(npu::OpKind kind, npu::ElementType ifm, npu::ElementType ofm);

/// One operand of an elementwise operation, broadcast to the result's shape.
struct Operand {
    Place place;  ///< strides of the result's dimensions, 0 where repeated
    std::int32_t zero_point = 0;
    npu::ElementType type{1, true};
    bool is_scalar = false;
    std::int32_t scalar = 0;  ///< stored number
};

class Lowerer {
  public:
    Lowerer(const Graph& graph, Network& network) : graph_(graph), network_(network), uses_(find_uses(graph)) {}

    [[nodiscard]] host::Result<void> run(std::span<const std::uint32_t> nodes, std::span<const ValueId> inputs,
                                         std::span<const ValueId> outputs);

    // For the operators' files.
    [[nodiscard]] const Graph& graph() const { return graph_; }
    [[nodiscard]] const Value& value(ValueId id) const { return graph_[id]; }
    [[nodiscard]] Arithmetic arithmetic() const { return graph_.arithmetic; }
    [[nodiscard]] npu::Rounding rounding() const { return rounding_of(graph_.arithmetic); }
    [[nodiscard]] npu::Scale scale(double factor) const { return to_scale(factor, graph_.arithmetic); }

    /// Where a value lies that is already computed; a constant gets its tensor now.
    [[nodiscard]] Place place(ValueId id);
    /// Does nothing here compute it: a network's input, or a constant?
    [[nodiscard]] bool is_given(ValueId id) {
        const Tensor::Role role = network_.tensors[place(id).tensor].role;
        return role == Tensor::Role::Input || role == Tensor::Role::Constant;
    }
    /// The value with its last dimension side by side, copied if need be; `dense`: in row-major order throughout.
    [[nodiscard]] Place contiguous(ValueId id, bool dense = false);
    /// Where a value is to be written: the home that was chosen for it, or a tensor of its own.
    [[nodiscard]] Place home(ValueId id);
    /// The same seen in another shape of as many elements, its last dimension side by side. Where the home allows no
    /// such view it is memory of its own that is copied home once the node is done.
    [[nodiscard]] Place home_as(ValueId id, const Shape& shape);
    /// A value that is another's memory seen differently, or a copy where it has a home of its own.
    void alias(ValueId id, const Place& place);

    [[nodiscard]] TensorId new_tensor(std::string name, npu::ElementType type, const Shape& shape,
                                      Tensor::Role role = Tensor::Role::Internal);
    [[nodiscard]] TensorId constant_tensor(const std::string& name, npu::ElementType type, const Shape& shape,
                                           std::vector<std::uint8_t> data);
    [[nodiscard]] Place dense_place(TensorId tensor, const Shape& shape) const {
        return {tensor, 0, dense_strides(shape)};
    }

    void add_step(Step step);
    /// The same with strides beyond the hardware's 3: an operation for each row or column of the result, where the
    /// stride does not matter. `strides_obstacle` bounds their number.
    void add_windows(const Step& step, Pair stride);
    /// An elementwise operation over N dimensions: cut into as many operations as the hardware's three dimensions and
    /// unit channel stride ask for.
    [[nodiscard]] host::Result<void> elementwise(npu::Operation op, const Shape& shape, const Place& out,
                                                 std::int32_t out_zero_point, Operand a, std::optional<Operand> b,
                                                 std::shared_ptr<const Table> table = nullptr);
    /// Elements unchanged, from one place to another.
    [[nodiscard]] host::Result<void> copy(const Shape& shape, npu::ElementType type, const Place& from,
                                          const Place& to);
    /// Every 8-bit element through a table of 256.
    [[nodiscard]] host::Result<void> map_bytes(const Shape& shape, const Place& from, npu::ElementType from_type,
                                               const Place& to, npu::ElementType to_type,
                                               const std::array<std::int32_t, 256>& table);
    /// Integers of one scale to integers of another, int8 and int16.
    [[nodiscard]] host::Result<void> rescale(const Shape& shape, const Operand& from, const Place& to,
                                             npu::ElementType to_type, std::int32_t to_zero_point, npu::Scale factor,
                                             Limits limits);

    /// The operand of an elementwise operation for value `id` in a result of `shape`.
    [[nodiscard]] Operand operand(ValueId id, const Shape& shape);

    [[nodiscard]] const std::string& result_name() const;

  private:
    [[nodiscard]] host::Result<void> copy_home();
    void choose_homes(std::span<const std::uint32_t> nodes, std::span<const ValueId> outputs);

    const Graph& graph_;
    Network& network_;
    Uses uses_;
    std::map<ValueId, Place> places_, homes_, contiguous_, dense_;
    struct Pending {
        ValueId value;
        Place from;
    };
    std::vector<Pending> pending_;
    std::uint32_t node_ = 0;
};

/// Operations that `Lowerer::add_windows` makes of one.
[[nodiscard]] std::int64_t window_operations(Pair stride, std::int64_t height, std::int64_t width);
[[nodiscard]] std::optional<std::string> strides_obstacle(Pair stride, std::int64_t operations);
inline constexpr std::int64_t kMostStride = 3;

/// The border of a padded map; its inside is there already.
[[nodiscard]] host::Result<void> pad_around(Lowerer& l, const PadAttr& attr, const Shape& inner, npu::ElementType type,
                                            const Place& whole, std::int32_t number);

/// The identity, for tables.
[[nodiscard]] std::int32_t real_to_stored(float real, const Quantization& q);

// One function an operator family; each reads the node's operands at `Lowerer::place` and writes at `home`.
using LowerFunction = host::Result<void> (*)(Lowerer&, const Node&);
using ObstacleFunction = std::optional<std::string> (*)(const Graph&, const Node&);
host::Result<void> lower_convolution(Lowerer&, const Node&);
host::Result<void> lower_transposed_convolution(Lowerer&, const Node&);
host::Result<void> lower_fully_connected(Lowerer&, const Node&);
host::Result<void> lower_pool(Lowerer&, const Node&);
host::Result<void> lower_reduction(Lowerer&, const Node&);
host::Result<void> lower_cumulative_sum(Lowerer&, const Node&);
host::Result<void> lower_add(Lowerer&, const Node&);
host::Result<void> lower_mul(Lowerer&, const Node&);
host::Result<void> lower_min_max(Lowerer&, const Node&);
host::Result<void> lower_matmul(Lowerer&, const Node&);
host::Result<void> lower_bilinear(Lowerer&, const Node&);
host::Result<void> lower_unary(Lowerer&, const Node&);
host::Result<void> lower_prelu(Lowerer&, const Node&);
host::Result<void> lower_requantize(Lowerer&, const Node&);
host::Result<void> lower_softmax(Lowerer&, const Node&);
host::Result<void> lower_concat(Lowerer&, const Node&);
host::Result<void> lower_slice(Lowerer&, const Node&);
host::Result<void> lower_pad(Lowerer&, const Node&);
host::Result<void> lower_reshape(Lowerer&, const Node&);
host::Result<void> lower_permute(Lowerer&, const Node&);
host::Result<void> lower_expand(Lowerer&, const Node&);
host::Result<void> lower_resize(Lowerer&, const Node&);

std::optional<std::string> convolution_obstacle(const Graph&, const Node&);
std::optional<std::string> transposed_convolution_obstacle(const Graph&, const Node&);
std::optional<std::string> fully_connected_obstacle(const Graph&, const Node&);
std::optional<std::string> pool_obstacle(const Graph&, const Node&);
std::optional<std::string> reduction_obstacle(const Graph&, const Node&);
std::optional<std::string> cumulative_sum_obstacle(const Graph&, const Node&);
std::optional<std::string> min_max_obstacle(const Graph&, const Node&);
std::optional<std::string> matmul_obstacle(const Graph&, const Node&);
std::optional<std::string> bilinear_obstacle(const Graph&, const Node&);
std::optional<std::string> unary_obstacle(const Graph&, const Node&);
std::optional<std::string> prelu_obstacle(const Graph&, const Node&);
std::optional<std::string> requantize_obstacle(const Graph&, const Node&);
std::optional<std::string> softmax_obstacle(const Graph&, const Node&);
std::optional<std::string> movement_obstacle(const Graph&, const Node&);
std::optional<std::string> pad_obstacle(const Graph&, const Node&);
std::optional<std::string> resize_obstacle(const Graph&, const Node&);
inline std::optional<std::string> no_obstacle(const Graph&, const Node&) {
    return std::nullopt;
}

}  // namespace talpa::compiler
