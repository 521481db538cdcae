// Normalizations (model-formats, section 1.5).
#include <fmt/format.h>

#include <numeric>

#include "compiler/graph/constant.h"
#include "compiler/graph/infer.h"
#include "compiler/import/pt2/call.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::failure;
using host::Result;

/// Channels to the end and back, for any rank of at least 2.
std::vector<int> channels_to_end(std::size_t rank) {
    std::vector<int> order{0};
    for (std::size_t d = 2; d < rank; ++d) order.push_back(static_cast<int>(d));
    order.push_back(1);
    return order;
}

Result<void> over_channels(Call& call, Op op, ValueId x, const std::vector<ValueId>& parameters, const NormAttr& attr) {
    Builder& b = call.b;
    const auto rank = b[x].shape.size();
    if (rank < 2)
        return failure(ErrorCode::InvalidProgram, "a normalization over channels of {}", shape_text(b[x].shape));
    const auto order = channels_to_end(rank);
    const std::string name = call.name();
    TRY_ASSIGN(const auto last, b.permute(x, order, b[x].name + ".nhwc"));
    std::vector<ValueId> operands{last};
    operands.insert(operands.end(), parameters.begin(), parameters.end());
    TRY_ASSIGN(auto y, b.add(op, operands, attr, name));
    TRY_ASSIGN(y, b.permute(y, inverse(order), name + ".nchw"));
    call.give(y);
    for (std::size_t i = 1; i < call.result_names().size(); ++i) call.give(kNoValue);
    return {};
}

Result<void> import_batch_norm(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.tensor("input"));
    std::vector<ValueId> parameters;
    for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
        TRY_ASSIGN(const auto id, call.optional_tensor(name));
        parameters.push_back(id);
    }
    TRY_ASSIGN(const bool training, call.boolean("training", false));
    TRY_ASSIGN(const auto eps, call.number("eps"));
    call.ignore({"momentum", "cudnn_enabled"});
    if (training || parameters[2] == kNoValue || parameters[3] == kNoValue)
        return std::unexpected(host::Error(ErrorCode::NotSupported, "batch norm in training mode",
                                           "Call model.eval() before torch.export.export."));
    return over_channels(call, op, x, parameters, NormAttr{.epsilon = eps, .groups = 1, .axes = {}});
}

Result<void> import_group_norm(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.tensor("input"));
    TRY_ASSIGN(const auto weight, call.optional_tensor("weight"));
    TRY_ASSIGN(const auto bias, call.optional_tensor("bias"));
    TRY_ASSIGN(const auto groups, call.integer("num_groups"));
    TRY_ASSIGN(const auto eps, call.number("eps", 1e-5));
    call.ignore({"cudnn_enabled"});
    return over_channels(call, op, x, {weight, bias}, NormAttr{.epsilon = eps, .groups = groups, .axes = {}});
}

Result<void> import_instance_norm(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.tensor("input"));
    TRY_ASSIGN(const auto weight, call.optional_tensor("weight"));
    TRY_ASSIGN(const auto bias, call.optional_tensor("bias"));
    TRY_ASSIGN(const auto eps, call.number("eps", 1e-5));
    TRY_ASSIGN(const bool own, call.boolean("use_input_stats", true));
    if (!own) return failure(ErrorCode::NotSupported, "instance norm by running statistics");
    call.ignore({"running_mean", "running_var", "momentum", "cudnn_enabled"});
    const Shape& shape = call.b[x].shape;
    const auto channels = shape.size() > 1 ? shape[1] : 0;
    return over_channels(call, op, x, {weight, bias}, NormAttr{.epsilon = eps, .groups = channels, .axes = {}});
}

Result<std::vector<int>> normalized_axes(Call& call, ValueId x) {
    TRY_ASSIGN(const auto shape, call.integers("normalized_shape"));
    const auto rank = call.b[x].shape.size();
    if (shape.empty() || shape.size() > rank) return failure(ErrorCode::InvalidProgram, "normalized_shape");
    std::vector<int> axes(shape.size());
    std::iota(axes.begin(), axes.end(), static_cast<int>(rank - shape.size()));
    return axes;
}

Result<void> import_layer_norm(Call& call, Op op) {
    TRY_ASSIGN(const auto x, call.tensor("input"));
    TRY_ASSIGN(const auto weight, call.optional_tensor("weight"));
    TRY_ASSIGN(const auto bias, call.optional_tensor("bias"));
    TRY_ASSIGN(const auto axes, normalized_axes(call, x));
    TRY_ASSIGN(const auto eps, call.number("eps", 1e-5));
    call.ignore({"cudnn_enable"});
    TRY_ASSIGN(const auto y,
               call.b.add(op, {x, weight, bias}, NormAttr{.epsilon = eps, .groups = 1, .axes = axes}, call.name()));
    call.give(y);
    for (std::size_t i = 1; i < call.result_names().size(); ++i) call.give(kNoValue);
    return {};
}

/// x / sqrt(mean(x^2) + eps) * w, spelled out.
Result<void> import_rms_norm(Call& call, Op) {
    Builder& b = call.b;
    TRY_ASSIGN(const auto x, call.tensor("input"));
    TRY_ASSIGN(const auto weight, call.optional_tensor("weight"));
    TRY_ASSIGN(const auto axes, normalized_axes(call, x));
    TRY_ASSIGN(const auto eps, call.number("eps", 1.1920929e-07));
    const std::string name = call.name();
    const float epsilon = static_cast<float>(eps);
    const auto small = b.value(float_constant(name + ".eps", {}, {&epsilon, 1}));
    TRY_ASSIGN(auto y, b.add(Op::Square, {x}, UnaryAttr{}, name + ".square"));
    TRY_ASSIGN(y, b.add(Op::Mean, {y}, ReduceAttr{axes, true}, name + ".mean"));
    TRY_ASSIGN(y, b.add(Op::Add, {y, small}, BinaryAttr{}, name + ".sum"));
    TRY_ASSIGN(y, b.add(Op::Rsqrt, {y}, UnaryAttr{}, name + ".rsqrt"));
    TRY_ASSIGN(y, b.add(Op::Mul, {x, y}, BinaryAttr{}, name));
    if (weight != kNoValue) {
        TRY_ASSIGN(y, b.add(Op::Mul, {y, weight}, BinaryAttr{}, name + ".weighted"));
    }
    call.give(y);
    return {};
}

constexpr Operator kNormOperators[] = {
    {"aten.batch_norm.default", import_batch_norm, Op::BatchNorm},
    {"aten._native_batch_norm_legit_no_training.default", import_batch_norm, Op::BatchNorm},
    {"aten.group_norm.default", import_group_norm, Op::GroupNorm},
    {"aten.instance_norm.default", import_instance_norm, Op::GroupNorm},
    {"aten.layer_norm.default", import_layer_norm, Op::LayerNorm},
    {"aten.native_layer_norm.default", import_layer_norm, Op::LayerNorm},
    {"aten.rms_norm.default", import_rms_norm},
};

}  // namespace

std::span<const Operator> norm_operators() {
    return kNormOperators;
}

}  // namespace talpa::compiler::import::pt2
