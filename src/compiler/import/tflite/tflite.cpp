// The walk over a .tflite model (model-formats, sections 3.2 to 3.5).
#include "compiler/import/tflite/tflite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "compiler/graph/check.h"
#include "compiler/import/quantization.h"
#include "compiler/import/refusal.h"
#include "compiler/import/stored_tensor.h"
#include "compiler/import/tflite/call.h"
#include "compiler/import/tflite/flat.h"

namespace talpa::compiler::import::tflite {
namespace {

using host::Error;
using host::failure;
using host::Result;

constexpr std::size_t kMostTensors = 200'000, kMostOperators = 100'000;
constexpr std::int32_t kCustom = 32;

const Operator* find_operator(std::int32_t code) {
    static const auto all = [] {
        std::unordered_map<std::int32_t, const Operator*> map;
        for (const auto table : {compute_operators(), movement_operators(), refused_operators()})
            for (const Operator& op : table) map.emplace(op.code, &op);
        return map;
    }();
    const auto found = all.find(code);
    return found == all.end() ? nullptr : found->second;
}

struct TypeRow {
    std::int8_t code;
    const char* name;
    std::optional<RawType> type;
};
constexpr TypeRow kTypes[] = {
    // section 3.2
    {0, "float32", RawType::Float32},
    {1, "float16", RawType::Float16},
    {2, "int32", RawType::Int32},
    {3, "uint8", RawType::UInt8},
    {4, "int64", RawType::Int64},
    {5, "string", {}},
    {6, "bool", RawType::Bool},
    {7, "int16", RawType::Int16},
    {8, "complex64", {}},
    {9, "int8", RawType::Int8},
    {10, "float64", RawType::Float64},
    {11, "complex128", {}},
    {12, "uint64", {}},
    {13, "resource", {}},
    {14, "variant", {}},
    {15, "uint32", {}},
    {16, "uint16", {}},
    {17, "int4", {}},
    {18, "bfloat16", RawType::BFloat16},
};

DType graph_type(RawType type) {
    switch (type) {
        case RawType::UInt8:
            return DType::UInt8;
        case RawType::Int8:
            return DType::Int8;
        case RawType::Int16:
            return DType::Int16;
        case RawType::Int32:
            return DType::Int32;
        case RawType::Int64:
            return DType::Int64;
        case RawType::Bool:
            return DType::Bool;
        default:
            return DType::Float32;
    }
}

struct Tensor {
    TensorFacts facts;
    std::optional<Error> unusable;  ///< why, if something needs it
    RawType raw = RawType::Float32;
    std::uint32_t buffer = 0;
    bool variable = false;
    bool free_batch = false;  ///< its first dimension may be any
    ValueId id = kNoValue;
};

class Model {
  public:
    Model(talpa::Bytes file, const Options& options) : file_(file), options_(options), builder_(graph_) {}
    [[nodiscard]] Result<Graph> read();

  private:
    struct Code {
        std::int32_t code;
        std::string custom;
    };
    Result<void> read_codes(const FlatTable& model);
    Result<Tensor> read_tensor(const FlatTable& table, std::size_t index);
    Result<std::optional<Quantization>> read_quantization(const FlatTable& tensor, DType type, const Shape& shape);
    Result<talpa::Bytes> data_of(const Tensor& tensor) const;
    Result<ValueId> value_of(std::int32_t index);
    Result<void> import_operator(const FlatTable& table, std::size_t index);
    Result<void> run(const FlatTable& table, const Operator& op, const std::vector<std::int32_t>& in,
                     const std::vector<std::int32_t>& out);
    [[nodiscard]] Error refusal(const Code& code) const;

