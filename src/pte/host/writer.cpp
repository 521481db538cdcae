#include "pte/host/writer.h"

#include <algorithm>
#include <numeric>

#include "base/core/checked_math.h"
#include "pte/host/flatbuffer_builder.h"

namespace talpa::pte::host {
namespace {

constexpr std::size_t kInlineAlignment = 16;  // of inline payloads and constants, relative to offset 0
constexpr std::size_t kConstantAlignment = 16;

/// The segments of a file, in ascending offsets.
class Segments {
  public:
    explicit Segments(std::size_t alignment) : alignment_(alignment) {}

    std::uint32_t add(Bytes bytes) {
        const std::uint64_t offset = bytes.empty() ? data_.size() : round_up(data_.size(), alignment_);
        if (!bytes.empty()) {
            data_.resize(offset);
            data_.insert(data_.end(), bytes.begin(), bytes.end());
        }
        entries_.push_back({offset, bytes.size()});
        return static_cast<std::uint32_t>(entries_.size() - 1);
    }
    [[nodiscard]] const std::vector<std::uint8_t>& data() const { return data_; }
    [[nodiscard]] FlatRef table() const {
        std::vector<FlatRef> tables;
        for (const SegmentView& e : entries_)
            tables.push_back(
                TableBuilder().scalar(slot::segment::offset, e.offset).scalar(slot::segment::size, e.size).ref());
        return flat_tables(std::move(tables));
    }

  private:
    std::size_t alignment_;
    std::vector<std::uint8_t> data_;
    std::vector<SegmentView> entries_;
};

/// Pieces put together into one segment; entry 0 is the placeholder.
struct Subsegments {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> offsets{0};

