#include "runtime/tensor_load.h"

#include "base/core/checked_math.h"
#include "runtime/memory.h"

namespace talpa::runtime {
namespace {

constexpr std::uint64_t kMaxTensorBytes = INT32_MAX;

std::unexpected<Error> bad(std::uint32_t value, const char* sentence, ErrorArg a = {}, ErrorArg b = {}) {
    return (fail)(ErrorCode::InvalidProgram, sentence, value, a, b);
}

// Type, rank, sizes and order (V10 to V13). Returns the tensor's bytes.
Result<std::uint32_t> read_shape(const pte::TensorView& view, std::uint32_t value, Tensor& tensor) {
    const std::int8_t id = view.scalar_type();
    tensor.type = static_cast<ScalarType>(id);
    if (scalar_size(tensor.type) == 0)
        return bad(value, TALPA_SENTENCE("value {}: a tensor of scalar type {}, which is none or not supported"), id);
    if (view.storage_offset() != 0)
        return bad(value, TALPA_SENTENCE("value {}: a tensor with storage offset {}"), view.storage_offset());
    switch (view.dynamism()) {
        case pte::ShapeDynamism::Static:
            break;
        case pte::ShapeDynamism::DynamicBound:
            tensor.is_dynamic = true;
            break;
        case pte::ShapeDynamism::DynamicUnbound:
            return fail(ErrorCode::NotSupported, "value {}: a tensor without an upper bound of its shape", value);
        default:
            return bad(value, TALPA_SENTENCE("value {}: a tensor of shape dynamism {}"),
                       static_cast<int>(view.dynamism()));
    }
    const pte::Vector<std::int32_t> sizes = view.sizes();
    const pte::Vector<std::uint8_t> order = view.dim_order();
    if (sizes.size() > kMaxRank)
        return bad(value, TALPA_SENTENCE("value {}: a tensor of {} dimensions, the limit is {}"), sizes.size(),
                   static_cast<unsigned>(kMaxRank));
    if (order.size() != sizes.size())
        return bad(value, TALPA_SENTENCE("value {}: a tensor of {} dimensions with a dim_order of {}"), sizes.size(),
                   order.size());
    tensor.rank = static_cast<std::uint8_t>(sizes.size());
    std::uint64_t bytes = scalar_size(tensor.type);
    std::uint32_t seen = 0;
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] < 0)
            return bad(value, TALPA_SENTENCE("value {}: a tensor whose dimension {} has size {}"), i, sizes[i]);
        // Zero sizes must not hide an overflow: they count as one here.
        bytes *= sizes[i] == 0 ? 1U : static_cast<std::uint32_t>(sizes[i]);
        if (bytes > kMaxTensorBytes) return bad(value, TALPA_SENTENCE("value {}: a tensor of more than 2^31 bytes"));
        if (order[i] >= sizes.size() || (seen >> order[i] & 1) != 0)
            return bad(value, TALPA_SENTENCE("value {}: entry {} of the dim_order is {}: no permutation"), i, order[i]);
        seen |= 1U << order[i];
        tensor.sizes[i] = sizes[i];
        tensor.dim_order[i] = order[i];
    }
    return static_cast<std::uint32_t>(tensor.size_bytes());
}

// A place in an arena (V14, V16).
Result<void> read_placement(const pte::TensorView& view, std::uint32_t value, std::uint32_t bytes,
                            pte::Vector<std::int64_t> arena_sizes, TensorSource& source) {
    const std::uint32_t id = view.memory_id();
    if (id == 0 || id >= arena_sizes.size())
        return bad(value, TALPA_SENTENCE("value {}: a tensor with memory id {}, the ids are 1..{}"), id,
                   static_cast<int>(arena_sizes.size()) - 1);
    const std::uint64_t offset = view.memory_offset(), arena = static_cast<std::uint64_t>(arena_sizes[id]);
    if (!range_inside(offset, bytes, arena))
        return fail(ErrorCode::MemoryAllocation, "value {}: a tensor of {} bytes at {} of arena {}, which has {}",
                    value, bytes, offset, id, arena);
    if (offset % kPoolAlignment != 0)
        return bad(value, TALPA_SENTENCE("value {}: a tensor at {} of its arena, not a multiple of 16"), offset);
    source.planned = true;
    source.arena = id - 1;
    source.offset = static_cast<std::uint32_t>(offset);
    return {};
}

