// Binding memory and running a method. (pte-format, sections 4, 5.2 and 5.4; V22, V23, V34)
#include "base/core/checked_math.h"
#include "runtime/method.h"
#include "runtime/tensor_load.h"

namespace talpa::runtime {
namespace {

struct NamedRange {
    const char* name;
    const std::uint8_t* data;
    std::size_t size;
};

Result<void> check_pool(const char* name, Pool pool, std::size_t need) {
    if (pool.size() < need)
        return fail(ErrorCode::MemoryAllocation, "pool '{}' needs {} bytes, it has {}", name, need, pool.size());
    if (need != 0 && reinterpret_cast<std::uintptr_t>(pool.data()) % kPoolAlignment != 0)
        return fail(ErrorCode::InvalidArgument, "pool '{}' must lie at a multiple of 16", name);
    return {};
}

// V34: a model whose scratch lies on top of it destroys itself at the first run (section 11.3).
Result<void> check_apart(std::span<const NamedRange> ranges) {
    for (std::size_t a = 0; a < ranges.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
            const auto at_a = reinterpret_cast<std::uintptr_t>(ranges[a].data),
                       at_b = reinterpret_cast<std::uintptr_t>(ranges[b].data);
            if (ranges_overlap(at_a, ranges[a].size, at_b, ranges[b].size))
                return fail(ErrorCode::InvalidArgument, "the memory of '{}' (at {}) overlaps that of '{}' (at {})",
                            ranges[a].name, hex(at_a), ranges[b].name, hex(at_b));
        }
    }
    return {};
}

constexpr const char* kArenaNames[kMaxArenas] = {
    TALPA_SENTENCE("planned 1"), TALPA_SENTENCE("planned 2"), TALPA_SENTENCE("planned 3"), TALPA_SENTENCE("planned 4"),
    TALPA_SENTENCE("planned 5"), TALPA_SENTENCE("planned 6"), TALPA_SENTENCE("planned 7"), TALPA_SENTENCE("planned 8")};

double magnitude(double v) {
    return v < 0 ? -v : v;
}

}  // namespace

Result<void> Method::bind(const Pools& pools) {
    bound_ = false;
    has_results_ = false;
    NamedRange ranges[kMaxArenas + 5] = {{"program", program_->bytes().data(), program_->bytes().size()},
                                         {"method", method_pool_.data(), method_pool_.size()}};
    std::size_t count = 2;
    const auto take = [&](const char* name, Pool pool, std::size_t need) -> Result<void> {
        TRY(check_pool(name, pool, need));
        ranges[count++] = {name, pool.data(), need};
        return {};
    };
    for (std::uint32_t i = 0; i < need_.arena_count; ++i)
        TRY(take(kArenaNames[i], i < pools.planned.size() ? pools.planned[i] : Pool(), need_.planned[i]));
    TRY(take(TALPA_SENTENCE("temporary"), pools.temporary, need_.temporary));
    TRY(take("scratch", pools.scratch, need_.scratch));
    TRY(take(TALPA_SENTENCE("fast scratch"), pools.fast_scratch, need_.fast_scratch));
    TRY(check_apart(std::span(ranges, count)));
    for (const pte::DataFile& file : options_.data_files) {
        for (std::size_t i = 1; i < count; ++i) {
            const NamedRange pair[] = {ranges[i], {"data file", file.bytes().data(), file.bytes().size()}};
            TRY(check_apart(pair));
        }
    }
    pools_ = pools;
    // A mutable buffer without an initial value starts as zeros, so the arenas must (section 4).
    for (std::uint32_t i = 0; i < need_.arena_count; ++i) zero_bytes(pools.planned[i].data(), need_.planned[i]);
    TRY(initialise_tensors());
    for (std::uint8_t& set : input_set_) set = 0;
    bound_ = true;
    return {};
}

Result<void> Method::initialise_tensors() {
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < values_.size(); ++i) {
        const pte::ValueView view = view_.value(i);
        if (view.type() != pte::ValueType::Tensor) continue;
        TRY_ASSIGN(const LoadedTensor loaded,
                   load_tensor(*program_, view.as_tensor(), i, view_.arena_sizes(), options_.data_files));
        Tensor& tensor = tensors_[next++];
        const bool in_place_input = tensor.is_constant;  // set by the loader
        tensor = loaded.tensor;
        tensor.is_constant = tensor.is_constant || in_place_input;
        values_[i].kind = Value::Kind::Tensor;  // a MoveCall may have put another here
        values_[i].tensor = &tensor;
        if (!loaded.source.planned) continue;
        tensor.data = pools_.planned[loaded.source.arena].data() + loaded.source.offset;
        copy_bytes(tensor.data, loaded.source.data.data(), loaded.source.data.size());
    }
    return {};
}

