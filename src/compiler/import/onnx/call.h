// One node of an .onnx model while it is imported (model-formats, section 4.2).
#pragma once

#include <optional>
#include <set>
#include <span>

#include "compiler/graph/builder.h"
#include "compiler/import/onnx/model.h"

namespace talpa::compiler::import::onnx {

/// `integers`: the model sees the stored numbers of a quantized value, between QuantizeLinear and DequantizeLinear.
struct Bound {
    ValueId id = kNoValue;
    bool integers = false;
};

class Call {
  public:
    Call(Builder& builder, const NodeData& data, std::vector<Bound> operands, std::int64_t opset_version)
        : b(builder), opset(opset_version), node_(data), operands_(std::move(operands)) {}

    Builder& b;
    const std::int64_t opset;

    [[nodiscard]] bool has(std::size_t i) const { return i < operands_.size() && operands_[i].id != kNoValue; }
    [[nodiscard]] std::size_t operand_count() const { return operands_.size(); }
    [[nodiscard]] host::Result<Bound> bound(std::size_t i) const;
    /// A tensor of reals, or of whole numbers that are no quantized ones.
    [[nodiscard]] host::Result<ValueId> operand(std::size_t i) const;
    [[nodiscard]] host::Result<ValueId> optional(std::size_t i) const;
    /// A tensor of any kind, for operators that only move elements.
    [[nodiscard]] host::Result<ValueId> moved(std::size_t i);
    /// A constant operand's whole numbers.
    [[nodiscard]] host::Result<std::vector<std::int64_t>> constants(std::size_t i) const;
    [[nodiscard]] host::Result<std::vector<float>> real_constants(std::size_t i) const;

    [[nodiscard]] const Attribute* attribute(std::string_view name);
    [[nodiscard]] host::Result<std::int64_t> integer(std::string_view name, std::optional<std::int64_t> usual = {});
    [[nodiscard]] host::Result<double> real(std::string_view name, double usual);
    [[nodiscard]] host::Result<std::string> text(std::string_view name, std::string usual);
    [[nodiscard]] host::Result<std::vector<std::int64_t>> integers(std::string_view name,
                                                                   std::vector<std::int64_t> usual = {});
    /// What became an operand in a later version: the attribute, else the operand, else nothing.
    [[nodiscard]] host::Result<std::optional<std::vector<std::int64_t>>> numbers(std::string_view name, std::size_t i);
    void ignore(std::initializer_list<std::string_view> names);
    [[nodiscard]] std::optional<std::string> unread() const;

    [[nodiscard]] std::size_t result_count() const { return node_.outputs.size(); }
    [[nodiscard]] std::string name(std::size_t i = 0) const {
        return i < node_.outputs.size() ? node_.outputs[i] : std::string();
    }
    void give(ValueId id) { results_.push_back({id, integers_}); }
    void give(Bound bound) { results_.push_back(bound); }
    /// Adds a node and gives its result.
    [[nodiscard]] host::Result<void> make(Op op, std::vector<ValueId> operands, Attributes attributes);
    [[nodiscard]] const std::vector<Bound>& results() const { return results_; }

  private:
    const NodeData& node_;
    std::vector<Bound> operands_;
    std::vector<Bound> results_;
    std::set<std::string, std::less<>> read_;
    bool integers_ = false;
};

struct Operator {
    std::string_view name;
    host::Result<void> (*import)(Call& call, Op op);
    Op op = Op::Requantize;
};

[[nodiscard]] std::span<const Operator> layer_operators();
[[nodiscard]] std::span<const Operator> elementwise_operators();
[[nodiscard]] std::span<const Operator> shape_operators();

[[nodiscard]] host::Result<int> positive_axis(std::int64_t axis, std::size_t rank);

}  // namespace talpa::compiler::import::onnx
