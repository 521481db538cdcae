#include "pte/program.h"

#include "base/core/checked_math.h"

namespace talpa::pte {

CompileSpecView DelegateView::compile_spec(std::uint32_t i) const {
    const Table spec = table_.tables(slot::delegate::compile_specs)[i];
    return {spec.string(slot::compile_spec::key), spec.vector<std::uint8_t>(slot::compile_spec::value).bytes()};
}

std::string_view DelegateView::compile_spec(std::string_view key) const {
    for (std::uint32_t i = 0; i < compile_spec_count(); ++i) {
        const CompileSpecView spec = compile_spec(i);
        if (spec.key == key) return spec.text();
    }
    return {};
}

TableVector MethodView::stack_trace(std::uint32_t chain, std::uint32_t instruction) const {
    const TableVector lists = plan_.tables(slot::plan::chains)[chain].tables(slot::chain::stacktrace);
    return instruction < lists.size() ? lists[instruction].tables(0) : TableVector();
}

Result<Program> Program::open(Bytes file) {
    Program program;
    program.file_ = file;
    TRY_ASSIGN(program.frame_, program_frame(file));
    TRY_ASSIGN(program.root_,
               verify(file.first(static_cast<std::size_t>(program.frame_.flatbuffer_size)), TableKind::Program));
    // V19: constants are in one place or the other.
    const std::uint32_t offsets =
        program.root_.table(slot::program::constant_segment).vector<std::uint64_t>(slot::subsegment::offsets).size();
    if (program.has_constant_buffer() && offsets > 1)
        return fail(ErrorCode::InvalidProgram,
                    "constants are both in constant_buffer ({}) and in constant_segment ({})",
                    program.root_.tables(slot::program::constant_buffer).size(), offsets);
    if (program.method_count() == 0) return fail(ErrorCode::InvalidProgram, "the program has no methods");
    return program;
}

Result<MethodView> Program::find_method(std::string_view name) const {
    std::optional<MethodView> found;
    for (std::uint32_t i = 0; i < method_count(); ++i) {
        if (method(i).name() != name) continue;
        if (found) return fail(ErrorCode::InvalidProgram, "two methods have the name '{}'", name);
        found = method(i);
    }
    if (!found)
        return fail(ErrorCode::NotFound, "no method '{}' among the {} of the program; the first is '{}'", name,
                    method_count(), method(0).name());
    return *found;
}

SegmentView Program::segment(std::uint32_t i) const {
    const Table t = root_.tables(slot::program::segments)[i];
    return {t.scalar<std::uint64_t>(slot::segment::offset), t.scalar<std::uint64_t>(slot::segment::size)};
}

Result<Bytes> Program::segment_data(std::uint64_t index) const {
    if (index >= segment_count())
        return fail(ErrorCode::InvalidProgram, "segment {} is referred to, there are {}", index, segment_count());
    const auto i = static_cast<std::uint32_t>(index);
    return segment_bytes(file_, frame_, i, segment(i).offset, segment(i).size);
}

std::uint32_t Program::constant_count() const {
    if (has_constant_buffer()) return root_.tables(slot::program::constant_buffer).size();
    return root_.table(slot::program::constant_segment).vector<std::uint64_t>(slot::subsegment::offsets).size();
}

Result<Bytes> Program::subsegment(Table offsets, std::uint32_t index, std::uint64_t size, const char* what) const {
    const Vector<std::uint64_t> list = offsets.vector<std::uint64_t>(slot::subsegment::offsets);
    if (index >= list.size())
        return fail(ErrorCode::InvalidProgram, "{} {} is referred to, there are {}", what, index, list.size());
    if (size == 0) return Bytes();
    TRY_ASSIGN(const Bytes segment, segment_data(offsets.scalar<std::uint32_t>(slot::subsegment::segment_index)));
    if (!range_inside(list[index], size, segment.size()))
        return fail(ErrorCode::InvalidProgram, "{} {} takes {} bytes from {} of its segment, which has {}", what, index,
                    size, list[index], segment.size());
    return segment.subspan(static_cast<std::size_t>(list[index]), static_cast<std::size_t>(size));
}

Result<Bytes> Program::constant(std::uint32_t index, std::uint64_t size) const {
    if (!has_constant_buffer())
        return subsegment(root_.table(slot::program::constant_segment), index, size, "constant");
    const TableVector buffers = root_.tables(slot::program::constant_buffer);
    if (index >= buffers.size())
        return fail(ErrorCode::InvalidProgram, "constant {} is referred to, there are {}", index, buffers.size());
    const Bytes storage = buffers[index].vector<std::uint8_t>(0).bytes();
    if (size > storage.size())
        return fail(ErrorCode::InvalidProgram, "constant {} has {} bytes, its tensor needs {}", index, storage.size(),
                    size);
    return storage.first(static_cast<std::size_t>(size));
}

Result<Bytes> Program::mutable_data(std::uint32_t index, std::uint64_t size) const {
    const TableVector lists = root_.tables(slot::program::mutable_data_segments);
    if (lists.empty())
        return fail(ErrorCode::InvalidProgram, "initial value {} is referred to, the program has no mutable data",
                    index);
    return subsegment(lists[0], index, size, "initial value");
}

Result<Bytes> Program::delegate_data(const DelegateView& delegate) const {
    const std::uint32_t index = delegate.index();
    switch (delegate.location()) {
        case DataLocation::Segment:
            return segment_data(index);
        case DataLocation::Inline: {
            const TableVector data = root_.tables(slot::program::backend_delegate_data);
            if (index >= data.size())
                return fail(ErrorCode::InvalidProgram, "inline delegate data {} is referred to, there are {}", index,
                            data.size());
            return data[index].vector<std::uint8_t>(0).bytes();
        }
    }
    return fail(ErrorCode::InvalidProgram, "delegate data at location {}, which no known schema has",
                static_cast<int>(delegate.location()));
}

NamedDataView Program::named_data(std::uint32_t i) const {
    const Table t = root_.tables(slot::program::named_data)[i];
    return {t.string(slot::named::key), t.scalar<std::uint32_t>(slot::named::segment_index)};
}

Result<std::optional<Bytes>> Program::find_named_data(std::string_view key) const {
    std::optional<Bytes> found;
    for (std::uint32_t i = 0; i < named_data_count(); ++i) {
        const NamedDataView entry = named_data(i);
        if (entry.key != key) continue;
        if (found) return fail(ErrorCode::InvalidProgram, "two pieces of named data have the key '{}'", key);
        TRY_ASSIGN(found, segment_data(entry.segment_index));
    }
    return found;
}

}  // namespace talpa::pte
