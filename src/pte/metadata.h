// What a program tells about itself beside its methods: constant methods (no instructions, outputs that are constants;
// a list is an output for each of its items, as ExecuTorch writes it) and the quantization of int8 inputs and outputs
// that ExecuTorch's exporter puts into such methods. (pte-format, section 5.5)
#pragma once

#include <optional>

#include "pte/program.h"

namespace talpa::pte {

/// The method of that name if all that it does is to return constants. `prefix` and `name` are joined.
[[nodiscard]] std::optional<MethodView> find_constant_method(const Program& program, std::string_view prefix,
                                                             std::string_view name);

/// The one value that a constant method returns; nothing when there is no such method or when it returns several.
[[nodiscard]] std::optional<ValueView> constant_method(const Program& program, std::string_view prefix,
                                                       std::string_view name);

/// True when the method only returns constants.
[[nodiscard]] bool is_constant_method(const MethodView& method);

struct IoQuantization {
    double scale = 0;
    std::int64_t zero_point = 0;
    std::int64_t quant_min = 0, quant_max = 0;
    std::int64_t dtype = 0;  ///< scalar type id
};

enum class IoSide : std::uint8_t { Input, Output };

/// Scale and zero point of input or output `index` of `method`, from "input0_scale" … or "METHOD_input0_scale" …;
/// nothing when the program lacks scale or zero point. Missing limits and dtype are 0.
[[nodiscard]] std::optional<IoQuantization> io_quantization(const Program& program, const MethodView& method,
                                                            IoSide side, std::uint32_t index);

}  // namespace talpa::pte
