// The interface between executor and CPU operators. An operator is a row of a table: name, arity, the kinds of its
// arguments (checked once, when the method is loaded), and a function that computes. No static registration: the host
// links the whole table (runtime/operators/all.h), the firmware its own short one. Freestanding. (pte-format,
// section 5.3)
#pragma once

#include <optional>
#include <span>

#include "base/core/error.h"
#include "runtime/tensor.h"

namespace talpa::runtime {

struct Operator;

/// The arguments of one call in schema order: inputs, then outputs, without the repeated tail. Accessors check kind and
/// range; errors name the operator and the argument's position. Valid during one call.
class Arguments {
  public:
    Arguments(std::string_view op_name, std::span<Value> values, std::span<const std::uint32_t> indices,
              std::span<std::uint8_t> temporary)
        : op_name_(op_name), values_(values), indices_(indices), temporary_(temporary) {}

    [[nodiscard]] std::string_view op_name() const { return op_name_; }
    [[nodiscard]] std::size_t count() const { return indices_.size(); }
    [[nodiscard]] const Value& value(std::size_t arg) const { return values_[indices_[arg]]; }
    [[nodiscard]] Value& value(std::size_t arg) { return values_[indices_[arg]]; }
    [[nodiscard]] bool is_null(std::size_t arg) const { return value(arg).kind == Value::Kind::Null; }

    [[nodiscard]] Result<Tensor*> tensor(std::size_t arg) const;        ///< data bound
    [[nodiscard]] Result<Tensor*> out(std::size_t arg) const;           ///< the same, and not constant
    [[nodiscard]] Result<std::int64_t> integer(std::size_t arg) const;  ///< Int or Bool
    [[nodiscard]] Result<double> number(std::size_t arg) const;         ///< a Scalar: Int, Bool or Double
    /// The same as float32: a Double is rounded once, an integer must fit 32 bits. The M33 has no double arithmetic.
    [[nodiscard]] Result<float> number_as_float(std::size_t arg) const;
    [[nodiscard]] Result<bool> boolean(std::size_t arg) const;
    [[nodiscard]] Result<std::uint32_t> list_size(std::size_t arg) const;                        ///< of any list
    [[nodiscard]] Result<std::int64_t> list_integer(std::size_t arg, std::uint32_t item) const;  ///< IntList
    [[nodiscard]] Result<double> list_double(std::size_t arg, std::uint32_t item) const;         ///< DoubleList
    [[nodiscard]] Result<Tensor*> list_tensor(
        std::size_t arg, std::uint32_t item) const;  ///< TensorList; null for a missing optional one

    /// 16-aligned scratch of this call only; MemoryAllocation, naming the need, when the temporary pool is too small.
    /// Several pieces follow one another, each from the next multiple of 16: `temporary_bytes` must count them so.
    [[nodiscard]] Result<std::span<std::uint8_t>> temporary(std::size_t bytes);
    /// Gives a tensor new sizes; only a dynamic one may change, within its capacity and rank.
    [[nodiscard]] Result<void> resize(Tensor& tensor, std::span<const std::int32_t> sizes) const;

    /// Errors that name the operator: `return args.error("needs float32 input, has {}", scalar_name(t))`.
    template <typename... Args>
        requires(sizeof...(Args) < Error::kMaxArgs)
    [[nodiscard]] std::unexpected<Error> error(ErrorCode code, const char* sentence_with_op_first, Args... a) const {
        return (fail)(code, sentence_with_op_first, op_name_, a...);
    }

  private:
    friend Result<void> check_kinds(const Operator& op, const Arguments& args);
    [[nodiscard]] Result<Tensor*> bound(const Value& v, std::size_t arg) const;
    [[nodiscard]] Result<const Value*> list_value(std::size_t arg, std::uint32_t item, Value::Kind kind) const;

    std::string_view op_name_;
    std::span<Value> values_;
    std::span<const std::uint32_t> indices_;
    std::span<std::uint8_t> temporary_;
};

/// A row of an operator table. `kinds` holds one letter a schema argument, so that a wrong program is refused when it
/// is loaded and not in the middle of a run (V20); a '?' after a letter allows a Null:
///   t tensor      i Int or Bool                  I IntList       T TensorList of inputs    * anything
///   o output      n Scalar: Int, Bool, Double    D DoubleList    O TensorList of outputs
///   b Bool        r Int or Bool that `run` sets  B BoolList      Q TensorList or OptionalTensorList of inputs
/// Example: quantize_per_tensor.out is "tniiiio", in the program with 8 arguments.
struct Operator {
    std::string_view name;   ///< "aten::argmax.out": name, and "." overload if there is one
    std::uint8_t arg_count;  ///< in the program, the repeated tail included
    std::string_view kinds;  ///< of the arguments handed to `run`: those of the program less the repeated tail
    Result<void> (*run)(Arguments& args);
    /// Bytes of `temporary` that a call on these arguments needs at most (dynamic tensors have their upper bounds then,
    /// and tensors may have no memory yet); null when none. Gives the memory report its exact figure.
    Result<std::size_t> (*temporary_bytes)(const Arguments& args) = nullptr;

    [[nodiscard]] constexpr std::size_t schema_args() const {
        std::size_t n = 0;
        for (const char c : kinds) n += c != '?';
        return n;
    }
};

using OperatorTable = std::span<const Operator>;

/// Checks the arguments against the operator's `kinds`. Errors name operator, argument, what is wanted and what is
/// there.
[[nodiscard]] Result<void> check_kinds(const Operator& op, const Arguments& args);

}  // namespace talpa::runtime
