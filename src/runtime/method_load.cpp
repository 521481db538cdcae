// Loading a method: all checks that need no arenas, in the order of pte-format, section 5.1. What stands in the file is
// read in place; only what changes while running, or is looked up often, gets a table in the method pool.
#include <new>

#include "base/core/checked_math.h"
#include "runtime/method.h"
#include "runtime/tensor_load.h"

namespace talpa::runtime {
namespace {

constexpr std::uint32_t kNoOperator = UINT32_MAX;
constexpr std::size_t kMaxOperatorName = 99;
constexpr std::uint32_t kMaxBytes = INT32_MAX;  // of a pool, of all arenas together

/// How many of everything, and where each table begins in the method pool. One layout for measuring and for loading.
struct Layout {
    std::uint32_t values = 0, tensors = 0, operators = 0, delegates = 0, inputs = 0;
    std::uint64_t tensor_at = 0, operator_at = 0, delegate_at = 0, input_at = 0, end = 0;

    explicit Layout(const pte::MethodView& method)
        : values(method.values().size()),
          operators(method.operators().size()),
          delegates(method.delegate_count()),
          inputs(method.inputs().size()) {
        for (std::uint32_t i = 0; i < values; ++i) tensors += method.value(i).type() == pte::ValueType::Tensor;
        const auto after = [](std::uint64_t begin, std::uint32_t count, std::size_t size) {
            return round_up(begin + std::uint64_t{count} * size, std::uint64_t{kPoolAlignment});
        };
        tensor_at = after(0, values, sizeof(Value));
        operator_at = after(tensor_at, tensors, sizeof(Tensor));
        delegate_at = after(operator_at, operators, sizeof(std::uint32_t));
        input_at = after(delegate_at, delegates, sizeof(EthosUDelegate));
        end = after(input_at, inputs, 1);
    }
};

template <typename T>
std::span<T> make_table(Pool pool, std::uint64_t at, std::uint32_t count) {
    T* const first = reinterpret_cast<T*>(pool.data() + at);
    for (std::uint32_t i = 0; i < count; ++i) new (first + i) T{};
    return {first, count};
}

}  // namespace

/// The steps of a load; each relies on those before it.
class MethodLoader {
  public:
    MethodLoader(Method& method, const pte::Program& program) : m_(method), view_(method.view_), program_(program) {}

    [[nodiscard]] Result<void> check_parts();
    [[nodiscard]] Result<void> take_pool(Pool pool);
    [[nodiscard]] Result<void> load_values();
    [[nodiscard]] Result<void> check_lists();
    [[nodiscard]] Result<void> check_inputs_and_outputs();
    [[nodiscard]] Result<void> find_operators();
    [[nodiscard]] Result<void> load_delegates();
    [[nodiscard]] Result<void> check_instructions();

  private:
    [[nodiscard]] Result<void> load_value(std::uint32_t i, std::uint32_t& next_tensor);
    [[nodiscard]] Result<void> check_list(std::uint32_t i);
    [[nodiscard]] Result<void> check_arguments(pte::Vector<std::int32_t> args, std::uint32_t instruction);
    [[nodiscard]] Result<void> check_kernel_call(const pte::InstructionView& call, std::uint32_t instruction);
    [[nodiscard]] Result<void> check_delegate_call(const pte::InstructionView& call, std::uint32_t instruction);
    [[nodiscard]] Result<void> check_instruction(const pte::InstructionView& view, std::uint32_t instruction,
                                                 std::uint32_t count);
    [[nodiscard]] bool is_value(std::int64_t index) const {
        return index >= 0 && static_cast<std::uint64_t>(index) < m_.values_.size();
    }
    [[nodiscard]] Value::Kind kind(std::int64_t index) const {
        return m_.values_[static_cast<std::size_t>(index)].kind;
    }

