#include "pte/host/read_spec.h"

#include <algorithm>

#include "pte/delegate_blob.h"
#include "pte/host/delegate_blob_writer.h"

namespace talpa::pte::host {
namespace {

template <typename T>
std::vector<T> copy_of(const Vector<T>& v) {
    std::vector<T> out;
    for (std::uint32_t i = 0; i < v.size(); ++i) out.push_back(v[i]);
    return out;
}

TensorSpec tensor_spec(const TensorView& view) {
    TensorSpec t;
    t.scalar_type = view.scalar_type();
    t.sizes = copy_of(view.sizes());
    t.dim_order = copy_of(view.dim_order());
    t.data_index = view.data_index();
    t.dynamism = view.dynamism();
    t.storage_offset = view.storage_offset();
    if (view.is_planned()) t.placement = PlacementSpec{view.memory_id(), view.memory_offset()};
    if (view.table().has(slot::tensor::extra_tensor_info))
        t.extra = ExtraTensorSpec{std::string(view.qualified_name()), view.location(), view.device_type()};
    return t;
}

Result<ValueSpec> value_spec(const ValueView& view) {
    switch (view.type()) {
        case ValueType::None:
            return fail(ErrorCode::InvalidProgram, "a value without a type");
        case ValueType::Null:
            return NullSpec();
        case ValueType::Int:
            return view.as_int();
        case ValueType::Bool:
            return view.as_bool();
        case ValueType::Double:
            return view.as_double();
        case ValueType::Tensor:
            return tensor_spec(view.as_tensor());
        case ValueType::String:
            return std::string(view.as_string());
        case ValueType::IntList:
            return IntListSpec{copy_of(view.int_list())};
        case ValueType::DoubleList:
            return DoubleListSpec{copy_of(view.double_list())};
        case ValueType::BoolList:
            return BoolListSpec{copy_of(view.bool_list())};
        case ValueType::TensorList:
            return TensorListSpec{copy_of(view.tensor_list())};
        case ValueType::OptionalTensorList:
            return OptionalTensorListSpec{copy_of(view.tensor_list())};
    }
    return fail(ErrorCode::InvalidProgram, "a value of unknown type {}", static_cast<int>(view.type()));
}

InstructionSpec instruction_spec(const InstructionView& view) {
    switch (view.type()) {
        case InstructionType::KernelCall:
            return KernelCallSpec{view.op_index(), copy_of(view.args())};
        case InstructionType::DelegateCall:
            return DelegateCallSpec{view.delegate_index(), copy_of(view.args())};
        case InstructionType::MoveCall:
            return MoveCallSpec{view.move_from(), view.move_to()};
        case InstructionType::JumpFalseCall:
            return JumpFalseCallSpec{view.condition(), view.destination()};
        case InstructionType::FreeCall:
            return FreeCallSpec{view.freed_value()};
        case InstructionType::None:
            break;
    }
    return std::monostate();
}

Result<MethodSpec> method_spec(const Program& program, const MethodView& view) {
    MethodSpec m;
    m.name = view.name();
    m.input_tree = view.input_tree();
    m.output_tree = view.output_tree();
    for (std::uint32_t i = 0; i < view.values().size(); ++i) {
        TRY_ASSIGN(ValueSpec value, value_spec(view.value(i)));
        m.values.push_back(std::move(value));
    }
    m.inputs = copy_of(view.inputs());
    m.outputs = copy_of(view.outputs());
    m.chains.clear();
    for (std::uint32_t c = 0; c < view.chain_count(); ++c) {
        const TableVector instructions = view.instructions(c);
        auto& chain = m.chains.emplace_back();
        for (std::uint32_t i = 0; i < instructions.size(); ++i)
            chain.push_back(instruction_spec(InstructionView(instructions[i])));
    }
    for (std::uint32_t i = 0; i < view.operators().size(); ++i)
        m.operators.emplace_back(view.op(i).name, view.op(i).overload);
    for (std::uint32_t i = 0; i < view.delegate_count(); ++i) {
        const DelegateView delegate = view.delegate(i);
        TRY_ASSIGN(const Bytes payload, program.delegate_data(delegate));
        DelegateSpec d;
        d.id = delegate.id();
        d.payload.assign(payload.begin(), payload.end());
        d.location = delegate.location();
        for (std::uint32_t s = 0; s < delegate.compile_spec_count(); ++s)
            d.compile_specs.emplace_back(delegate.compile_spec(s).key, delegate.compile_spec(s).text());
        m.delegates.push_back(std::move(d));
    }
    m.arena_sizes = copy_of(view.arena_sizes());
    for (std::uint32_t i = 0; i < view.arena_devices().size(); ++i)
        m.arena_device_types.push_back(view.arena_devices()[i].scalar<std::int8_t>(slot::buffer_device::device_type));
    return m;
}

/// The largest tensor that uses each index: the file does not store how long a constant is.
std::vector<std::uint64_t> data_sizes(const Program& program, bool planned) {
    // Bytes of an element by scalar type id (section 3.1); ids without one count as 1.
    static constexpr std::uint8_t kBytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 1, 1, 1, 1, 1, 1, 4,
                                              2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 4, 8};
    std::vector<std::uint64_t> sizes;
    for (std::uint32_t m = 0; m < program.method_count(); ++m) {
        const MethodView method = program.method(m);
        for (std::uint32_t i = 0; i < method.values().size(); ++i) {
            if (method.value(i).type() != ValueType::Tensor) continue;
            const TensorView t = method.value(i).as_tensor();
            if (t.data_index() == 0 || t.is_external() || t.is_planned() != planned) continue;
            const auto type = static_cast<std::uint8_t>(t.scalar_type());
            std::uint64_t bytes = type < std::size(kBytes) ? kBytes[type] : 1;
            for (std::uint32_t d = 0; d < t.sizes().size(); ++d)
                bytes *= static_cast<std::uint32_t>(std::max(t.sizes()[d], 0));
            if (sizes.size() < t.data_index()) sizes.resize(t.data_index());
            sizes[t.data_index() - 1] = std::max(sizes[t.data_index() - 1], bytes);
        }
    }
    return sizes;
}

}  // namespace

