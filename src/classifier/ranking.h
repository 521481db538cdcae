// From a network's output to ranked classes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "runtime/tensor.h"

namespace talpa::classifier {

/// What integers of an output mean: value = scale * (q - zero_point).
struct Quantization {
    double scale = 1.0;
    std::int32_t zero_point = 0;
};

/// An output as the program left it, in stored order.
struct Output {
    runtime::ScalarType type = runtime::ScalarType::Float32;
    std::vector<std::int32_t> shape;
    Bytes bytes;
    std::optional<Quantization> quantization;  ///< of an integer output, where the program or the caller says it
};

/// One score per class, which of the classes are best, and what the scores are.
struct Classification {
    enum class Scores : std::uint8_t {
        Probabilities,  ///< the output summed to 1 already
        Softmax,        ///< softmax of the output
        Raw,            ///< integers whose scale is not known: their order is all that is known
    } scores = Scores::Softmax;
    struct Ranked {
        std::size_t index = 0;
        double score = 0;  ///< probability, or the raw integer
    };
    std::vector<Ranked> top;  ///< best first; equal scores by index
    std::size_t classes = 0;
};

/// Is this output a score per class: more than one element, all in one dimension, of a type that counts?
[[nodiscard]] bool is_classification(const Output& output);

/// Ranks at most `count` classes. InvalidType when `is_classification` is false; InvalidProgram when a score is not a
/// number.
[[nodiscard]] host::Result<Classification> classify(const Output& output, std::size_t count);

}  // namespace talpa::classifier
