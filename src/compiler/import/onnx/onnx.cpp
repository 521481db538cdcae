// The walk over an .onnx model (model-formats, sections 4.1 to 4.4).
#include "compiler/import/onnx/onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/graph/infer.h"
#include "compiler/import/onnx/call.h"
#include "compiler/import/onnx/model.h"
#include "compiler/import/onnx/wire.h"
#include "compiler/import/refusal.h"

namespace talpa::compiler::import::onnx {
namespace {

using host::Error;
using host::failure;
using host::Result;

constexpr std::int64_t kOldest = 7, kNewest = 25;
constexpr std::size_t kMostNodes = 100'000;

const std::unordered_map<std::string_view, const Operator*>& table() {
    static const auto all = [] {
        std::unordered_map<std::string_view, const Operator*> t;
        for (const auto part : {layer_operators(), elementwise_operators(), shape_operators()})
            for (const Operator& op : part) t.emplace(op.name, &op);
        return t;
    }();
    return all;
}

constexpr RefusedOperators kRefused[] = {
    {"LSTM", kNoRecurrentLayers},
    {"GRU", kNoRecurrentLayers},
    {"RNN", kNoRecurrentLayers},
    {"QLinear",
     {"the operator form of quantization is not supported",
      "Export with QuantizeLinear and DequantizeLinear pairs (QDQ)."}},
    {"DynamicQuantize", kNoDynamicQuantization},
    {"MatMulInteger", kNoDynamicQuantization},
    {"ConvInteger", kNoDynamicQuantization},
    {"NonMaxSuppression",
     {"non-maximum suppression is not supported", "Cut the model before it and select boxes on the host."}},
    {"Loop", kNoControlFlow},
    {"If", kNoControlFlow},
    {"Scan", kNoControlFlow},
};

class Walk {
  public:
    Walk(Model& model, const Options& options) : model_(model), options_(options), builder_(graph_) {}
    Result<Graph> run();

  private:
    Result<void> define(const std::string& name, Bound bound);
    Result<void> bind_ports();
    Result<std::vector<std::size_t>> order() const;
    Result<void> import_node(const NodeData& node, std::size_t index);
    Result<void> run_node(const NodeData& node);
    Result<void> bind_outputs();