Result<ProgramSpec> read_spec(const Program& program) {
    ProgramSpec spec;
    spec.version = program.version();
    spec.constant_form =
        program.has_constant_buffer() ? ProgramSpec::Constants::InlineBuffer : ProgramSpec::Constants::Segment;
    for (std::uint32_t i = 0; i < program.method_count(); ++i) {
        TRY_ASSIGN(MethodSpec method, method_spec(program, program.method(i)));
        spec.methods.push_back(std::move(method));
    }
    const auto take = [](std::vector<std::vector<std::uint8_t>>& pieces, const std::vector<std::uint64_t>& sizes,
                         auto&& read) -> Result<void> {
        for (std::uint32_t i = 0; i < sizes.size(); ++i) {
            TRY_ASSIGN(const Bytes bytes, read(i + 1, sizes[i]));
            pieces.emplace_back(bytes.begin(), bytes.end());
        }
        return {};
    };
    TRY(take(spec.constants, data_sizes(program, false),
             [&](std::uint32_t i, std::uint64_t n) { return program.constant(i, n); }));
    TRY(take(spec.initial_values, data_sizes(program, true),
             [&](std::uint32_t i, std::uint64_t n) { return program.mutable_data(i, n); }));
    for (std::uint32_t i = 0; i < program.named_data_count(); ++i) {
        const NamedDataView named = program.named_data(i);
        TRY_ASSIGN(const Bytes bytes, program.segment_data(named.segment_index));
        spec.named_data.push_back({std::string(named.key), {bytes.begin(), bytes.end()}});
    }
    return spec;
}

Result<std::vector<std::uint8_t>> inline_payload(Bytes payload, const Program& program,
                                                 std::span<const DataFile> data_files) {
    TRY_ASSIGN(const DelegateBlob blob, parse_delegate_blob(payload));
    const auto resolve = [&](const BlobBlock& block) -> Result<std::vector<std::uint8_t>> {
        if (!block.external) return std::vector<std::uint8_t>(block.data.begin(), block.data.end());
        TRY_ASSIGN(std::optional<Bytes> found, program.find_named_data(block.key()));
        for (const DataFile& file : data_files) {
            if (found) break;
            TRY_ASSIGN(const std::optional<DataEntry> entry, file.find(block.key()));
            if (!entry) continue;
            TRY_ASSIGN(found, file.data(*entry));
        }
        if (!found) return fail(ErrorCode::NotFound, "no data under the key '{}'", block.key());
        return std::vector<std::uint8_t>(found->begin(), found->end());
    };
    DelegateBlobSpec spec;
    TRY_ASSIGN(spec.command_data, resolve(blob.command_data));
    TRY_ASSIGN(spec.weights, resolve(blob.weights));
    spec.scratch_size = blob.scratch_size;
    const auto records = [](const IoTable& table) {
        std::vector<IoRecordSpec> out;
        for (std::uint32_t i = 0; i < table.count(); ++i) {
            const IoRecord r = table[i];
            IoRecordSpec s;
            std::ranges::copy(r.shape, s.shape.begin());
            s.element_size = static_cast<std::int32_t>(r.element_size);
            s.offset = static_cast<std::int32_t>(r.offset);
            s.region = static_cast<std::int32_t>(r.region);
            out.push_back(s);
        }
        return out;
    };
    spec.inputs = records(blob.inputs);
    spec.outputs = records(blob.outputs);
    return write_delegate_blob(spec);
}

}  // namespace talpa::pte::host
