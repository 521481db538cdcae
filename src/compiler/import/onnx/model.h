// An .onnx model as its file has it: nodes, initializers, inputs and outputs by name (model-formats, section 4.1).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/byte_reader.h"
#include "base/host/file.h"
#include "compiler/graph/graph.h"
#include "compiler/import/stored_tensor.h"

namespace talpa::compiler::import::onnx {

struct TensorData {
    std::string name;
    std::int64_t data_type = 0;
    Value value;  ///< a constant
};

struct Attribute {
    std::string name;
    std::optional<float> real;
    std::optional<std::int64_t> integer;
    std::optional<std::string> text;
    std::optional<TensorData> tensor;
    std::vector<float> reals;
    std::vector<std::int64_t> integers;
    bool unsupported = false;  ///< a graph, sparse tensor or list of those
};

struct NodeData {
    std::string name, op, domain;
    std::vector<std::string> inputs, outputs;
    std::vector<Attribute> attributes;
};

struct Port {
    std::string name;
    std::int64_t data_type = 0;
    std::vector<std::optional<std::int64_t>> shape;  ///< nothing: a free dimension
    bool has_type = false, has_shape = false;
};

struct Model {
    std::int64_t opset = 0;
    std::string graph_name;
    std::vector<NodeData> nodes;
    std::vector<TensorData> initializers;
    std::vector<Port> inputs, outputs;
    std::vector<std::string> functions;
};

/// `folder`: where external data may lie. Errors name the message that is wrong.
[[nodiscard]] host::Result<Model> read_model(talpa::Bytes file, const std::filesystem::path& folder);

}  // namespace talpa::compiler::import::onnx
