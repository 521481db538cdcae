#include "compiler/import/weights.h"

#include <fmt/format.h>

#include "compiler/graph/infer.h"

namespace talpa::compiler::import {
namespace {

using host::failure;
using host::Result;

Result<void> check_constant(const Value& weight, std::size_t dims) {
    if (!weight.is_constant())
        return std::unexpected(host::Error(
            ErrorCode::NotSupported, fmt::format("the weight '{}' is computed: it must be a constant", weight.name),
            "Freeze the model before exporting it."));
    if (weight.shape.size() != dims + 2)
        return failure(ErrorCode::InvalidProgram, "a weight of shape {} for {} spatial dimensions",
                       shape_text(weight.shape), dims);
    return {};
}

/// ... x K becomes ... x 1 x K.
Result<ValueId> with_height(Builder& b, ValueId weight, std::size_t dims) {
    if (dims == 2) return weight;
    const Shape s = b[weight].shape;
    return b.reshape(weight, {s[0], s[1], 1, s[2]}, b[weight].name + ".2d");
}

}  // namespace

Result<ValueId> weight_from_oihw(Builder& b, ValueId weight, std::size_t dims) {
    TRY(check_constant(b[weight], dims));
    const auto& q = b[weight].quantization;
    if (q && !q->per_tensor() && q->axis != 0)
        return failure(ErrorCode::NotSupported,
                       "the weight '{}' is quantized along axis {}: it must be the output channel", b[weight].name,
                       q->axis);
    TRY_ASSIGN(weight, with_height(b, weight, dims));
    return b.permute(weight, {0, 2, 3, 1}, b[weight].name + ".ohwi");
}

Result<ValueId> transposed_weight_from_iohw(Builder& b, ValueId weight, std::int64_t groups, std::size_t dims) {
    TRY(check_constant(b[weight], dims));
    auto quantization = b[weight].quantization;
    if (quantization && !quantization->per_tensor() && quantization->axis != 1)
        return failure(ErrorCode::NotSupported,
                       "the weight '{}' is quantized along axis {}: it must be the output channel", b[weight].name,
                       quantization->axis);
    TRY_ASSIGN(weight, with_height(b, weight, dims));
    const Shape s = b[weight].shape;
    if (groups < 1 || s[0] % groups != 0)
        return failure(ErrorCode::InvalidProgram, "{} groups do not divide {} input channels", groups, s[0]);
    const std::string name = b[weight].name;
    // The stored numbers are moved on their own; their scales, one a channel of a group, are repeated for each group.
    Value plain = b[weight];
    plain.type = plain.stored_type();
    plain.quantization.reset();
    plain.name += ".stored";
    ValueId id = b.value(std::move(plain));
    TRY_ASSIGN(id, b.add(Op::Reshape, {id}, NoAttr{}, name + ".groups", {groups, s[0] / groups, s[1], s[2], s[3]}));
    TRY_ASSIGN(id, b.permute(id, {0, 2, 3, 4, 1}, name + ".turned"));
    TRY_ASSIGN(id, b.add(Op::Reshape, {id}, NoAttr{}, name + ".joined", {groups * s[1], s[2], s[3], s[0] / groups}));
    Value turned = b[id];
    turned.name = name + ".ohwi";
    if (quantization) {
        turned.type = DType::Float32;
        if (!quantization->per_tensor()) {
            const auto scales = quantization->scales;
            const auto zero_points = quantization->zero_points;
            for (std::int64_t g = 1; g < groups; ++g) {
                quantization->scales.insert(quantization->scales.end(), scales.begin(), scales.end());
                quantization->zero_points.insert(quantization->zero_points.end(), zero_points.begin(),
                                                 zero_points.end());
            }
            quantization->axis = 0;
        }
        turned.quantization = std::move(quantization);
    }
    return b.value(std::move(turned));
}

}  // namespace talpa::compiler::import