    Subsegments(const std::vector<std::vector<std::uint8_t>>& pieces, std::size_t alignment) {
        for (const auto& piece : pieces) {
            bytes.resize(round_up(bytes.size(), alignment));
            offsets.push_back(bytes.size());
            bytes.insert(bytes.end(), piece.begin(), piece.end());
        }
    }
    [[nodiscard]] FlatRef table(std::uint32_t segment) const {
        return TableBuilder()
            .scalar(slot::subsegment::segment_index, segment)
            .child(slot::subsegment::offsets, flat_vector(offsets))
            .ref();
    }
};

FlatRef tensor_table(const TensorSpec& t) {
    std::vector<std::uint8_t> order(t.sizes.size());
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    TableBuilder table;
    table.scalar(slot::tensor::scalar_type, t.scalar_type)
        .scalar(slot::tensor::storage_offset, t.storage_offset)
        .child(slot::tensor::sizes, flat_vector(t.sizes))
        .child(slot::tensor::dim_order, flat_bytes(t.dim_order.value_or(order)))
        .scalar(slot::tensor::data_buffer_idx, t.data_index)
        .scalar(slot::tensor::shape_dynamism, static_cast<std::int8_t>(t.dynamism));
    if (t.placement)
        table.child(
            slot::tensor::allocation_info,
            TableBuilder()
                .scalar(slot::allocation::memory_id, t.placement->memory_id)
                .scalar(slot::allocation::memory_offset_low, static_cast<std::uint32_t>(t.placement->offset))
                .scalar(slot::allocation::memory_offset_high, static_cast<std::uint32_t>(t.placement->offset >> 32))
                .ref());
    if (t.extra)
        table.child(slot::tensor::extra_tensor_info,
                    TableBuilder()
                        .child(slot::extra::fully_qualified_name, flat_string(t.extra->name))
                        .scalar(slot::extra::location, t.extra->location)
                        .scalar(slot::extra::device_type, t.extra->device_type)
                        .ref());
    return table.ref();
}

/// The table of a value; the union number is the alternative's place in ValueSpec plus one.
struct ValueTable {
    FlatRef operator()(const NullSpec&) const { return TableBuilder().ref(); }
    FlatRef operator()(std::int64_t v) const { return TableBuilder().scalar(0, v).ref(); }
    FlatRef operator()(bool v) const { return TableBuilder().scalar<std::uint8_t>(0, v ? 1 : 0).ref(); }
    FlatRef operator()(double v) const { return TableBuilder().stored(0, v).ref(); }
    FlatRef operator()(const TensorSpec& v) const { return tensor_table(v); }
    FlatRef operator()(const std::string& v) const { return TableBuilder().child(0, flat_string(v)).ref(); }
    FlatRef operator()(const BoolListSpec& v) const { return TableBuilder().child(0, flat_bytes(v.items)).ref(); }
    template <typename List>
    FlatRef operator()(const List& v) const {
        return TableBuilder().child(0, flat_vector(v.items)).ref();
    }
};

FlatRef value_table(const ValueSpec& value) {
    return TableBuilder()
        .scalar(slot::evalue::val_type, static_cast<std::uint8_t>(value.index() + 1))
        .child(slot::evalue::val, std::visit(ValueTable(), value))
        .ref();
}

struct InstructionTable {
    FlatRef operator()(const std::monostate&) const { return nullptr; }
    FlatRef operator()(const KernelCallSpec& c) const {
        return TableBuilder()
            .scalar(slot::kernel_call::op_index, c.op)
            .child(slot::kernel_call::args, flat_vector(c.args))
            .ref();
    }
    FlatRef operator()(const DelegateCallSpec& c) const {
        return TableBuilder()
            .scalar(slot::delegate_call::delegate_index, c.delegate)
            .child(slot::delegate_call::args, flat_vector(c.args))
            .ref();
    }
    FlatRef operator()(const MoveCallSpec& c) const {
        return TableBuilder().scalar(slot::move_call::move_from, c.from).scalar(slot::move_call::move_to, c.to).ref();
    }
    FlatRef operator()(const JumpFalseCallSpec& c) const {
        return TableBuilder()
            .scalar(slot::jump_false::cond_value_index, c.condition)
            .scalar(slot::jump_false::destination_instruction, c.destination)
            .ref();
    }
    FlatRef operator()(const FreeCallSpec& c) const {
        return TableBuilder().scalar(slot::free_call::value_index, c.value).ref();
    }
};

FlatRef chain_table(const std::vector<InstructionSpec>& chain) {
    std::vector<FlatRef> instructions;
    for (const InstructionSpec& i : chain)
        instructions.push_back(TableBuilder()
                                   .scalar(slot::instruction::instr_args_type, static_cast<std::uint8_t>(i.index()))
                                   .child(slot::instruction::instr_args, std::visit(InstructionTable(), i))
                                   .ref());
    return TableBuilder()
        .child(slot::chain::inputs, flat_vector(std::vector<std::int32_t>()))
        .child(slot::chain::outputs, flat_vector(std::vector<std::int32_t>()))
        .child(slot::chain::instructions, flat_tables(std::move(instructions)))
        .ref();
}

FlatRef name_pair(const std::pair<std::string, std::string>& names) {
    return TableBuilder()
        .child(slot::op::name, flat_string(names.first))
        .child(slot::op::overload, flat_string(names.second))
        .ref();
}

template <typename T, typename Fn>
FlatRef tables_of(const std::vector<T>& items, Fn&& make) {
    std::vector<FlatRef> tables;
    for (const T& item : items) tables.push_back(make(item));
    return flat_tables(std::move(tables));
}

class ProgramWriter {
  public:
    explicit ProgramWriter(const ProgramSpec& spec) : spec_(spec), segments_(spec.segment_alignment) {}

