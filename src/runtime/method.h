// A method of a program, ready to run in memory that the caller hands over. Three steps: `load` checks everything that
// can be known and says what memory is needed; `bind` takes the memory; then set the inputs and `execute`, again and
// again. Nothing runs before all of it was checked. Freestanding. (pte-format, sections 4, 5 and 9)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/core/error.h"
#include "npu/device.h"
#include "pte/data_file.h"
#include "pte/program.h"
#include "runtime/ethos_u.h"
#include "runtime/memory.h"
#include "runtime/operator.h"
#include "runtime/tensor.h"

namespace talpa::runtime {

/// One instruction that runs, for those who time or record a run.
struct Step {
    std::uint32_t chain = 0, instruction = 0;  ///< indices in the method
    std::uint64_t npu_cycles = 0;              ///< `after` a DelegateCall
};

class Observer {
  public:
    virtual void before(const Step& step) = 0;
    virtual void after(const Step& step) = 0;  ///< not called when the step failed

  protected:
    ~Observer() = default;
};

struct LoadOptions {
    OperatorTable operators;
    npu::Device* device = nullptr;                  ///< null: delegates are checked and measured, but cannot run
    pte::DataFiles data_files;                      ///< for external tensors and external delegate blocks
    std::uint64_t instruction_budget = 10'000'000;  ///< a run, as upstream since 1.3
    Observer* observer = nullptr;
};

/// A tensor that a caller gives: type, shape and order must be the program's own (V23).
struct InputTensor {
    ScalarType type = ScalarType::Float32;
    std::span<const std::int32_t> sizes;
    std::span<const std::uint8_t> dim_order;  ///< empty: whatever order the program has
    Bytes bytes;                              ///< in stored order
};

/// All objects that are given stay the caller's and must outlive the method: program, data files, device, pools.
class Method {
  public:
    /// Bytes that `load` needs of the method pool.
    [[nodiscard]] static Result<std::size_t> pool_bytes(const pte::MethodView& method);

    /// Errors name value, instruction or delegate: InvalidProgram for everything malformed (V7 to V21, V25 to V31),
    /// OperatorMissing, NotFound (data file, backend), NotSupported, DelegateIncompatible, MemoryAllocation for the
    /// pool.
    [[nodiscard]] static Result<Method> load(const pte::Program& program, std::string_view name, Pool method_pool,
                                             const LoadOptions& options);

    [[nodiscard]] const MemoryNeed& need() const { return need_; }
    [[nodiscard]] const pte::MethodView& view() const { return view_; }

    /// Takes the pools: checks their sizes and that nothing overlaps (V34), zeroes the arenas, writes initial values.
    /// MemoryAllocation names the pool, what it needs and what it has. May be called again, which resets the state.
    [[nodiscard]] Result<void> bind(const Pools& pools);

    [[nodiscard]] std::uint32_t input_count() const { return view_.inputs().size(); }
    [[nodiscard]] std::uint32_t output_count() const { return view_.outputs().size(); }
    /// The value behind an input or output: i < count. Tensors are as they are now (dynamic ones change).
    [[nodiscard]] const Value& input(std::uint32_t i) const {
        return values_[static_cast<std::uint32_t>(view_.inputs()[i])];
    }
    [[nodiscard]] const Value& output(std::uint32_t i) const {
        return values_[static_cast<std::uint32_t>(view_.outputs()[i])];
    }

    /// Gives a tensor input for the next run. Planned ones are copied; an unplanned one is used in place and must stay
    /// until the run is over. Outputs of the last run may be overwritten. Errors say what differs: type, sizes, order,
    /// byte count.
    [[nodiscard]] Result<void> set_input(std::uint32_t i, const InputTensor& tensor);
    /// The same with the program's own type, sizes and order.
    [[nodiscard]] Result<void> set_input(std::uint32_t i, Bytes bytes);
    /// Inputs that are numbers were fixed at export: a caller may only confirm them. Doubles within 1e-4 + 1e-5 |v|.
    [[nodiscard]] Result<void> check_scalar_input(std::uint32_t i, double value) const;

