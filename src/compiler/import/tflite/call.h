// One operator of a .tflite model while it is imported (model-formats, section 3.4).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/graph/builder.h"
#include "compiler/import/tflite/flat.h"

namespace talpa::compiler::import::tflite {

/// What the file says about a tensor.
struct TensorFacts {
    std::string name;
    Shape shape;
    DType type = DType::Float32;  ///< as stored
    std::optional<Quantization> quantization;
};

class Call {
  public:
    Call(Builder& builder, FlatTable options_table, std::vector<ValueId> operands,
         std::vector<const TensorFacts*> facts)
        : b(builder), options_(std::move(options_table)), operands_(std::move(operands)), results_(std::move(facts)) {}

    Builder& b;

    [[nodiscard]] std::size_t operand_count() const { return operands_.size(); }
    [[nodiscard]] host::Result<ValueId> operand(std::size_t i) const;
    [[nodiscard]] ValueId optional(std::size_t i) const { return i < operands_.size() ? operands_[i] : kNoValue; }
    /// A constant operand's whole numbers.
    [[nodiscard]] host::Result<std::vector<std::int64_t>> numbers(std::size_t i) const;
    /// The same as dimensions of a tensor of that rank, negative ones counted from the end.
    [[nodiscard]] host::Result<std::vector<int>> axes(std::size_t i, std::size_t rank) const;

    template <typename T>
    [[nodiscard]] host::Result<T> option(unsigned slot, T absent) const {
        return options_.scalar<T>(slot, absent);
    }
    /// The fused activation in that slot.
    [[nodiscard]] host::Result<Clamp> activation(unsigned slot) const;

    [[nodiscard]] std::size_t result_count() const { return results_.size(); }
    [[nodiscard]] const TensorFacts& result(std::size_t i = 0) const { return *results_[i]; }
    [[nodiscard]] std::string name(std::size_t i = 0) const {
        return i < results_.size() ? results_[i]->name : std::string();
    }
    /// Sets the next result. A new, unquantized value takes the quantization that the file gives; another value is
    /// requantized to it. Its shape must be the file's.
    [[nodiscard]] host::Result<void> give(ValueId id);
    /// Adds a node and gives its result.
    [[nodiscard]] host::Result<void> make(Op op, std::vector<ValueId> operands, Attributes attributes);
    [[nodiscard]] const std::vector<ValueId>& given() const { return given_; }

  private:
    FlatTable options_;
    std::vector<ValueId> operands_;
    std::vector<const TensorFacts*> results_;
    std::vector<ValueId> given_;
};

struct Operator {
    std::int32_t code;
    const char* name;
    host::Result<void> (*import)(Call& call, Op op);  ///< null: known and refused
    Op op = Op::Requantize;
    std::uint8_t options = 0;  ///< type of the options table; 0: none is read
};

[[nodiscard]] std::span<const Operator> compute_operators();   ///< convolutions, pools, elementwise
[[nodiscard]] std::span<const Operator> movement_operators();  ///< shapes, slices, padding
/// Operators that are known by name only, for messages.
[[nodiscard]] std::span<const Operator> refused_operators();

[[nodiscard]] host::Result<int> positive_axis(std::int64_t axis, std::size_t rank);

}  // namespace talpa::compiler::import::tflite