bool Method::is_unplanned(std::int32_t value_index) const {
    const pte::ValueView view = view_.value(static_cast<std::uint32_t>(value_index));
    if (view.type() != pte::ValueType::Tensor) return false;
    const pte::TensorView tensor = view.as_tensor();
    return !tensor.is_planned() && !tensor.is_external() && tensor.data_index() == 0;
}

Result<Tensor*> Method::input_tensor(std::uint32_t i) const {
    if (!bound_) return fail(ErrorCode::InvalidState, "method '{}' has no memory yet", view_.name());
    if (i >= input_count())
        return fail(ErrorCode::InvalidArgument, "input {} of method '{}', which has {}", i, view_.name(),
                    input_count());
    if (input(i).kind != Value::Kind::Tensor)
        return fail(ErrorCode::InvalidType, "input {} of method '{}' is no tensor but {}", i, view_.name(),
                    value_kind_name(input(i).kind));
    return input(i).tensor;
}

Result<void> Method::set_input(std::uint32_t i, const InputTensor& given) {
    TRY_ASSIGN(Tensor* const tensor, input_tensor(i));
    if (given.type != tensor->type)
        return fail(ErrorCode::InvalidType, "input {} must be {}, is {}", i, scalar_name(tensor->type),
                    scalar_name(given.type));
    if (given.sizes.size() != tensor->rank)
        return fail(ErrorCode::InvalidArgument, "input {} must have {} dimensions, has {}", i, tensor->rank,
                    given.sizes.size());
    // The bounds come from the file: the tensor's own sizes may be those of the last run.
    const pte::Vector<std::int32_t> bounds =
        view_.value(static_cast<std::uint32_t>(view_.inputs()[i])).as_tensor().sizes();
    std::uint64_t bytes = scalar_size(tensor->type), room = bytes;
    for (std::uint32_t d = 0; d < tensor->rank; ++d) {
        const std::int32_t size = given.sizes[d];
        if (size < 0 || (!tensor->is_dynamic && size != bounds[d]) || size > INT32_MAX / 8)
            return fail(ErrorCode::InvalidArgument, "dimension {} of input {} must be {}, is {}", d, i, bounds[d],
                        size);
        bytes *= static_cast<std::uint32_t>(size);
        room *= static_cast<std::uint32_t>(bounds[d]);
        if (bytes > INT32_MAX) return fail(ErrorCode::InvalidArgument, "input {} has more than 2^31 bytes", i);
    }
    if (bytes > room)
        return fail(ErrorCode::InvalidArgument, "input {} has {} bytes, its upper bound is {}", i, bytes, room);
    if (!given.dim_order.empty()) {
        if (given.dim_order.size() != tensor->rank)
            return fail(ErrorCode::InvalidArgument, "the order of input {} has {} dimensions, not {}", i,
                        given.dim_order.size(), tensor->rank);
        for (std::uint32_t d = 0; d < tensor->rank; ++d)
            if (given.dim_order[d] != tensor->dim_order[d])
                return fail(ErrorCode::InvalidArgument,
                            "entry {} of the order of input {} must be {}, is {}: channels last or not?", d, i,
                            tensor->dim_order[d], given.dim_order[d]);
    }
    if (given.bytes.size() != bytes)
        return fail(ErrorCode::InvalidArgument, "input {} must have {} bytes, has {}", i, bytes, given.bytes.size());
    if (input_is_unplanned(i)) {
        if (reinterpret_cast<std::uintptr_t>(given.bytes.data()) % scalar_size(tensor->type) != 0)
            return fail(ErrorCode::InvalidArgument,
                        "input {} is used in place and must be aligned to its elements ({})", i,
                        scalar_name(tensor->type));
        tensor->data = const_cast<std::uint8_t*>(given.bytes.data());  // is_constant keeps operators from writing
        tensor->capacity_bytes = given.bytes.size();
    } else {
        copy_bytes(tensor->data, given.bytes.data(), given.bytes.size());
    }
    for (std::uint32_t d = 0; d < tensor->rank; ++d) tensor->sizes[d] = given.sizes[d];
    input_set_[i] = 1;
    has_results_ = false;
    return {};
}

