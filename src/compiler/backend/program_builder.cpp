#include "compiler/backend/program_builder.h"

#include <algorithm>

#include "compiler/schedule/allocate.h"

namespace talpa::compiler {

std::int8_t scalar_type(DType type) {
    switch (type) {
        case DType::UInt8:
            return 0;
        case DType::Int8:
            return 1;
        case DType::Int16:
            return 2;
        case DType::Int32:
            return 3;
        case DType::Int64:
            return 4;
        case DType::Float32:
            return 6;
        case DType::Bool:
            return 11;
    }
    return 6;
}

std::int32_t ProgramBuilder::add(pte::host::ValueSpec value) {
    spec_.values.push_back(std::move(value));
    return static_cast<std::int32_t>(spec_.values.size() - 1);
}

std::int32_t ProgramBuilder::tensor(DType type, const Shape& shape) {
    pte::host::TensorSpec t;
    t.scalar_type = scalar_type(type);
    t.sizes.assign(shape.begin(), shape.end());
    t.placement = pte::host::PlacementSpec{};
    const std::int32_t v = add(t);
    lives_[v].bytes = static_cast<std::uint64_t>(element_count(shape)) * dtype_size(type);
    return v;
}

std::int32_t ProgramBuilder::constant(DType type, const Shape& shape, const std::vector<std::uint8_t>& data) {
    pte::host::TensorSpec t;
    t.scalar_type = scalar_type(type);
    t.sizes.assign(shape.begin(), shape.end());
    const auto found = std::find(constants_.begin(), constants_.end(), data);
    t.data_index = static_cast<std::uint32_t>(found - constants_.begin()) + 1;
    if (found == constants_.end()) constants_.push_back(data);
    return add(t);
}

std::int32_t ProgramBuilder::number(std::int64_t v) {
    const auto [at, added] = numbers_.try_emplace(v, 0);
    if (added) at->second = add(v);
    return at->second;
}
std::int32_t ProgramBuilder::real(double v) {
    return add(v);
}
std::int32_t ProgramBuilder::boolean(bool v) {
    return add(v);
}
std::int32_t ProgramBuilder::null() {
    return add(pte::host::NullSpec{});
}
std::int32_t ProgramBuilder::integers(const std::vector<std::int64_t>& list) {
    pte::host::IntListSpec items;
    for (const std::int64_t v : list) items.items.push_back(number(v));
    return add(items);
}
std::int32_t ProgramBuilder::tensors(const std::vector<std::int32_t>& list) {
    for (const std::int32_t v : list) used(v);
    return add(pte::host::TensorListSpec{list});
}
std::int32_t ProgramBuilder::text(const std::string& s) {
    return add(s);
}

void ProgramBuilder::used(std::int32_t value) {
    const auto found = lives_.find(value);
    if (found == lives_.end()) return;
    found->second.first = std::min(found->second.first, now_);
    found->second.last = std::max(found->second.last, now_);
}

void ProgramBuilder::call(const std::string& name, std::vector<std::int32_t> arguments) {
    const auto [at, added] = operators_.try_emplace(name, static_cast<std::int32_t>(spec_.operators.size()));
    if (added) {
        const std::size_t dot = name.rfind('.');
        spec_.operators.emplace_back(name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1));
    }
    for (const std::int32_t v : arguments) {
        used(v);
        if (const auto* list = std::get_if<pte::host::TensorListSpec>(&spec_.values[static_cast<std::size_t>(v)]))
            for (const std::int32_t item : list->items) used(item);
    }
    spec_.chains[0].push_back(pte::host::KernelCallSpec{at->second, std::move(arguments)});
    ++now_;
}

void ProgramBuilder::call_delegate(pte::host::DelegateSpec delegate, std::vector<std::int32_t> arguments) {
    const auto index = static_cast<std::int32_t>(spec_.delegates.size());
    spec_.delegates.push_back(std::move(delegate));
    for (const std::int32_t v : arguments) used(v);
    spec_.chains[0].push_back(pte::host::DelegateCallSpec{index, std::move(arguments)});
    ++now_;
}

pte::host::MethodSpec ProgramBuilder::finish() {
    std::vector<LiveRange> ranges;
    std::vector<std::int32_t> which;
    for (auto& [value, life] : lives_) {
        if (std::count(spec_.inputs.begin(), spec_.inputs.end(), value) > 0) life.first = 0;
        if (std::count(spec_.outputs.begin(), spec_.outputs.end(), value) > 0) life.last = now_;
        if (life.first == UINT32_MAX) life.first = 0;
        life.last = std::max(life.last, life.first);
        ranges.push_back({life.bytes, life.first, life.last, 0});
        which.push_back(value);
    }
    const std::uint64_t top = allocate(ranges, 0, Effort::Thorough);
    for (std::size_t i = 0; i < which.size(); ++i)
        std::get<pte::host::TensorSpec>(spec_.values[static_cast<std::size_t>(which[i])]).placement->offset =
            ranges[i].address;
    spec_.arena_sizes = {0, static_cast<std::int64_t>(top)};
    return std::move(spec_);
}

}  // namespace talpa::compiler
