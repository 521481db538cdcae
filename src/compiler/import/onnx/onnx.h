// ONNX models, float and quantized by QuantizeLinear / DequantizeLinear pairs.
#pragma once

#include "base/core/byte_reader.h"
#include "compiler/import/import.h"

namespace talpa::compiler::import::onnx {

/// Protocol buffers have no magic: does the file begin like a ModelProto?
[[nodiscard]] bool looks_like(talpa::Bytes file);

/// The graph as the file has it, not canonical yet. `folder`: where external data may lie.
[[nodiscard]] host::Result<Graph> read(talpa::Bytes file, const std::filesystem::path& folder, const Options& options);

[[nodiscard]] std::vector<std::string> known_operators();

}  // namespace talpa::compiler::import::onnx