Result<void> Method::set_input(std::uint32_t i, Bytes bytes) {
    TRY_ASSIGN(const Tensor* const tensor, input_tensor(i));
    // The program's own sizes, whatever a dynamic tensor had in the last run.
    const pte::Vector<std::int32_t> bounds =
        view_.value(static_cast<std::uint32_t>(view_.inputs()[i])).as_tensor().sizes();
    std::array<std::int32_t, kMaxRank> sizes{};
    for (std::uint32_t d = 0; d < tensor->rank; ++d) sizes[d] = bounds[d];
    return set_input(i, {tensor->type, {sizes.data(), tensor->rank}, {}, bytes});
}

Result<void> Method::check_scalar_input(std::uint32_t i, double given) const {
    if (i >= input_count())
        return fail(ErrorCode::InvalidArgument, "input {} of method '{}', which has {}", i, view_.name(),
                    input_count());
    const Value& value = input(i);
    switch (value.kind) {
        case Value::Kind::Int:
        case Value::Kind::Bool:
            if (given == static_cast<double>(value.i)) return {};
            return fail(ErrorCode::InvalidArgument, "input {} was fixed to {} at export", i, value.i);
        case Value::Kind::Double:
            if (magnitude(given - value.d) <= 1e-4 + 1e-5 * magnitude(value.d)) return {};
            return fail(ErrorCode::InvalidArgument, "input {} was fixed to another number at export", i);
        default:
            return fail(ErrorCode::InvalidType, "input {} is no number but {}", i, value_kind_name(value.kind));
    }
}

Result<void> Method::set_output_memory(std::uint32_t i, Pool memory) {
    if (!bound_) return fail(ErrorCode::InvalidState, "method '{}' has no memory yet", view_.name());
    if (i >= output_count())
        return fail(ErrorCode::InvalidArgument, "output {} of method '{}', which has {}", i, view_.name(),
                    output_count());
    if (!output_is_unplanned(i)) return fail(ErrorCode::InvalidState, "output {} has its place in an arena", i);
    const auto index = static_cast<std::uint32_t>(view_.outputs()[i]);
    Tensor& tensor = *own_tensor(index);
    if (tensor.is_constant) return {};  // an input that is passed through
    TRY_ASSIGN(const LoadedTensor loaded,
               load_tensor(*program_, view_.value(index).as_tensor(), index, view_.arena_sizes(), options_.data_files));
    if (memory.size() < loaded.tensor.size_bytes())
        return fail(ErrorCode::MemoryAllocation, "output {} needs {} bytes, it is given {}", i,
                    loaded.tensor.size_bytes(), memory.size());
    if (reinterpret_cast<std::uintptr_t>(memory.data()) % scalar_size(tensor.type) != 0)
        return fail(ErrorCode::InvalidArgument, "the memory of output {} is not aligned to its elements ({})", i,
                    scalar_name(tensor.type));
    tensor.data = memory.data();
    tensor.capacity_bytes = loaded.tensor.size_bytes();
    return {};
}

Result<void> Method::check_ready() const {
    if (!bound_) return fail(ErrorCode::InvalidState, "method '{}' has no memory yet", view_.name());
    for (std::uint32_t i = 0; i < input_count(); ++i)
        if (input(i).kind == Value::Kind::Tensor && input_set_[i] == 0)
            return fail(ErrorCode::InvalidState,
                        "input {} of method '{}' was not set since the last run, which may have overwritten it", i,
                        view_.name());
    if (options_.device == nullptr && !delegates_.empty())
        return fail(ErrorCode::InvalidState, "method '{}' needs an NPU, none is given", view_.name());
    return {};
}

Result<void> Method::execute() {
    TRY(check_ready());
    has_results_ = false;
    last_step_ = {};
    npu_cycles_ = 0;
    for (std::uint8_t& set : input_set_) set = 0;
    std::uint64_t budget = options_.instruction_budget;
    for (std::uint32_t chain = 0; chain < view_.chain_count(); ++chain) TRY(run_chain(chain, budget));
    has_results_ = true;
    return {};
}