    talpa::Bytes file_;
    const Options& options_;
    Graph graph_;
    Builder builder_;
    std::vector<Code> codes_;
    std::vector<Tensor> tensors_;
    std::vector<FlatTable> buffers_;
    std::vector<Problem> problems_;
};

Result<void> Model::read_codes(const FlatTable& model) {
    TRY_ASSIGN(const auto tables, model.tables(1));
    for (const FlatTable& t : tables) {
        TRY_ASSIGN(const auto old, t.scalar<std::int8_t>(0, 0));
        TRY_ASSIGN(const auto code, t.scalar<std::int32_t>(3, 0));
        TRY_ASSIGN(const auto custom, t.text(1));
        codes_.push_back({std::max<std::int32_t>(old, code), std::string(custom.substr(0, 100))});
    }
    return {};
}

Result<std::optional<Quantization>> Model::read_quantization(const FlatTable& tensor, DType type, const Shape& shape) {
    TRY_ASSIGN(const auto table, tensor.table(4));
    TRY_ASSIGN(const auto scales, table.numbers<float>(2));
    TRY_ASSIGN(const auto zeros, table.numbers<std::int64_t>(3));
    TRY_ASSIGN(const auto axis, table.scalar<std::int32_t>(6, 0));
    if (scales.empty() || type == DType::Float32 || type == DType::Bool) return std::nullopt;
    if (scales.size() == 1 && scales[0] == 0 && (type == DType::Int32 || type == DType::Int64)) return std::nullopt;
    FoundQuantization found{.type = type, .scales = {scales.begin(), scales.end()}, .zero_points = zeros};
    if (scales.size() > 1) found.axis = axis;
    return quantization_of(found, shape);
}

Result<Tensor> Model::read_tensor(const FlatTable& table, std::size_t index) {
    Tensor t;
    TRY_ASSIGN(const auto name, table.text(3));
    // Operators that were fused leave all their names, joined by semicolons: the first is the last operator's.
    t.facts.name = name.empty() ? fmt::format("tensor_{}", index)
                                : std::string(name.substr(0, std::min<std::size_t>(name.find(';'), 200)));
    TRY_ASSIGN(const auto shape, table.numbers<std::int32_t>(0));
    t.facts.shape.assign(shape.begin(), shape.end());
    TRY(checked_count(t.facts.shape));
    TRY_ASSIGN(t.buffer, table.scalar<std::uint32_t>(2, 0));
    TRY_ASSIGN(t.variable, table.scalar<bool>(5, false));
    TRY_ASSIGN(const auto code, table.scalar<std::int8_t>(1, 0));
    const auto row = std::ranges::find(kTypes, code, &TypeRow::code);
    if (row == std::end(kTypes) || !row->type) {
        t.unusable = Error(ErrorCode::NotSupported, fmt::format("tensor '{}' is of type {}", t.facts.name,
                                                                row == std::end(kTypes) ? "unknown" : row->name));
        return t;
    }
    t.raw = *row->type;
    t.facts.type = graph_type(t.raw);
    TRY_ASSIGN(const auto sparsity, table.table(6));
    if (sparsity.present())
        t.unusable = Error(ErrorCode::NotSupported, fmt::format("tensor '{}' is stored sparsely", t.facts.name));
    TRY_ASSIGN(const auto signature, table.numbers<std::int32_t>(7));
    t.free_batch = !signature.empty() && signature[0] < 0 && !t.facts.shape.empty();
    for (std::size_t d = 1; d < signature.size(); ++d)
        if (signature[d] < 0)
            t.unusable = Error(ErrorCode::NotSupported, fmt::format("dimension {} of '{}' is dynamic", d, t.facts.name),
                               "Convert the model with fixed sizes.");
    TRY_ASSIGN(t.facts.quantization, read_quantization(table, t.facts.type, t.facts.shape));
    return t;
}

/// A constant's bytes; empty for what is computed.
Result<talpa::Bytes> Model::data_of(const Tensor& tensor) const {
    if (tensor.buffer >= buffers_.size())
        return failure(ErrorCode::InvalidProgram, "buffer {} of {}", tensor.buffer, buffers_.size());
    const FlatTable& buffer = buffers_[tensor.buffer];
    TRY_ASSIGN(const auto inside, buffer.bytes(0));
    if (!inside.empty()) return inside;
    TRY_ASSIGN(const auto offset, buffer.scalar<std::uint64_t>(1, 0));
    TRY_ASSIGN(const auto size, buffer.scalar<std::uint64_t>(2, 0));
    if (offset <= 1) return inside;
    if (!range_inside(offset, size, file_.size()))
        return failure(ErrorCode::InvalidProgram, "buffer {} lies outside the file", tensor.buffer);
    return file_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

Result<ValueId> Model::value_of(std::int32_t index) {
    if (index < 0 || static_cast<std::size_t>(index) >= tensors_.size())
        return failure(ErrorCode::InvalidProgram, "tensor {} of {}", index, tensors_.size());
    Tensor& t = tensors_[static_cast<std::size_t>(index)];
    if (t.id != kNoValue) return t.id;
    if (t.unusable) return std::unexpected(*t.unusable);
    if (t.variable)
        return failure(ErrorCode::NotSupported, "tensor '{}' keeps its state from run to run", t.facts.name);
    TRY_ASSIGN(const auto data, data_of(t));
    if (data.empty() && element_count(t.facts.shape) > 0)
        return failure(ErrorCode::InvalidProgram, "tensor '{}' is read before it is made", t.facts.name);
    if (data.size() != static_cast<std::size_t>(element_count(t.facts.shape)) * raw_size(t.raw))
        return failure(ErrorCode::InvalidProgram, "tensor '{}' has {} bytes, its shape needs {}", t.facts.name,
                       data.size(), static_cast<std::size_t>(element_count(t.facts.shape)) * raw_size(t.raw));
    TRY_ASSIGN(Value value,
               host::with_context(load_tensor(t.facts.name, {t.raw, t.facts.shape, {}, 0, data}, Finite::NoNan),
                                  t.facts.name));
    if (t.facts.quantization) {
        value.type = DType::Float32;
        value.quantization = t.facts.quantization;
    }
    t.id = builder_.value(std::move(value));
    return t.id;
}

Error Model::refusal(const Code& code) const {
    if (code.code == kCustom)
        return {ErrorCode::NotSupported, fmt::format("the custom operator '{}' is not supported", code.custom),
                "Convert the model so that it ends before this operator, and do the rest on the host."};
    const Operator* known = find_operator(code.code);
    if (known == nullptr) return {ErrorCode::NotSupported, fmt::format("operator {} is not supported", code.code)};
    const std::string_view name = known->name;
    if (name.find("LSTM") != name.npos || name.find("RNN") != name.npos || name == "SVDF")
        return refused(kNoRecurrentLayers);
    return refused(kNoOperator);
}

Result<void> Model::run(const FlatTable& table, const Operator& op, const std::vector<std::int32_t>& in,
                        const std::vector<std::int32_t>& out) {
    std::vector<ValueId> operands;
    for (const auto index : in) {
        if (index == -1) {
            operands.push_back(kNoValue);
            continue;
        }
        TRY_ASSIGN(const auto id, value_of(index));
        operands.push_back(id);
    }
    std::vector<const TensorFacts*> facts;
    for (const auto index : out) {
        const Tensor& t = tensors_[static_cast<std::size_t>(index)];
        if (t.unusable) return std::unexpected(*t.unusable);
        facts.push_back(&t.facts);
    }
    FlatTable options;
    if (op.options != 0) {
        TRY_ASSIGN(const auto type, table.scalar<std::uint8_t>(3, 0));
        if (type != 0 && type != op.options)
            return failure(ErrorCode::InvalidProgram, "its options are of type {}, {} is needed", type, op.options);
        TRY_ASSIGN(options, table.table(4));
    }
    Call call(builder_, options, std::move(operands), facts);
    TRY(op.import(call, op.op));
    if (call.given().size() != out.size())
        return failure(ErrorCode::InvalidProgram, "{} results, {} are named", call.given().size(), out.size());
    for (std::size_t i = 0; i < out.size(); ++i) tensors_[static_cast<std::size_t>(out[i])].id = call.given()[i];
    return {};
}

Result<void> Model::import_operator(const FlatTable& table, std::size_t index) {
    TRY_ASSIGN(const auto opcode, table.scalar<std::uint32_t>(0, 0));
    if (opcode >= codes_.size())
        return failure(ErrorCode::InvalidProgram, "operator code {} of {}", opcode, codes_.size());
    TRY_ASSIGN(const auto in, table.numbers<std::int32_t>(1));
    TRY_ASSIGN(const auto out, table.numbers<std::int32_t>(2));
    for (const auto id : out) {
        if (id < 0 || static_cast<std::size_t>(id) >= tensors_.size())
            return failure(ErrorCode::InvalidProgram, "result {} of {} tensors", id, tensors_.size());
        if (tensors_[static_cast<std::size_t>(id)].id != kNoValue)
            return failure(ErrorCode::InvalidProgram, "makes '{}', which exists already",
                           tensors_[static_cast<std::size_t>(id)].facts.name);
    }
    if (out.empty()) return failure(ErrorCode::InvalidProgram, "operator {} has no results", index);
    const Code& code = codes_[opcode];
    const Operator* op = find_operator(code.code);
    const std::string target = code.code == kCustom ? code.custom
                               : op != nullptr      ? op->name
                                                    : fmt::format("operator {}", code.code);
    const Source source{
        .node = out.empty() ? fmt::format("operator_{}", index) : tensors_[static_cast<std::size_t>(out[0])].facts.name,
        .target = target,
        .module = {},
        .line = fmt::format("operator {}", index)};
    builder_.at(source);
    auto done = op == nullptr || op->import == nullptr ? Result<void>(std::unexpected(refusal(code)))
                                                       : run(table, *op, in, out);
    if (done) return {};
    Error& error = done.error();
    if (error.code != ErrorCode::NotSupported)
        return std::unexpected(std::move(error).with_context(where_text(source)));
    problems_.push_back({source, std::move(error.message), std::move(error.hint)});
    for (const auto id : out) {  // stands in, so that the rest can be looked at
        Tensor& t = tensors_[static_cast<std::size_t>(id)];
        if (t.id != kNoValue) continue;
        Value value{
            .name = t.facts.name, .shape = t.facts.shape, .type = t.facts.type, .quantization = t.facts.quantization};
        if (value.quantization) value.type = DType::Float32;
        t.id = builder_.value(std::move(value));
    }
    return {};
}

Result<Graph> Model::read() {
    graph_.arithmetic = Arithmetic::TfLite;
    TRY_ASSIGN(const auto model, FlatTable::root(file_));
    TRY_ASSIGN(const auto version, model.scalar<std::uint32_t>(0, 0));
    if (version != 3) return failure(ErrorCode::NotSupported, "version {} of the format, 3 is known", version);
    TRY(read_codes(model));
    TRY_ASSIGN(const auto subgraphs, model.tables(2));
    TRY_ASSIGN(buffers_, model.tables(4));
    if (subgraphs.empty()) return failure(ErrorCode::InvalidProgram, "the model has no graph");
    const FlatTable& main = subgraphs[0];
    TRY_ASSIGN(const auto tensors, main.tables(0));
    TRY_ASSIGN(const auto operators, main.tables(3));
    if (tensors.size() > kMostTensors || operators.size() > kMostOperators)
        return failure(ErrorCode::OutOfResources, "{} tensors and {} operators", tensors.size(), operators.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        auto tensor = read_tensor(tensors[i], i);
        if (!tensor) return std::unexpected(std::move(tensor.error()).with_context(fmt::format("tensor {}", i)));
        tensors_.push_back(std::move(*tensor));
    }
    TRY_ASSIGN(const auto inputs, main.numbers<std::int32_t>(1));
    TRY_ASSIGN(const auto outputs, main.numbers<std::int32_t>(2));
    for (const auto index : inputs) {
        if (index < 0 || static_cast<std::size_t>(index) >= tensors_.size() ||
            tensors_[static_cast<std::size_t>(index)].id != kNoValue)
            return failure(ErrorCode::InvalidProgram, "input {} does not exist or is named twice", index);
        Tensor& t = tensors_[static_cast<std::size_t>(index)];
        if (t.unusable) return std::unexpected(*t.unusable);
        Value value{
            .name = t.facts.name, .shape = t.facts.shape, .type = t.facts.type, .quantization = t.facts.quantization};
        if (value.quantization)
            value.type = DType::Float32;
        else if (value.type != DType::Float32)
            return failure(ErrorCode::NotSupported, "input '{}' is {} without a scale", value.name,
                           dtype_name(value.type));
        if (t.free_batch) warn_of_free_batch(value.name, value.shape[0], options_.warnings);
        t.id = builder_.value(std::move(value));
        graph_.inputs.push_back(t.id);
    }
    for (std::size_t i = 0; i < operators.size(); ++i) TRY(import_operator(operators[i], i));
    if (!problems_.empty()) {
        auto error = problems_error(problems_);
        if (options_.problems != nullptr) *options_.problems = std::move(problems_);
        return std::unexpected(std::move(error));
    }
    for (const auto index : outputs) {
        TRY_ASSIGN(const auto id, value_of(index));
        if (graph_[id].is_constant() || std::ranges::find(graph_.inputs, id) != graph_.inputs.end())
            return failure(ErrorCode::NotSupported, "result '{}' is a constant or an input", graph_[id].name);
        graph_.outputs.push_back(id);
    }
    if (graph_.outputs.empty()) return failure(ErrorCode::InvalidProgram, "the model has no results");
    return std::move(graph_);
}

}  // namespace

Result<Graph> read(talpa::Bytes file, const Options& options) {
    return Model(file, options).read();
}

std::vector<std::string> known_operators() {
    std::vector<std::string> names;
    for (const auto table : {compute_operators(), movement_operators()})
        for (const Operator& op : table) names.emplace_back(op.name);
    std::ranges::sort(names);
    return names;
}

}  // namespace talpa::compiler::import::tflite