    std::vector<std::uint8_t> write() {
        TableBuilder root;
        root.scalar(slot::program::version, spec_.version);
        add_constants(root);
        if (!spec_.initial_values.empty()) {
            const Subsegments values(spec_.initial_values, 1);
            root.child(slot::program::mutable_data_segments, flat_tables({values.table(segments_.add(values.bytes))}));
        }
        root.child(slot::program::execution_plan,
                   tables_of(spec_.methods, [&](const MethodSpec& m) { return plan_table(m); }));
        root.child(slot::program::backend_delegate_data, tables_of(inline_payloads_, [](const auto& p) {
                       return TableBuilder().child(0, flat_bytes(p, kInlineAlignment)).ref();
                   }));
        if (!spec_.named_data.empty())
            root.child(slot::program::named_data, tables_of(spec_.named_data, [&](const NamedDataSpec& d) {
                           return TableBuilder()
                               .child(slot::named::key, flat_string(d.key))
                               .scalar(slot::named::segment_index, segments_.add(d.data))
                               .ref();
                       }));
        root.child(slot::program::segments, segments_.table());
        for (const unsigned s : spec_.omitted_slots) root.ref()->children.erase(s);
        return put_together(root.ref());
    }

  private:
    void add_constants(TableBuilder& root) {
        if (spec_.constant_form == ProgramSpec::Constants::InlineBuffer) {
            std::vector<FlatRef> buffers{TableBuilder().child(0, flat_bytes({})).ref()};
            for (const auto& c : spec_.constants)
                buffers.push_back(TableBuilder().child(0, flat_bytes(c, kInlineAlignment)).ref());
            root.child(slot::program::constant_buffer, flat_tables(std::move(buffers)));
            return;
        }
        // Mandatory even without constants: runtimes since 1.3 may refuse a program without it (section 1.4).
        const Subsegments constants(spec_.constants, kConstantAlignment);
        root.child(slot::program::constant_segment, constants.table(segments_.add(constants.bytes)));
    }

    FlatRef delegate_table(const DelegateSpec& d) {
        std::uint32_t index = 0;
        if (d.location == DataLocation::Inline) {
            const auto known = std::ranges::find(inline_payloads_, d.payload);
            index = static_cast<std::uint32_t>(known - inline_payloads_.begin());
            if (known == inline_payloads_.end()) inline_payloads_.push_back(d.payload);
        } else {
            const auto known = std::ranges::find(segment_payloads_, d.payload, [](const auto& p) { return p.first; });
            index = known == segment_payloads_.end() ? segments_.add(d.payload) : known->second;
            if (known == segment_payloads_.end()) segment_payloads_.emplace_back(d.payload, index);
        }
        return TableBuilder()
            .child(slot::delegate::id, flat_string(d.id))
            .child(slot::delegate::processed,
                   TableBuilder()
                       .scalar(slot::data_reference::location, static_cast<std::int8_t>(d.location))
                       .scalar(slot::data_reference::index, index)
                       .ref())
            .child(slot::delegate::compile_specs,
                   tables_of(d.compile_specs,
                             [](const auto& s) {
                                 return TableBuilder()
                                     .child(slot::compile_spec::key, flat_string(s.first))
                                     .child(slot::compile_spec::value,
                                            flat_vector(std::vector<std::uint8_t>(s.second.begin(), s.second.end())))
                                     .ref();
                             }))
            .ref();
    }

    FlatRef plan_table(const MethodSpec& m) {
        TableBuilder plan;
        plan.child(slot::plan::name, flat_string(m.name))
            .child(slot::plan::container_meta_type, name_pair({m.input_tree, m.output_tree}))
            .child(slot::plan::values, tables_of(m.values, value_table))
            .child(slot::plan::inputs, flat_vector(m.inputs))
            .child(slot::plan::outputs, flat_vector(m.outputs))
            .child(slot::plan::chains, tables_of(m.chains, chain_table))
            .child(slot::plan::operators, tables_of(m.operators, name_pair))
            .child(slot::plan::delegates,
                   tables_of(m.delegates, [&](const DelegateSpec& d) { return delegate_table(d); }))
            .child(slot::plan::non_const_buffer_sizes, flat_vector(m.arena_sizes));
        if (!m.arena_device_types.empty()) {
            std::vector<FlatRef> devices;
            for (std::size_t i = 0; i < m.arena_device_types.size(); ++i)
                devices.push_back(TableBuilder()
                                      .scalar(slot::buffer_device::buffer_idx, static_cast<std::int32_t>(i + 1))
                                      .scalar(slot::buffer_device::device_type, m.arena_device_types[i])
                                      .ref());
            plan.child(slot::plan::non_const_buffer_device, flat_tables(std::move(devices)));
        }
        for (const unsigned s : m.omitted_slots) plan.ref()->children.erase(s);
        return plan.ref();
    }