    /// Memory for an output that the program does not plan; at least its tensor's bytes, aligned to its element.
    [[nodiscard]] Result<void> set_output_memory(std::uint32_t i, Pool memory);
    /// Has the tensor input or output no place in an arena?
    [[nodiscard]] bool input_is_unplanned(std::uint32_t i) const { return is_unplanned(view_.inputs()[i]); }
    [[nodiscard]] bool output_is_unplanned(std::uint32_t i) const { return is_unplanned(view_.outputs()[i]); }

    /// Runs once. Every tensor input must have been set since the last run, for outputs and temporaries lie on top of
    /// them.
    [[nodiscard]] Result<void> execute();
    /// A tensor output after a successful run; valid until the next `set_input` or `execute`.
    [[nodiscard]] Result<const Tensor*> output_tensor(std::uint32_t i) const;

    /// NPU cycles of the last run, all delegates; 0 when the device does not know.
    [[nodiscard]] std::uint64_t npu_cycles() const { return npu_cycles_; }
    /// Where the last run ended: after a failure, the instruction that failed.
    [[nodiscard]] const Step& last_step() const { return last_step_; }
    [[nodiscard]] std::span<const Value> values() const { return values_; }
    [[nodiscard]] std::span<const EthosUDelegate> delegates() const { return delegates_; }

  private:
    friend class MethodLoader;
    Method(const pte::Program& program, pte::MethodView view, const LoadOptions& options)
        : program_(&program), view_(view), options_(options) {}

    [[nodiscard]] bool is_unplanned(std::int32_t value_index) const;
    [[nodiscard]] Result<Tensor*> input_tensor(std::uint32_t i) const;
    [[nodiscard]] Result<void> initialise_tensors();
    [[nodiscard]] Result<void> check_ready() const;
    [[nodiscard]] Result<void> run_chain(std::uint32_t chain, std::uint64_t& budget);
    [[nodiscard]] Result<void> kernel_call(const pte::InstructionView& call);
    [[nodiscard]] Result<std::uint64_t> delegate_call(const pte::InstructionView& call);
    [[nodiscard]] Result<bool> condition(std::uint32_t value_index) const;
    void free_call(std::uint32_t value_index);
    [[nodiscard]] Tensor* own_tensor(std::uint32_t value_index) const;

    const pte::Program* program_;
    pte::MethodView view_;
    LoadOptions options_;
    MemoryNeed need_;
    Pool method_pool_;
    // Tables in the method pool
    std::span<Value> values_;
    std::span<Tensor> tensors_;
    std::span<std::uint32_t> operators_;  ///< index in the operator table, by the program's operator index
    std::span<EthosUDelegate> delegates_;
    std::span<std::uint8_t> input_set_;

    Pools pools_;
    bool bound_ = false;
    bool has_results_ = false;
    std::uint64_t npu_cycles_ = 0;
    Step last_step_;
};

/// The operators that a method calls and the table lacks: fn(pte::OperatorView) for each. Returns how many.
template <typename Fn>
std::uint32_t for_each_missing_operator(const pte::MethodView& method, OperatorTable table, Fn&& fn);

/// The row of the table for a name and overload; null if there is none.
[[nodiscard]] const Operator* find_operator(OperatorTable table, const pte::OperatorView& op);
/// Does an instruction of the method call operator `index`?
[[nodiscard]] bool is_operator_called(const pte::MethodView& method, std::uint32_t index);

template <typename Fn>
std::uint32_t for_each_missing_operator(const pte::MethodView& method, OperatorTable table, Fn&& fn) {
    std::uint32_t missing = 0;
    for (std::uint32_t i = 0; i < method.operators().size(); ++i) {
        if (find_operator(table, method.op(i)) != nullptr || !is_operator_called(method, i)) continue;
        ++missing;
        fn(method.op(i));
    }
    return missing;
}

}  // namespace talpa::runtime