    Model& model_;
    const Options& options_;
    Graph graph_;
    Builder builder_;
    std::unordered_map<std::string, Bound> names_;
    std::vector<Problem> problems_;
    std::size_t missing_ = 0;  ///< nodes whose inputs come from nodes that failed
};

Result<void> Walk::define(const std::string& name, Bound bound) {
    if (name.empty()) return {};  // an optional result that nobody wants
    if (!names_.emplace(name, bound).second) return failure(ErrorCode::InvalidProgram, "'{}' is defined twice", name);
    return {};
}

Result<void> Walk::bind_ports() {
    for (TensorData& t : model_.initializers) {
        const bool small = t.value.type == DType::Int8 || t.value.type == DType::UInt8;
        TRY(define(t.name, {builder_.value(std::move(t.value)), small}));
    }
    for (const Port& port : model_.inputs) {
        if (names_.contains(port.name)) continue;  // an initializer that stands among the inputs
        if (!port.has_type) return failure(ErrorCode::NotSupported, "input '{}' is no tensor", port.name);
        Value value{.name = port.name};
        for (std::size_t d = 0; d < port.shape.size(); ++d) {
            auto size = port.shape[d];
            if (size.value_or(0) <= 0 && d == 0) {
                size = 1;
                warn_of_free_batch(port.name, 1, options_.warnings);
            }
            if (size.value_or(-1) < 0)
                return std::unexpected(Error(ErrorCode::NotSupported,
                                             fmt::format("dimension {} of input '{}' is not fixed", d, port.name),
                                             "Export the model with fixed sizes."));
            value.shape.push_back(*size);
        }
        TRY_ASSIGN(const auto count, checked_count(value.shape));
        if (count == 0) return failure(ErrorCode::NotSupported, "input '{}' has no elements", port.name);
        switch (port.data_type) {
            case 1:
                break;
            case 2:
                value.type = DType::UInt8;
                break;
            case 3:
                value.type = DType::Int8;
                break;
            default:
                return failure(ErrorCode::NotSupported,
                               "input '{}' is of element type {}: float, uint8 and int8 are supported", port.name,
                               port.data_type);
        }
        const bool integers = value.type != DType::Float32;
        const auto id = builder_.value(std::move(value));
        graph_.inputs.push_back(id);
        TRY(define(port.name, {id, integers}));
    }
    return {};
}

/// Nodes so that each follows what it reads; the file's order where that is one already.
Result<std::vector<std::size_t>> Walk::order() const {
    const auto& nodes = model_.nodes;
    std::unordered_map<std::string_view, std::size_t> maker;
    for (std::size_t n = 0; n < nodes.size(); ++n)
        for (const auto& out : nodes[n].outputs) {
            if (out.empty()) continue;
            if (names_.contains(out) || !maker.emplace(out, n).second)
                return failure(ErrorCode::InvalidProgram, "'{}' is made twice", out);
        }
    std::vector<std::size_t> out;
    std::vector<std::uint8_t> state(nodes.size(), 0);  // 1: being placed, 2: placed
    std::vector<std::pair<std::size_t, std::size_t>> stack;
    for (std::size_t first = 0; first < nodes.size(); ++first) {
        if (state[first] == 2) continue;
        stack.emplace_back(first, 0);
        state[first] = 1;
        while (!stack.empty()) {
            auto& [n, next] = stack.back();
            if (next == nodes[n].inputs.size()) {
                state[n] = 2;
                out.push_back(n);
                stack.pop_back();
                continue;
            }
            const auto found = maker.find(nodes[n].inputs[next++]);
            if (found == maker.end() || state[found->second] == 2) continue;
            if (state[found->second] == 1)
                return failure(ErrorCode::InvalidProgram, "the graph has a cycle through '{}'", found->first);
            state[found->second] = 1;
            stack.emplace_back(found->second, 0);
        }
    }
    return out;
}

Result<void> Walk::run_node(const NodeData& node) {
    if (!node.domain.empty() && node.domain != "ai.onnx")
        return failure(ErrorCode::NotSupported, "operators of the domain '{}' are not supported", node.domain);
    for (const Attribute& a : node.attributes)
        if (a.unsupported)
            return failure(ErrorCode::NotSupported, "attribute '{}' holds a graph or a reference", a.name);
    if (node.outputs.empty()) return failure(ErrorCode::InvalidProgram, "it has no results");
    const auto found = table().find(node.op);
    if (found == table().end()) {
        return std::unexpected(refused(kRefused, node.op));
    }
    std::vector<Bound> operands;
    for (const auto& name : node.inputs) {
        if (name.empty()) {
            operands.push_back({});
            continue;
        }
        const auto bound = names_.find(name);
        if (bound == names_.end()) return failure(ErrorCode::InvalidProgram, "'{}' is read and never made", name);
        operands.push_back(bound->second);
    }
    Call call(builder_, node, std::move(operands), model_.opset);
    TRY(found->second->import(call, found->second->op));
    if (const auto unread = call.unread())
        return failure(ErrorCode::NotSupported, "attribute '{}' is not known", *unread);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (i < call.results().size()) {
            TRY(define(node.outputs[i], call.results()[i]));
        } else if (!node.outputs[i].empty()) {
            return failure(ErrorCode::NotSupported, "result {} is not supported", i);
        }
    }
    return {};
}

Result<void> Walk::import_node(const NodeData& node, std::size_t index) {
    const std::string name = !node.name.empty() ? node.name : fmt::format("node_{}", index);
    const Source source{.node = name, .target = node.domain.empty() ? node.op : node.domain + "." + node.op};
    builder_.at(source);
    // What fails leaves its results unknown; the nodes behind it cannot be looked at, but those beside it can.
    const bool blocked =
        std::ranges::any_of(node.inputs, [&](const std::string& n) { return !n.empty() && !names_.contains(n); });
    if (blocked && !problems_.empty() && table().contains(node.op)) {
        ++missing_;
        return {};
    }
    auto done = run_node(node);
    if (done) return {};
    Error& error = done.error();
    if (error.code != ErrorCode::NotSupported)
        return std::unexpected(std::move(error).with_context(where_text(source)));
    problems_.push_back({source, std::move(error.message), std::move(error.hint)});
    return {};
}

/// Does the shape that was declared say the same? Dimensions that it leaves open, older exporters by 0 or -1, are as
/// they come.
Result<void> compare_declared(const Port& port, const Shape& shape) {
    if (!port.has_shape) return {};
    bool same = port.shape.size() == shape.size();
    for (std::size_t d = 0; same && d < shape.size(); ++d)
        same = port.shape[d].value_or(0) <= 0 || *port.shape[d] == shape[d];
    const auto is_one = [](const std::optional<std::int64_t>& size) { return size == 1; };
    if (same || (element_count(shape) == 1 && std::ranges::all_of(port.shape, is_one))) return {};
    Shape declared;
    for (const auto size : port.shape) declared.push_back(size.value_or(0) <= 0 ? -1 : *size);
    return std::unexpected(Error(ErrorCode::InvalidProgram,
                                 fmt::format("result '{}' has shape {}, the file declares {}", port.name,
                                             shape_text(shape), shape_text(declared)),
                                 "Export the model again, or correct what it declares."));
}

Result<void> Walk::bind_outputs() {
    for (const Port& port : model_.outputs) {
        const auto found = names_.find(port.name);
        if (found == names_.end()) return failure(ErrorCode::InvalidProgram, "result '{}' is never made", port.name);
        ValueId id = found->second.id;
        TRY(compare_declared(port, graph_[id].shape));
        builder_.at({.node = "output"});
        if (!found->second.integers) {
            TRY_ASSIGN(id, builder_.requantize(id, std::nullopt, "output." + port.name));
        }
        if (graph_[id].is_constant() || std::ranges::find(graph_.inputs, id) != graph_.inputs.end())
            return failure(ErrorCode::NotSupported, "result '{}' is a constant or an input", port.name);
        graph_.outputs.push_back(id);
    }
    if (graph_.outputs.empty()) return failure(ErrorCode::InvalidProgram, "the model has no results");
    return {};
}

Result<Graph> Walk::run() {
    if (model_.opset < kOldest || model_.opset > kNewest)
        return std::unexpected(Error(ErrorCode::NotSupported,
                                     fmt::format("opset {}; {} to {} are known", model_.opset, kOldest, kNewest),
                                     "Export the model again, with opset 17 for example."));
    if (!model_.functions.empty()) return failure(ErrorCode::NotSupported, "functions in the model");
    if (model_.nodes.size() > kMostNodes) return failure(ErrorCode::OutOfResources, "{} nodes", model_.nodes.size());
    TRY(bind_ports());
    TRY_ASSIGN(const auto sequence, order());
    for (const auto n : sequence) TRY(import_node(model_.nodes[n], n));
    if (!problems_.empty()) {
        auto error = problems_error(problems_);
        if (missing_ > 0) error.message += fmt::format("\n  ({} operators behind these were not looked at)", missing_);
        if (options_.problems != nullptr) *options_.problems = std::move(problems_);
        return std::unexpected(std::move(error));
    }
    TRY(bind_outputs());
    return std::move(graph_);
}

}  // namespace

bool looks_like(talpa::Bytes file) {
    // ir_version first, as every exporter writes it.
    return file.size() > 4 && file[0] == 0x08 && file[1] >= 1 && file[1] < 64;
}

Result<Graph> read(talpa::Bytes file, const std::filesystem::path& folder, const Options& options) {
    TRY_ASSIGN(Model model, read_model(file, folder));
    return Walk(model, options).run();
}

std::vector<std::string> known_operators() {
    std::vector<std::string> names;
    for (const auto& [name, op] : table()) names.emplace_back(name);
    std::ranges::sort(names);
    return names;
}

}  // namespace talpa::compiler::import::onnx
