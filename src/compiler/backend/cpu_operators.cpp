#include "compiler/backend/cpu_operators.h"

#include <fmt/format.h>

#include "compiler/backend/cpu_call.h"

namespace talpa::compiler {
namespace {

const CpuOperator* find_cpu_operator(Op op) {
    for (const auto& family :
         {cpu_elementwise_operators(), cpu_layer_operators(), cpu_reduction_operators(), cpu_movement_operators()})
        for (const CpuOperator& row : family)
            if (row.op == op) return &row;
    return nullptr;
}

}  // namespace

std::optional<std::string> cpu_obstacle(const Graph& graph, const Node& node) {
    const CpuOperator* const row = find_cpu_operator(node.op);
    if (row == nullptr) return fmt::format("there is no CPU operator for {}", op_name(node.op));
    return row->obstacle == nullptr ? std::nullopt : row->obstacle(graph, node);
}

host::Result<void> call_cpu_operator(ProgramBuilder& program, const Graph& graph, const Node& node,
                                     const ChannelsFirst& beyond,
                                     const std::function<std::int32_t(ValueId)>& value_of) {
    const CpuOperator* const row = find_cpu_operator(node.op);
    if (row == nullptr) return host::failure(ErrorCode::Internal, "{} has no CPU operator", op_name(node.op));
    CpuCall c(program, graph, node, beyond, value_of);
    row->call(c, row->name);
    return {};
}

}  // namespace talpa::compiler
