#include "compiler/import/tflite/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"

namespace talpa::compiler::import::tflite {

using host::failure;
using host::Result;

Result<ValueId> Call::operand(std::size_t i) const {
    if (i >= operands_.size() || operands_[i] == kNoValue)
        return failure(ErrorCode::InvalidProgram, "operand {} is missing", i);
    return operands_[i];
}

Result<std::vector<std::int64_t>> Call::numbers(std::size_t i) const {
    TRY_ASSIGN(const auto id, operand(i));
    const Value& v = b[id];
    if (!v.is_constant())
        return failure(ErrorCode::NotSupported, "operand {} ('{}') is computed: it must be a constant", i, v.name);
    if (v.type == DType::Float32) return failure(ErrorCode::InvalidProgram, "operand {} holds no whole numbers", i);
    return stored_integers(v);
}

Result<int> positive_axis(std::int64_t axis, std::size_t rank) {
    const auto r = static_cast<std::int64_t>(rank);
    if (axis < -r || axis >= r) return failure(ErrorCode::InvalidProgram, "axis {} of a tensor of rank {}", axis, rank);
    return static_cast<int>(axis < 0 ? axis + r : axis);
}

Result<std::vector<int>> Call::axes(std::size_t i, std::size_t rank) const {
    TRY_ASSIGN(const auto list, numbers(i));
    std::vector<int> out;
    for (const auto axis : list) {
        TRY_ASSIGN(const int positive, positive_axis(axis, rank));
        out.push_back(positive);
    }
    return out;
}

Result<Clamp> Call::activation(unsigned slot) const {
    constexpr double kOpen = std::numeric_limits<double>::infinity();
    TRY_ASSIGN(const auto code, option<std::int8_t>(slot, 0));
    switch (code) {
        case 0:
            return Clamp{};
        case 1:
            return Clamp{0, kOpen};
        case 2:
            return Clamp{-1, 1};
        case 3:
            return Clamp{0, 6};
        default:
            return failure(ErrorCode::NotSupported, "fused activation {}", code);
    }
}

Result<void> Call::give(ValueId id) {
    if (given_.size() >= results_.size())
        return failure(ErrorCode::InvalidProgram, "{} results are too few", results_.size());
    const TensorFacts& facts = *results_[given_.size()];
    if (b[id].shape != facts.shape)
        return failure(ErrorCode::InvalidProgram, "its result '{}' should have shape {}, the file says {}", facts.name,
                       shape_text(b[id].shape), shape_text(facts.shape));
    Graph& g = b.graph();
    const bool fresh = !g.nodes.empty() && g.nodes.back().outputs[0] == id;
    if (facts.quantization && fresh && !b[id].quantization && b[id].type == DType::Float32 &&
        g.nodes.back().op != Op::Requantize) {
        g[id].quantization = facts.quantization;
    } else if (b[id].type == DType::Float32) {
        TRY_ASSIGN(id, b.requantize(id, facts.quantization, facts.name));
    }
    given_.push_back(id);
    return {};
}

Result<void> Call::make(Op op, std::vector<ValueId> operands, Attributes attributes) {
    TRY_ASSIGN(const auto id, b.add(op, std::move(operands), std::move(attributes), name(given_.size())));
    return give(id);
}

}  // namespace talpa::compiler::import::tflite
