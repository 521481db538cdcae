// TensorFlow Lite models: int8, int16, uint8 and float.
#pragma once

#include "base/core/byte_reader.h"
#include "compiler/import/import.h"

namespace talpa::compiler::import::tflite {

/// The graph as the file has it, not canonical yet. Its arithmetic is LiteRT's.
[[nodiscard]] host::Result<Graph> read(talpa::Bytes file, const Options& options);

[[nodiscard]] std::vector<std::string> known_operators();

}  // namespace talpa::compiler::import::tflite
