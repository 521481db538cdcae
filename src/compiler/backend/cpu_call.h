// One node that stays on the CPU, on its way to calls of ExecuTorch operators: its operands as program values of the
// kind that those operators take (real numbers, channels first where a window slides), its temporaries, its result. And
// the tables of what is called for which operator, one a family.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/backend/partition.h"
#include "compiler/backend/program_builder.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler {

class CpuCall {
  public:
    using ValueOf = std::function<std::int32_t(ValueId)>;

    /// `value_of` gives the program's value of a graph value, created at its first use.
    CpuCall(ProgramBuilder& program, const Graph& graph, const Node& node, const ChannelsFirst& beyond,
            const ValueOf& value_of)
        : p(program), graph_(graph), node_(node), beyond_(beyond), value_of_(value_of) {}

    [[nodiscard]] const Node& node() const { return node_; }
    template <typename Attr>
    [[nodiscard]] const Attr& as() const {
        return node_.as<Attr>();
    }
    [[nodiscard]] const Value& value(std::size_t i) const { return graph_[node_.inputs[i]]; }
    [[nodiscard]] const Value& result() const { return graph_[node_.outputs[0]]; }

    /// Operand i in its real type: dequantized if it is quantized.
    std::int32_t operand(std::size_t i) { return real(node_.inputs[i]); }
    /// The same, or None where the node has no such operand.
    std::int32_t optional_operand(std::size_t i);
    /// As stored.
    std::int32_t raw(std::size_t i) { return value_of_(node_.inputs[i]); }
    std::int32_t raw_result() { return value_of_(node_.outputs[0]); }
    std::int32_t temporary(const Shape& shape) { return p.tensor(DType::Float32, shape); }

    /// Where the result goes: float32 first if it is quantized; `finish` then quantizes.
    std::int32_t out();
    void finish();

    /// Of an operator that only moves elements: operand 0 and the result as stored, where both are stored alike.
    std::int32_t moved() { return stored_alike() ? raw(0) : operand(0); }
    std::int32_t moved_out() { return stored_alike() ? raw_result() : out(); }
    [[nodiscard]] DType moved_type() const { return stored_alike() ? value(0).stored_type() : DType::Float32; }

    void clamp(const Clamp& c, std::int32_t from, std::int32_t to);
    /// An operator with a fused clamp: `run(to)`, the clamp, `finish`.
    void clamped(const Clamp& c, const std::function<void(std::int32_t to)>& run);
    /// A spatial operator on channels-first data: `run(in, to)`, the clamp, all in the order that the graph has.
    void spatial(const Clamp& c, const std::function<void(std::int32_t in, std::int32_t to)>& run);

    ProgramBuilder& p;

  private:
    [[nodiscard]] bool stored_alike() const;
    std::int32_t real(ValueId id);

    const Graph& graph_;
    const Node& node_;
    ChannelsFirst beyond_;
    const ValueOf& value_of_;
    std::int32_t real_out_ = -1;
};

[[nodiscard]] Shape channels_first(const Shape& s);

/// quantize_per_tensor and dequantize_per_tensor.
void call_quantize(ProgramBuilder& program, std::int32_t from, const Quantization& q, std::int32_t to);
void call_dequantize(ProgramBuilder& program, std::int32_t from, const Quantization& q, std::int32_t to);

/// What stands for a graph's operator on the CPU.
struct CpuOperator {
    Op op;
    void (*call)(CpuCall& c, const char* name);
    const char* name = nullptr;  ///< of the ExecuTorch operator, where `call` serves several
    /// Why this node is beyond what that operator does; null: it does all.
    std::optional<std::string> (*obstacle)(const Graph& graph, const Node& node) = nullptr;
};

[[nodiscard]] std::span<const CpuOperator> cpu_elementwise_operators();
[[nodiscard]] std::span<const CpuOperator> cpu_layer_operators();
[[nodiscard]] std::span<const CpuOperator> cpu_reduction_operators();
[[nodiscard]] std::span<const CpuOperator> cpu_movement_operators();

}  // namespace talpa::compiler
