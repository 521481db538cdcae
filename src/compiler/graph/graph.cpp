#include "compiler/graph/graph.h"

#include <algorithm>
#include <array>

#include "base/core/checked_math.h"

namespace talpa::compiler {

namespace {
struct TypeFacts {
    const char* name;
    std::size_t size;
};
constexpr std::array<TypeFacts, 7> kTypes{
    {{"float32", 4}, {"int8", 1}, {"uint8", 1}, {"int16", 2}, {"int32", 4}, {"int64", 8}, {"bool", 1}}};

}  // namespace

const char* dtype_name(DType type) {
    return kTypes[static_cast<std::size_t>(type)].name;
}
std::size_t dtype_size(DType type) {
    return kTypes[static_cast<std::size_t>(type)].size;
}

std::int64_t element_count(const Shape& shape) {
    std::int64_t count = 1;
    for (const auto size : shape) {
        const auto more = checked_mul(count, size);
        if (!more) return INT64_MAX;
        count = *more;
    }
    return count;
}

ValueId Graph::add_value(Value value) {
    values.push_back(std::move(value));
    return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_node(Op op, std::vector<ValueId> operands, Attributes attributes, Value result, Source source) {
    const auto id = add_value(std::move(result));
    nodes.push_back({op, std::move(operands), {id}, std::move(attributes), std::move(source)});
    return id;
}

Uses find_uses(const Graph& graph) {
    Uses uses;
    uses.producer.assign(graph.values.size(), -1);
    uses.readers.resize(graph.values.size());
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
        for (const auto id : graph.nodes[n].outputs) uses.producer[id] = n;
        for (const auto id : graph.nodes[n].inputs) {
            if (id == kNoValue) continue;
            auto& readers = uses.readers[id];
            if (std::ranges::find(readers, n) == readers.end()) readers.push_back(n);
        }
    }
    return uses;
}

}  // namespace talpa::compiler