    Method& m_;
    const pte::MethodView& view_;
    const pte::Program& program_;
};

// What a plan must have, and its arenas (V15).
Result<void> MethodLoader::check_parts() {
    namespace plan = pte::slot::plan;
    struct Part {
        unsigned slot;
        const char* name;
    };
    static constexpr Part kParts[] = {{plan::values, "values"},
                                      {plan::inputs, "inputs"},
                                      {plan::outputs, "outputs"},
                                      {plan::chains, "chains"},
                                      {plan::non_const_buffer_sizes, TALPA_SENTENCE("non_const_buffer_sizes")}};
    for (const Part& part : kParts)
        if (!view_.table().has(part.slot))
            return fail(ErrorCode::InvalidProgram, "method '{}' has no {}", view_.name(), part.name);
    if (view_.chain_count() == 0)
        return fail(ErrorCode::InvalidProgram, "method '{}' has no chain of instructions", view_.name());
    const pte::Vector<std::int64_t> arenas = view_.arena_sizes();
    if (arenas.size() > kMaxArenas + 1)
        return fail(ErrorCode::NotSupported, "method '{}' has {} arenas, at most {} are supported", view_.name(),
                    arenas.size() - 1, static_cast<unsigned>(kMaxArenas));
    std::uint64_t total = 0;
    for (std::uint32_t i = 1; i < arenas.size(); ++i) {
        if (arenas[i] < 0 || arenas[i] > kMaxBytes)
            return fail(ErrorCode::InvalidProgram, "arena {} of method '{}' needs {} bytes, 0 to {} are possible", i,
                        view_.name(), arenas[i], kMaxBytes);
        m_.need_.planned[i - 1] = round_up_to_pool(static_cast<std::size_t>(arenas[i]));
        total += m_.need_.planned[i - 1];
    }
    if (total > kMaxBytes)
        return fail(ErrorCode::InvalidProgram,
                    "the arenas of method '{}' need {} bytes together, at most {} are possible", view_.name(), total,
                    kMaxBytes);
    m_.need_.arena_count = arenas.empty() ? 0 : arenas.size() - 1;
    for (std::uint32_t i = 0; i < view_.arena_devices().size(); ++i)
        if (const auto type = view_.arena_devices()[i].scalar<std::int8_t>(pte::slot::buffer_device::device_type);
            type != 0)
            return fail(ErrorCode::NotSupported, "an arena of method '{}' is on device type {}, only the CPU is known",
                        view_.name(), type);
    return {};
}

Result<void> MethodLoader::take_pool(Pool pool) {
    const Layout layout(view_);
    if (layout.end > pool.size())
        return fail(ErrorCode::MemoryAllocation, "pool 'method' needs {} bytes, it has {}", layout.end, pool.size());
    if (reinterpret_cast<std::uintptr_t>(pool.data()) % kPoolAlignment != 0)
        return fail(ErrorCode::InvalidArgument, "pool 'method' must lie at a multiple of 16");
    m_.need_.method = static_cast<std::size_t>(layout.end);
    m_.method_pool_ = pool.first(m_.need_.method);
    m_.values_ = make_table<Value>(pool, 0, layout.values);
    m_.tensors_ = make_table<Tensor>(pool, layout.tensor_at, layout.tensors);
    m_.operators_ = make_table<std::uint32_t>(pool, layout.operator_at, layout.operators);
    m_.delegates_ = make_table<EthosUDelegate>(pool, layout.delegate_at, layout.delegates);
    m_.input_set_ = make_table<std::uint8_t>(pool, layout.input_at, layout.inputs);
    return {};
}

Result<void> MethodLoader::load_value(std::uint32_t i, std::uint32_t& next_tensor) {
    const pte::ValueView view = view_.value(i);
    Value& value = m_.values_[i];
    const auto list = [&](Value::Kind kind, const auto& vector) {
        value.kind = kind;
        value.items = vector.data();
        value.count = vector.size();
    };
    switch (view.type()) {
        case pte::ValueType::None:
            return fail(ErrorCode::InvalidProgram, "value {} of method '{}' has no type", i, view_.name());
        case pte::ValueType::Null:
            value.kind = Value::Kind::Null;
            break;
        case pte::ValueType::Int:
            value.kind = Value::Kind::Int;
            value.i = view.as_int();
            break;
        case pte::ValueType::Bool:
            value.kind = Value::Kind::Bool;
            value.i = view.as_bool() ? 1 : 0;
            break;
        case pte::ValueType::Double:
            value.kind = Value::Kind::Double;
            value.d = view.as_double();
            break;
        case pte::ValueType::String:
            list(Value::Kind::String, view.bool_list());
            break;
        case pte::ValueType::IntList:
            list(Value::Kind::IntList, view.int_list());
            break;
        case pte::ValueType::DoubleList:
            list(Value::Kind::DoubleList, view.double_list());
            break;
        case pte::ValueType::BoolList:
            list(Value::Kind::BoolList, view.bool_list());
            break;
        case pte::ValueType::TensorList:
            list(Value::Kind::TensorList, view.tensor_list());
            break;
        case pte::ValueType::OptionalTensorList:
            list(Value::Kind::OptionalTensorList, view.tensor_list());
            break;
        case pte::ValueType::Tensor: {
            TRY_ASSIGN(const LoadedTensor loaded,
                       load_tensor(program_, view.as_tensor(), i, view_.arena_sizes(), m_.options_.data_files));
            Tensor& tensor = m_.tensors_[next_tensor++];
            tensor = loaded.tensor;
            value.kind = Value::Kind::Tensor;
            value.tensor = &tensor;
            break;
        }
    }
    return {};
}

Result<void> MethodLoader::load_values() {
    std::uint32_t next_tensor = 0;
    for (std::uint32_t i = 0; i < m_.values_.size(); ++i) TRY(load_value(i, next_tensor));
    return {};
}

// Items in range and of the right kind; a list of tensors refers backwards (V8, V9).
Result<void> MethodLoader::check_list(std::uint32_t i) {
    const Value& list = m_.values_[i];
    const bool ints = list.kind == Value::Kind::IntList;
    const bool optional = list.kind == Value::Kind::OptionalTensorList;
    if (!ints && !optional && list.kind != Value::Kind::TensorList) return {};
    for (std::uint32_t k = 0; k < list.count; ++k) {
        const std::int64_t item = ints ? load_le<std::int64_t>(list.items + std::size_t{k} * 8)
                                       : load_le<std::int32_t>(list.items + std::size_t{k} * 4);
        if (optional && item == -1) continue;
        if (!is_value(item) || (!ints && item >= i))
            return fail(ErrorCode::InvalidProgram, "item {} of the {} in value {} is value {}, of {}", k,
                        value_kind_name(list.kind), i, item, m_.values_.size());
        const Value::Kind found = kind(item);
        if (optional && found == Value::Kind::Null) continue;
        if (found != (ints ? Value::Kind::Int : Value::Kind::Tensor))
            return fail(ErrorCode::InvalidProgram, "item {} of the {} in value {} is value {}, which is {}", k,
                        value_kind_name(list.kind), i, item, value_kind_name(found));
    }
    return {};
}

Result<void> MethodLoader::check_lists() {
    for (std::uint32_t i = 0; i < m_.values_.size(); ++i) TRY(check_list(i));
    return {};
}

Result<void> MethodLoader::check_inputs_and_outputs() {
    for (std::uint32_t i = 0; i < view_.inputs().size(); ++i) {
        const std::int32_t index = view_.inputs()[i];
        if (!is_value(index))
            return fail(ErrorCode::InvalidProgram, "input {} of method '{}' is value {}, of {}", i, view_.name(), index,
                        m_.values_.size());
        const Value& value = m_.values_[static_cast<std::uint32_t>(index)];
        if (value.kind > Value::Kind::Tensor)
            return fail(ErrorCode::NotSupported, "input {} of method '{}' is a {}", i, view_.name(),
                        value_kind_name(value.kind));
        if (value.kind != Value::Kind::Tensor) continue;
        if (value.tensor->is_constant)  // V18
            return fail(ErrorCode::InvalidProgram, "input {} of method '{}' is value {}, a constant", i, view_.name(),
                        index);
        // Used in place where the caller has it, and the caller's bytes are not the program's to change.
        if (value.tensor->capacity_bytes == 0) value.tensor->is_constant = true;
    }
    for (std::uint32_t i = 0; i < view_.outputs().size(); ++i)
        if (const std::int32_t index = view_.outputs()[i]; !is_value(index))
            return fail(ErrorCode::InvalidProgram, "output {} of method '{}' is value {}, of {}", i, view_.name(),
                        index, m_.values_.size());
    return {};
}

// All missing operators are counted before the first is reported (V36); the host lists them by
// for_each_missing_operator.
Result<void> MethodLoader::find_operators() {
    pte::OperatorView first{};
    const std::uint32_t missing =
        for_each_missing_operator(view_, m_.options_.operators, [&](const pte::OperatorView& op) {
            if (first.name.empty()) first = op;
        });
    if (missing != 0)
        return fail(ErrorCode::OperatorMissing, "{} operators of method '{}' are not built in, the first is {}{}{}",
                    missing, view_.name(), first.name, first.overload.empty() ? "" : ".", first.overload);
    for (std::uint32_t i = 0; i < m_.operators_.size(); ++i) {
        const Operator* const found = find_operator(m_.options_.operators, view_.op(i));
        m_.operators_[i] =
            found == nullptr ? kNoOperator : static_cast<std::uint32_t>(found - m_.options_.operators.data());
    }
    return {};
}

Result<void> MethodLoader::load_delegates() {
    for (std::uint32_t i = 0; i < m_.delegates_.size(); ++i) {
        TRY_ASSIGN(m_.delegates_[i],
                   EthosUDelegate::load(program_, view_.delegate(i), i, m_.options_.data_files, m_.options_.device));
        const EthosUDelegate& d = m_.delegates_[i];
        const auto widen = [](std::size_t& need, std::size_t bytes) {
            need = round_up_to_pool(bytes) > need ? round_up_to_pool(bytes) : need;
        };
        widen(m_.need_.scratch, d.scratch_bytes());
        widen(m_.need_.fast_scratch, d.fast_scratch_bytes());
    }
    return {};
}

Result<void> MethodLoader::check_arguments(pte::Vector<std::int32_t> args, std::uint32_t instruction) {
    for (std::uint32_t i = 0; i < args.size(); ++i)
        if (!is_value(args[i]))
            return fail(ErrorCode::InvalidProgram, "instruction {}: argument {} is value {}, of {}", instruction, i,
                        args[i], m_.values_.size());
    return {};
}

// Arity and kinds (V20), and what the call needs of the temporary pool.
Result<void> MethodLoader::check_kernel_call(const pte::InstructionView& call, std::uint32_t instruction) {
    const std::int32_t index = call.op_index();
    if (index < 0 || static_cast<std::uint32_t>(index) >= m_.operators_.size())
        return fail(ErrorCode::InvalidProgram, "instruction {} calls operator {}, of {}", instruction, index,
                    m_.operators_.size());
    const Operator& op = m_.options_.operators[m_.operators_[static_cast<std::uint32_t>(index)]];
    const pte::Vector<std::int32_t> args = call.args();
    TRY(check_arguments(args, instruction));
    if (args.size() != op.arg_count)
        return fail(ErrorCode::InvalidProgram, "instruction {}: {} is called with {} arguments, it takes {}",
                    instruction, op.name, args.size(), op.arg_count);
    const Arguments arguments(op.name, m_.values_,
                              {reinterpret_cast<const std::uint32_t*>(args.data()), op.schema_args()}, {});
    TRY(check_kinds(op, arguments));
    if (op.temporary_bytes == nullptr) return {};
    TRY_ASSIGN(const std::size_t bytes, op.temporary_bytes(arguments));
    if (bytes > kMaxBytes)
        return fail(ErrorCode::InvalidProgram, "instruction {}: {} needs {} temporary bytes, at most {} are possible",
                    instruction, op.name, bytes, kMaxBytes);
    if (round_up_to_pool(bytes) > m_.need_.temporary) m_.need_.temporary = round_up_to_pool(bytes);
    return {};
}

Result<void> MethodLoader::check_delegate_call(const pte::InstructionView& call, std::uint32_t instruction) {
    const std::int32_t index = call.delegate_index();
    if (index < 0 || static_cast<std::uint32_t>(index) >= m_.delegates_.size())
        return fail(ErrorCode::InvalidProgram, "instruction {} calls delegate {}, of {}", instruction, index,
                    m_.delegates_.size());
    TRY(check_arguments(call.args(), instruction));
    return m_.delegates_[static_cast<std::uint32_t>(index)].check_arguments(m_.values_, call.args());
}

Result<void> MethodLoader::check_instruction(const pte::InstructionView& view, std::uint32_t instruction,
                                             std::uint32_t count) {
    const auto check_value = [&](std::int32_t index) -> Result<void> {
        if (!is_value(index))
            return fail(ErrorCode::InvalidProgram, "instruction {} refers to value {}, of {}", instruction, index,
                        m_.values_.size());
        return {};
    };
    switch (view.type()) {
        case pte::InstructionType::KernelCall:
            return check_kernel_call(view, instruction);
        case pte::InstructionType::DelegateCall:
            return check_delegate_call(view, instruction);
        case pte::InstructionType::MoveCall:
            TRY(check_value(view.move_from()));
            return check_value(view.move_to());
        case pte::InstructionType::JumpFalseCall: {
            TRY(check_value(view.condition()));
            const Value& condition = m_.values_[static_cast<std::uint32_t>(view.condition())];
            const bool tensor = condition.kind == Value::Kind::Tensor && condition.tensor->type == ScalarType::Bool;
            if (condition.kind != Value::Kind::Bool && !tensor)
                return fail(ErrorCode::InvalidProgram,
                            "instruction {} jumps on value {}, which is no Bool and no bool tensor but {}", instruction,
                            view.condition(), value_kind_name(condition.kind));
            if (view.destination() < 0 ||
                static_cast<std::uint32_t>(view.destination()) > count)  // V21; count is the end
                return fail(ErrorCode::InvalidProgram, "instruction {} jumps to {}, of {}", instruction,
                            view.destination(), count);
            return {};
        }
        case pte::InstructionType::FreeCall:
            TRY(check_value(view.freed_value()));
            if (kind(view.freed_value()) != Value::Kind::Tensor)
                return fail(ErrorCode::InvalidProgram, "instruction {} frees value {}, which is no Tensor", instruction,
                            view.freed_value());
            return {};
        case pte::InstructionType::None:
            break;
    }
    return fail(ErrorCode::InvalidProgram, "instruction {} of method '{}' has no type", instruction, view_.name());
}

Result<void> MethodLoader::check_instructions() {
    for (std::uint32_t c = 0; c < view_.chain_count(); ++c) {
        const pte::TableVector instructions = view_.instructions(c);
        for (std::uint32_t i = 0; i < instructions.size(); ++i)
            TRY(check_instruction(pte::InstructionView(instructions[i]), i, instructions.size()));
    }
    return {};
}

const Operator* find_operator(OperatorTable table, const pte::OperatorView& op) {
    // Compared in two parts, for the name in the table is joined: "name.overload" (section 5.3; V37).
    if (op.name.size() + op.overload.size() >= kMaxOperatorName) return nullptr;
    for (const Operator& row : table) {
        if (!row.name.starts_with(op.name)) continue;
        const std::string_view rest = row.name.substr(op.name.size());
        if (op.overload.empty() ? rest.empty() : !rest.empty() && rest.front() == '.' && rest.substr(1) == op.overload)
            return &row;
    }
    return nullptr;
}

bool is_operator_called(const pte::MethodView& method, std::uint32_t index) {
    for (std::uint32_t c = 0; c < method.chain_count(); ++c) {
        const pte::TableVector instructions = method.instructions(c);
        for (std::uint32_t i = 0; i < instructions.size(); ++i) {
            const pte::InstructionView view(instructions[i]);
            if (view.type() == pte::InstructionType::KernelCall && view.op_index() == static_cast<std::int32_t>(index))
                return true;
        }
    }
    return false;
}

Result<std::size_t> Method::pool_bytes(const pte::MethodView& method) {
    const Layout layout(method);
    if (layout.end > kMaxBytes)
        return fail(ErrorCode::InvalidProgram, "method '{}' needs {} bytes for its tables, at most {} are possible",
                    method.name(), layout.end, kMaxBytes);
    return static_cast<std::size_t>(layout.end);
}

Result<Method> Method::load(const pte::Program& program, std::string_view name, Pool method_pool,
                            const LoadOptions& options) {
    TRY_ASSIGN(const pte::MethodView view, program.find_method(name));
    Method method(program, view, options);
    MethodLoader loader(method, program);
    TRY(loader.check_parts());
    TRY(loader.take_pool(method_pool));
    TRY(loader.load_values());
    TRY(loader.check_lists());
    TRY(loader.check_inputs_and_outputs());
    TRY(loader.find_operators());
    TRY(loader.load_delegates());
    TRY(loader.check_instructions());
    return method;
}

}  // namespace talpa::runtime