    // The header stands right after the identifier, and only if there is a byte in any segment (section 1.2).
    [[nodiscard]] std::vector<std::uint8_t> put_together(const FlatRef& root) const {
        const std::vector<std::uint8_t>& data = segments_.data();
        std::vector<std::uint8_t> file = finish_flatbuffer(root, "ET12", data.empty() ? 8 : 40);
        if (data.empty()) {
            file.resize(std::max<std::size_t>(file.size(), kMinFileSize));
            return file;
        }
        const std::uint64_t program_size = file.size();
        const std::uint64_t base = round_up<std::uint64_t>(program_size, spec_.segment_alignment);
        std::ranges::copy(std::string_view("eh00"), file.begin() + 8);
        store_le(file.data() + 12, spec_.header_length);
        store_le(file.data() + 16, program_size);
        store_le(file.data() + 24, base);
        if (spec_.header_length >= 32) store_le(file.data() + 32, std::uint64_t{data.size()});
        file.resize(base);
        file.insert(file.end(), data.begin(), data.end());
        return file;
    }

    const ProgramSpec& spec_;
    Segments segments_;
    std::vector<std::vector<std::uint8_t>> inline_payloads_;
    std::vector<std::pair<std::vector<std::uint8_t>, std::uint32_t>> segment_payloads_;
};

}  // namespace

std::vector<std::uint8_t> write_program(const ProgramSpec& program) {
    return ProgramWriter(program).write();
}

MethodSpec constant_method_spec(std::string name, ValueSpec value) {
    MethodSpec m;
    m.name = std::move(name);
    m.values.push_back(std::move(value));
    m.outputs = {0};
    return m;
}

std::vector<std::uint8_t> write_data_file(const std::vector<DataEntrySpec>& entries) {
    constexpr std::size_t kHeaderEnd = 48;
    constexpr std::size_t kAlignment = 128;
    Segments segments(kAlignment);
    TableBuilder root;
    root.child(
        slot::flat_tensor::named_data, tables_of(entries, [&](const DataEntrySpec& e) {
            TableBuilder named;
            named.child(slot::named::key, flat_string(e.key)).scalar(slot::named::segment_index, segments.add(e.data));
            if (e.layout)
                named.child(slot::named::tensor_layout,
                            TableBuilder()
                                .scalar(slot::layout::scalar_type, e.layout->scalar_type)
                                .child(slot::layout::sizes, flat_vector(e.layout->sizes))
                                .child(slot::layout::dim_order, flat_vector(e.layout->dim_order))
                                .ref());
            return named.ref();
        }));
    root.child(slot::flat_tensor::segments, segments.table());
    std::vector<std::uint8_t> file = finish_flatbuffer(root.ref(), "FT01", kHeaderEnd);
    const std::uint64_t end = file.size(), base = round_up<std::uint64_t>(end, kAlignment);
    std::ranges::copy(std::string_view("FH01"), file.begin() + 8);
    store_le(file.data() + 12, std::uint32_t{40});
    store_le(file.data() + 16, std::uint64_t{kHeaderEnd});
    store_le(file.data() + 24, end - kHeaderEnd);
    store_le(file.data() + 32, base);
    store_le(file.data() + 40, std::uint64_t{segments.data().size()});
    file.resize(base);
    file.insert(file.end(), segments.data().begin(), segments.data().end());
    return file;
}

}  // namespace talpa::pte::host
