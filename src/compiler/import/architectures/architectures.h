// The networks that files of weights can be for, by the names that their common PyTorch implementations give the
// weights: torchvision's mobilenet_v2 and resnet18, efficientnet_lite0 to 2 as the EfficientNet package names them,
// mobilenet_v1 as a sequence "model", ds_cnn as a sequence "f".
#pragma once

#include <string>
#include <vector>

#include "compiler/import/weights_file/weights.h"

namespace talpa::compiler::import {

[[nodiscard]] std::vector<std::string> architectures();

/// A tensor that a network's state dict must have. Biases of convolutions, which are optional, are not among them.
struct Parameter {
    std::string name;
    Shape shape;
};
/// Of one of `architectures()`, with so many classes.
[[nodiscard]] host::Result<std::vector<Parameter>> parameters_of(const std::string& architecture, std::int64_t classes);

/// `architecture` empty: the one whose names the file has. `size`: height and width of pictures, 0 for the usual one.
/// Errors: NotFound naming what there is; InvalidProgram listing every tensor that is missing, unexpected or of another
/// shape.
[[nodiscard]] host::Result<Graph> build_architecture(const std::string& architecture, const WeightsFile& weights,
                                                     std::int64_t size);

}  // namespace talpa::compiler::import