Result<void> Method::run_chain(std::uint32_t chain, std::uint64_t& budget) {
    const pte::TableVector instructions = view_.instructions(chain);
    for (std::uint32_t at = 0; at < instructions.size();) {
        if (budget == 0)
            return fail(ErrorCode::InvalidProgram, "method '{}' ran {} instructions without an end; the last was {}",
                        view_.name(), options_.instruction_budget, at);
        --budget;
        Step& step = last_step_ = Step{chain, at, 0};
        if (options_.observer != nullptr) options_.observer->before(step);
        const pte::InstructionView instruction(instructions[at]);
        ++at;
        switch (instruction.type()) {
            case pte::InstructionType::KernelCall:
                TRY(kernel_call(instruction));
                break;
            case pte::InstructionType::DelegateCall: {
                TRY_ASSIGN(step.npu_cycles, delegate_call(instruction));
                npu_cycles_ += step.npu_cycles;
                break;
            }
            case pte::InstructionType::MoveCall:  // a handle, never bytes
                values_[static_cast<std::uint32_t>(instruction.move_to())] =
                    values_[static_cast<std::uint32_t>(instruction.move_from())];
                break;
            case pte::InstructionType::JumpFalseCall: {
                TRY_ASSIGN(const bool go_on, condition(static_cast<std::uint32_t>(instruction.condition())));
                if (!go_on) at = static_cast<std::uint32_t>(instruction.destination());
                break;
            }
            case pte::InstructionType::FreeCall:
                free_call(static_cast<std::uint32_t>(instruction.freed_value()));
                break;
            case pte::InstructionType::None:
                break;  // the loader refused it
        }
        if (options_.observer != nullptr) options_.observer->after(step);
    }
    return {};
}

Result<void> Method::kernel_call(const pte::InstructionView& call) {
    const Operator& op = options_.operators[operators_[static_cast<std::uint32_t>(call.op_index())]];
    // Argument indices are aligned little-endian words in the file: as they are in memory.
    Arguments arguments(op.name, values_,
                        {reinterpret_cast<const std::uint32_t*>(call.args().data()), op.schema_args()},
                        pools_.temporary.first(need_.temporary));
    return op.run(arguments);
}

Result<std::uint64_t> Method::delegate_call(const pte::InstructionView& call) {
    const EthosUDelegate& delegate = delegates_[static_cast<std::uint32_t>(call.delegate_index())];
    return delegate.run(*options_.device, values_, call.args(), pools_.scratch, pools_.fast_scratch);
}

Result<bool> Method::condition(std::uint32_t value_index) const {
    const Value& value = values_[value_index];
    if (value.kind == Value::Kind::Bool) return value.i != 0;
    const bool is_tensor = value.kind == Value::Kind::Tensor && value.tensor->type == ScalarType::Bool;
    if (!is_tensor || (value.tensor->data == nullptr && value.tensor->numel() != 0))
        return fail(ErrorCode::InvalidProgram, "a jump on value {}, which is {} without memory or no condition",
                    value_index, value_kind_name(value.kind));
    for (std::size_t i = 0; i < value.tensor->numel(); ++i)
        if (value.tensor->data[i] == 0) return false;
    return true;
}

void Method::free_call(std::uint32_t value_index) {
    // Only what has no place of its own: planned tensors and constants are needed in the next run.
    const Value& value = values_[value_index];
    if (value.kind == Value::Kind::Tensor && value.tensor == own_tensor(value_index) &&
        is_unplanned(static_cast<std::int32_t>(value_index)))
        value.tensor->data = nullptr;
}

// The tensor that a value has by the file, whatever a MoveCall put there. The value is a tensor in the file.
Tensor* Method::own_tensor(std::uint32_t value_index) const {
    std::size_t nth = 0;
    for (std::uint32_t v = 0; v < value_index; ++v) nth += view_.value(v).type() == pte::ValueType::Tensor;
    return nth < tensors_.size() ? &tensors_[nth] : nullptr;
}

Result<const Tensor*> Method::output_tensor(std::uint32_t i) const {
    if (!has_results_)
        return fail(ErrorCode::InvalidState, "method '{}' has no results: it has not run since an input was set",
                    view_.name());
    if (i >= output_count())
        return fail(ErrorCode::InvalidArgument, "output {} of method '{}', which has {}", i, view_.name(),
                    output_count());
    const Value& value = output(i);
    if (value.kind != Value::Kind::Tensor)
        return fail(ErrorCode::InvalidType, "output {} of method '{}' is no tensor but {}", i, view_.name(),
                    value_kind_name(value.kind));
    if (value.tensor->data == nullptr && value.tensor->size_bytes() != 0)
        return fail(ErrorCode::InvalidState,
                    "output {} of method '{}' has no memory: give it some with set_output_memory", i, view_.name());
    return value.tensor;
}

}  // namespace talpa::runtime