// A tensor of a data file must agree in everything (section 1.6).
Result<Bytes> read_external(const pte::TensorView& view, std::uint32_t value, const Tensor& tensor, std::uint32_t bytes,
                            pte::DataFiles data_files) {
    const std::string_view name = view.qualified_name();
    for (const pte::DataFile& file : data_files) {
        TRY_ASSIGN(const std::optional<pte::DataEntry> entry, file.find(name));
        if (!entry) continue;
        if (!entry->layout)
            return fail(ErrorCode::InvalidExternalData, "value {}: '{}' is no tensor in the data file", value, name);
        const pte::TensorLayoutView& layout = *entry->layout;
        bool same = layout.scalar_type() == static_cast<std::int8_t>(tensor.type) &&
                    layout.sizes().size() == tensor.rank && layout.dim_order().size() == tensor.rank;
        for (std::uint32_t i = 0; same && i < tensor.rank; ++i)
            same = layout.sizes()[i] == tensor.sizes[i] && layout.dim_order()[i] == tensor.dim_order[i];
        if (!same)
            return fail(ErrorCode::InvalidExternalData,
                        "value {}: '{}' has another type, shape or order in the data file", value, name);
        TRY_ASSIGN(const Bytes data, file.data(*entry));
        if (data.size() < bytes)
            return fail(ErrorCode::InvalidExternalData, "value {}: '{}' has {} bytes in the data file, {} are needed",
                        value, name, data.size(), bytes);
        return data.first(bytes);
    }
    return fail(ErrorCode::NotFound,
                "value {}: the tensor '{}' lies in a data file (.ptd), and none that is given has it", value, name);
}

}  // namespace

Result<LoadedTensor> load_tensor(const pte::Program& program, const pte::TensorView& view, std::uint32_t value,
                                 pte::Vector<std::int64_t> arena_sizes, pte::DataFiles data_files) {
    LoadedTensor loaded;
    Tensor& tensor = loaded.tensor;
    TensorSource& source = loaded.source;
    TRY_ASSIGN(const std::uint32_t bytes, read_shape(view, value, tensor));
    if (view.location() != 0 && !view.is_external())
        return bad(value, TALPA_SENTENCE("value {}: a tensor at location {}, which is unknown"), view.location());
    if (view.device_type() != 0)
        return fail(ErrorCode::NotSupported, "value {}: a tensor on device type {}, only the CPU is known", value,
                    view.device_type());
    if (view.is_planned()) TRY(read_placement(view, value, bytes, arena_sizes, source));
    source.has_data = view.is_external() || view.data_index() != 0;
    tensor.is_constant = source.has_data && !source.planned;
    tensor.capacity_bytes = source.planned || tensor.is_constant ? bytes : 0;
    if (!source.has_data) return loaded;
    if (view.is_external()) {
        TRY_ASSIGN(source.data, read_external(view, value, tensor, bytes, data_files));
    } else if (source.planned) {
        TRY_ASSIGN(source.data, program.mutable_data(view.data_index(), bytes));
    } else {
        TRY_ASSIGN(source.data, program.constant(view.data_index(), bytes));
    }
    if (!tensor.is_constant) return loaded;
    if (reinterpret_cast<std::uintptr_t>(source.data.data()) % scalar_size(tensor.type) != 0)
        return bad(value, TALPA_SENTENCE("value {}: a constant of {} that is not aligned to its elements"),
                   scalar_name(tensor.type));
    tensor.data = const_cast<std::uint8_t*>(source.data.data());  // is_constant keeps operators from writing
    return loaded;
}

}  // namespace talpa::runtime
