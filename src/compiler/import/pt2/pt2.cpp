// The walk over an exported program (model-formats, sections 1.4 to 1.7): binds names to values, calls each operator's
// row, holds the results against the sizes that the file states, and collects what is not supported.
#include "compiler/import/pt2/pt2.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compiler/graph/infer.h"
#include "compiler/import/pt2/archive.h"
#include "compiler/import/pt2/call.h"
#include "compiler/import/pt2/node_source.h"
#include "compiler/import/pt2/operator_table.h"

namespace talpa::compiler::import::pt2 {
namespace {

using host::Error;
using host::failure;
using host::Result;

constexpr std::size_t kMostNodes = 100'000;

/// Names that show the same memory: an in-place operator changes them all.
class Sharing {
  public:
    void join(std::string_view a, std::string_view b) {
        auto &x = group_of(a), &y = group_of(b);
        if (x == y) return;
        auto& into = members_[x];
        auto from = std::move(members_[y]);
        const auto group = x;
        for (const auto name : from) {
            group_[name] = group;
            into.push_back(name);
        }
    }
    [[nodiscard]] const std::vector<std::string_view>& with(std::string_view name) { return members_[group_of(name)]; }

  private:
    std::size_t& group_of(std::string_view name) {
        const auto [it, fresh] = group_.try_emplace(name, members_.size());
        if (fresh) members_.push_back({name});
        return it->second;
    }
    std::unordered_map<std::string_view, std::size_t> group_;
    std::vector<std::vector<std::string_view>> members_;
};

class Program : public Names {
  public:
    Program(const Archive& archive, const Options& options) : archive_(archive), options_(options), builder_(graph_) {}
    [[nodiscard]] Result<Graph> read();
    [[nodiscard]] Result<Bound> lookup(std::string_view name) override;

  private:
    struct Constant {
        Archive::Kind kind;
        std::string_view fqn;
        bool parameter;
    };

    Result<void> check_version();
    Result<void> read_tensor_values();
    Result<void> bind_inputs();
    Result<void> bind_input(Json spec, Json graph_input);
    Result<void> find_last_reads();
    Result<void> import_node(Json node, std::size_t index);
    Result<void> run(Json node, std::size_t index, const Source& source, std::string_view target);
    Result<void> finish(Call& call, const Operator& op, bool in_place, std::size_t index);
    Result<void> compare(std::string_view name, const Bound& bound);
    Result<void> replace(std::string_view operand, const Bound& bound, std::size_t index);
    void stand_in(Json node);
    Result<void> bind_outputs();
    Result<void> define(std::string_view name, Bound bound);

