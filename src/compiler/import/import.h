// A model file becomes a graph: the one door to all importers. What comes out is canonical (passes/passes.h): spatial
// operators channels-last, quantize/dequantize pairs turned into quantized values, batch norms and activations fused,
// nothing that is not needed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/error.h"
#include "compiler/graph/graph.h"
#include "compiler/import/problem.h"

namespace talpa::compiler::import {

struct Options {
    std::string program{};                     ///< which of several programs in one archive
    std::string architecture{};                ///< built-in network that a file of weights belongs to: "mobilenet_v2"
    std::int64_t picture_size = 0;             ///< of a built-in network's input; 0: the usual one
    std::vector<Problem>* problems = nullptr;  ///< takes the list of unsupported operators, for reports
    std::vector<std::string>* warnings = nullptr;  ///< takes what was decided for the model
    /// Called after each stage ("import", "layout", …) with the graph as it is.
    std::function<void(const char* stage, const Graph& graph)> after_stage{};
};

/// Reads what the file's first bytes say it is, whatever its name. Errors name the file, and within it entry, node or
/// path; NotSupported lists every operator that cannot be compiled.
[[nodiscard]] host::Result<Graph> import_model(const std::filesystem::path& path, const Options& options = {});

/// The same from bytes. `folder`: where data outside the file may lie (ONNX).
[[nodiscard]] host::Result<Graph> import_bytes(talpa::Bytes file, const std::filesystem::path& folder,
                                               const Options& options = {});

}  // namespace talpa::compiler::import