    const Archive& archive_;
    const Options& options_;
    Graph graph_;
    Builder builder_;
    Json graph_json_, signature_;
    std::unordered_map<std::string_view, TensorMeta> metas_;
    std::unordered_map<std::string_view, Constant> constants_;  ///< not loaded yet
    std::unordered_map<std::string_view, Bound> names_;
    std::unordered_map<std::string_view, std::size_t> last_read_;
    Sharing sharing_;
    std::vector<Problem> problems_;
};

Result<void> Program::check_version() {
    TRY_ASSIGN(const Json version, archive_.model().member("schema_version"));
    TRY_ASSIGN(const Json major_json, version.member("major"));
    TRY_ASSIGN(const auto major, major_json.integer());
    if (major != 8)
        return std::unexpected(Error(ErrorCode::NotSupported, fmt::format("schema version {}, 8 is known", major),
                                     "Export the model again with a current PyTorch (2.6 or newer)."));
    return {};
}

Result<void> Program::read_tensor_values() {
    TRY_ASSIGN(const Json values, graph_json_.member("tensor_values"));
    TRY(values.object());
    for (const Json item : each(values)) {
        auto meta = read_tensor_meta(item);
        // A tensor of a strange type matters only where something reads it.
        if (!meta && meta.error().code != ErrorCode::NotSupported) return std::unexpected(std::move(meta.error()));
        if (!meta && meta.error().message.find("dynamic") != std::string::npos)
            return std::unexpected(std::move(meta.error()));
        if (meta) metas_.emplace(item.key(), std::move(*meta));
    }
    return {};
}

Result<std::string_view> tensor_name(Json argument) {
    TRY_ASSIGN(const Json only, argument.only());
    if (only.key() != "as_tensor") return std::unexpected(only.error("a tensor is needed"));
    TRY_ASSIGN(const Json name, only.member("name"));
    return name.text();
}

Result<std::string_view> member_text(Json object, std::string_view key) {
    TRY_ASSIGN(const Json member, object.member(key));
    return member.text();
}

Result<void> Program::bind_input(Json spec, Json graph_input) {
    TRY_ASSIGN(const Json only, spec.only());
    const auto kind = only.key();
    if (kind == "constant_input") return {};
    if (kind == "user_input") {
        TRY_ASSIGN(const Json arg, only.member("arg"));
        TRY_ASSIGN(const Json tag, arg.only());
        if (tag.key() != "as_tensor") return {};  // a Python argument that was fixed at export
        TRY_ASSIGN(const auto name, tensor_name(arg));
        const auto meta = metas_.find(name);
        if (meta == metas_.end()) return std::unexpected(arg.error(fmt::format("input '{}' has no known type", name)));
        Value value{.name = std::string(name), .shape = meta->second.sizes};
        switch (meta->second.type) {
            case RawType::Float32:
                break;
            case RawType::Int8:
                value.type = DType::Int8;
                break;
            case RawType::UInt8:
                value.type = DType::UInt8;
                break;
            case RawType::Int16:
                value.type = DType::Int16;
                break;
            default:
                return failure(ErrorCode::NotSupported,
                               "input '{}' is of type {}: float32, int8, uint8 and int16 are supported", name,
                               raw_name(meta->second.type));
        }
        if (std::ranges::find(value.shape, 0) != value.shape.end())
            return failure(ErrorCode::NotSupported, "input '{}' has no elements", name);
        const bool integers = value.type != DType::Float32;
        const auto id = builder_.value(std::move(value));
        graph_.inputs.push_back(id);
        return define(name, {id, integers});
    }
    struct Kind {
        std::string_view tag, key;
        Archive::Kind where;
        bool parameter;
    };
    constexpr Kind kKinds[] = {{"parameter", "parameter_name", Archive::Kind::Weight, true},
                               {"buffer", "buffer_name", Archive::Kind::Weight, false},
                               {"tensor_constant", "tensor_constant_name", Archive::Kind::Constant, false}};
    for (const Kind& k : kKinds) {
        if (k.tag != kind) continue;
        TRY_ASSIGN(const Json arg, only.member("arg"));
        TRY_ASSIGN(const auto name, member_text(arg, "name"));
        TRY_ASSIGN(const auto fqn, member_text(only, k.key));
        auto where = k.where;
        if (const Json persistent = only.find("persistent"); persistent && persistent.boolean() == false)
            where = Archive::Kind::Constant;
        TRY_ASSIGN(const auto given, tensor_name(graph_input));
        if (given != name) return std::unexpected(arg.error(fmt::format("the graph calls '{}' '{}'", name, given)));
        if (!constants_.emplace(name, Constant{where, fqn, k.parameter}).second)
            return std::unexpected(arg.error(fmt::format("'{}' is an input twice", name)));
        return {};
    }
    return std::unexpected(Error(ErrorCode::NotSupported, fmt::format("an input of kind '{}'", kind)));
}

Result<void> Program::bind_inputs() {
    TRY_ASSIGN(const Json specs, signature_.member("input_specs"));
    TRY_ASSIGN(const Json inputs, graph_json_.member("inputs"));
    TRY(specs.array());
    TRY(inputs.array());
    if (specs.size() != inputs.size())
        return std::unexpected(
            specs.error(fmt::format("{} inputs in the signature, {} in the graph", specs.size(), inputs.size())));
    Json input = inputs.first();
    for (const Json spec : each(specs)) {
        TRY(bind_input(spec, input));
        input = input.next();
    }
    return {};
}

Result<void> Program::define(std::string_view name, Bound bound) {
    if (constants_.contains(name) || !names_.emplace(name, bound).second)
        return failure(ErrorCode::InvalidProgram, "'{}' is defined twice", name);
    return {};
}

Result<Bound> Program::lookup(std::string_view name) {
    if (const auto found = names_.find(name); found != names_.end()) {
        if (found->second.id == kNoValue)
            return failure(ErrorCode::NotSupported, "'{}' is used: indices of a maximum are not supported", name);
        return found->second;
    }
    const auto constant = constants_.find(name);
    if (constant == constants_.end()) return failure(ErrorCode::InvalidProgram, "'{}' is used before it is made", name);
    const Constant& c = constant->second;
    TRY_ASSIGN(Value value, archive_.load(c.kind, std::string(c.fqn), std::string(name),
                                          c.parameter ? Finite::Required : Finite::NoNan));
    if (const auto meta = metas_.find(name); meta != metas_.end() && meta->second.sizes != value.shape)
        return failure(ErrorCode::InvalidProgram, "'{}' is stored as {}, the graph wants {}", c.fqn,
                       shape_text(value.shape), shape_text(meta->second.sizes));
    const Bound bound{builder_.value(std::move(value)), false};
    const bool small = graph_[bound.id].type == DType::Int8 || graph_[bound.id].type == DType::UInt8;
    constants_.erase(constant);
    return names_.emplace(name, Bound{bound.id, small}).first->second;
}

void collect_names(Json argument, const std::function<void(std::string_view)>& take) {
    const auto only = argument.only();
    if (!only) return;
    if (only->key() == "as_tensor") {
        if (const Json name = only->find("name")) take(name.text().value_or(""));
    } else if (only->key() == "as_tensors") {
        for (const Json item : each(*only))
            if (const Json name = item.find("name")) take(name.text().value_or(""));
    } else if (only->key() == "as_optional_tensors") {
        for (const Json item : each(*only)) collect_names(item, take);
    }
}

Result<void> Program::find_last_reads() {
    TRY_ASSIGN(const Json nodes, graph_json_.member("nodes"));
    TRY(nodes.array());
    if (nodes.size() > kMostNodes)
        return failure(ErrorCode::OutOfResources, "{} nodes, at most {} are read", nodes.size(), kMostNodes);
    std::size_t index = 0;
    for (const Json node : each(nodes)) {
        for (const Json input : each(node.find("inputs")))
            collect_names(input.find("arg"), [&](std::string_view name) { last_read_[name] = index; });
        ++index;
    }
    for (const Json output : each(graph_json_.find("outputs")))
        collect_names(output, [&](std::string_view name) { last_read_[name] = index; });
    return {};
}

/// Does the graph's value agree with what the file says about the name?
Result<void> Program::compare(std::string_view name, const Bound& bound) {
    const auto meta = metas_.find(name);
    if (meta == metas_.end() || bound.id == kNoValue) return {};
    const Value& value = graph_[bound.id];
    if (value.shape != meta->second.sizes)
        return failure(ErrorCode::InvalidProgram, "'{}' should have shape {}, the file says {}", name,
                       shape_text(value.shape), shape_text(meta->second.sizes));
    const bool reals = meta->second.type == RawType::Float32;
    if (reals != (value.type == DType::Float32 && !bound.integers))
        return failure(ErrorCode::InvalidProgram, "'{}' should be {}, the file says {}", name,
                       bound.integers ? dtype_name(value.stored_type()) : dtype_name(value.type),
                       raw_name(meta->second.type));
    return {};
}

/// An in-place operator: from now on `operand` names the result too. What shows the same memory under another name must
/// not be read any more, for it would have changed (section 1.4).
Result<void> Program::replace(std::string_view operand, const Bound& bound, std::size_t index) {
    const auto found = names_.find(operand);
    if (found == names_.end()) return failure(ErrorCode::NotSupported, "changes the parameter '{}' in place", operand);
    if (std::ranges::find(graph_.inputs, found->second.id) != graph_.inputs.end())
        return failure(ErrorCode::NotSupported, "changes the input '{}' in place", operand);
    for (const auto name : sharing_.with(operand)) {
        if (name == operand) continue;
        if (const auto read = last_read_.find(name); read != last_read_.end() && read->second > index)
            return failure(ErrorCode::NotSupported, "changes '{}' in place, which is read again as '{}'", operand,
                           name);
    }
    found->second = bound;
    return {};
}

Result<void> Program::finish(Call& call, const Operator& op, bool in_place, std::size_t index) {
    if (const auto unread = call.unread())
        return failure(ErrorCode::NotSupported, "argument '{}' is not known", *unread);
    const auto& names = call.result_names();
    if (names.size() != call.results().size())
        return failure(ErrorCode::InvalidProgram, "{} results, {} are named", call.results().size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        TRY(compare(names[i], call.results()[i]));
        TRY(define(names[i], call.results()[i]));
    }
    if (in_place || op.sharing == Operator::Sharing::View) {
        const auto operand = call.operand_name();
        if (operand.empty()) return {};
        if (in_place) TRY(replace(operand, call.results()[0], index));
        for (const auto name : names) sharing_.join(operand, name);
    }
    return {};
}

Result<void> Program::run(Json node, std::size_t index, const Source& source, std::string_view target) {
    builder_.at(source);
    TRY_ASSIGN(const FoundOperator found, find_operator(target));
    TRY_ASSIGN(Call call, Call::read(node, builder_, *this));
    TRY(found.row->import(call, found.row->op));
    return finish(call, *found.row, found.in_place, index);
}

/// After a failure: values of the shapes that the file states, so that the rest can be looked at too.
void Program::stand_in(Json node) {
    for (const Json output : each(node.find("outputs")))
        collect_names(output, [&](std::string_view name) {
            const auto meta = metas_.find(name);
            if (meta == metas_.end() || names_.contains(name)) return;
            const bool reals = meta->second.type == RawType::Float32;
            Value value{.name = std::string(name), .shape = meta->second.sizes};
            if (!reals) value.type = DType::Int64;
            names_.emplace(name, Bound{builder_.value(std::move(value)), false});
        });
}

Result<void> Program::import_node(Json node, std::size_t index) {
    TRY_ASSIGN(const auto full, member_text(node, "target"));
    const auto target = short_target(full);
    if (only_checks(target)) return {};
    const Source source = read_source(node, target);
    auto done = run(node, index, source, target);
    if (done) return {};
    Error& error = done.error();
    if (error.code == ErrorCode::NotSupported) {
        problems_.push_back({source, std::move(error.message), std::move(error.hint)});
        stand_in(node);
        return {};
    }
    return std::unexpected(std::move(error).with_context(where_text(source)));
}

Result<void> Program::bind_outputs() {
    TRY_ASSIGN(const Json specs, signature_.member("output_specs"));
    TRY_ASSIGN(const Json outputs, graph_json_.member("outputs"));
    TRY(specs.array());
    TRY(outputs.array());
    if (specs.size() != outputs.size())
        return std::unexpected(
            specs.error(fmt::format("{} results in the signature, {} in the graph", specs.size(), outputs.size())));
    for (const Json spec : each(specs)) {
        TRY_ASSIGN(const Json only, spec.only());
        if (only.key() != "user_output")
            return std::unexpected(Error(ErrorCode::NotSupported, fmt::format("a result of kind '{}'", only.key()),
                                         "Networks that keep state between runs are not supported."));
        TRY_ASSIGN(const Json arg, only.member("arg"));
        TRY_ASSIGN(const Json tag, arg.only());
        if (tag.key().starts_with("as_sym")) return failure(ErrorCode::NotSupported, "a result that is a size");
        if (tag.key() != "as_tensor") continue;
        TRY_ASSIGN(const auto name, tensor_name(arg));
        TRY_ASSIGN(const Bound bound, lookup(name));
        builder_.at({.node = "output"});
        ValueId id = bound.id;
        if (!bound.integers) {
            TRY_ASSIGN(id, builder_.requantize(id, std::nullopt, "output." + std::string(name)));
        }
        if (graph_[id].is_constant())
            return failure(ErrorCode::NotSupported, "result '{}' does not depend on any input", name);
        if (std::ranges::find(graph_.inputs, id) != graph_.inputs.end())
            return failure(ErrorCode::NotSupported, "result '{}' is an input as it comes in", name);
        graph_.outputs.push_back(id);
    }
    if (graph_.outputs.empty()) return failure(ErrorCode::InvalidProgram, "the program has no results");
    return {};
}

Result<Graph> Program::read() {
    graph_.name = archive_.name();
    TRY(check_version());
    TRY_ASSIGN(const Json module, archive_.model().member("graph_module"));
    TRY_ASSIGN(graph_json_, module.member("graph"));
    TRY_ASSIGN(signature_, module.member("signature"));
    TRY(read_tensor_values());
    TRY(bind_inputs());
    TRY(find_last_reads());
    std::size_t index = 0;
    for (const Json node : each(graph_json_.find("nodes"))) TRY(import_node(node, index++));
    if (problems_.empty()) TRY(bind_outputs());
    if (!problems_.empty()) {
        auto error = problems_error(problems_);
        if (options_.problems != nullptr) *options_.problems = std::move(problems_);
        return std::unexpected(std::move(error));
    }
    return std::move(graph_);
}

}  // namespace

Result<Graph> read(talpa::Bytes file, const Options& options) {
    TRY_ASSIGN(const Archive archive, Archive::open(file, options.program));
    return Program(archive, options).read();
}

}  // namespace talpa::compiler::import::pt2
