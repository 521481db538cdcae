#include "compiler/graph/dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/graph/infer.h"
#include "compiler/graph/ops.h"

namespace talpa::compiler {
namespace {

/// " key=value" for what differs from the default.
class Words {
  public:
    template <typename T>
    Words& add(const char* key, const T& value, const T& usual) {
        if (value != usual) text_ += fmt::format(" {}={}", key, value);
        return *this;
    }
    Words& list(const char* key, const auto& values) {
        text_ += fmt::format(" {}={}", key, fmt::join(values, ","));
        return *this;
    }
    Words& pair(const char* key, const Pair& p, const Pair& usual = {1, 1}) {
        return p == usual ? *this : list(key, p);
    }
    Words& edges(const Edges& e) {
        return e == Edges{} ? *this : list("pad", std::array{e.top, e.left, e.bottom, e.right});
    }
    Words& clamp(const Clamp& c) {
        if (c != Clamp{}) text_ += fmt::format(" clamp={}..{}", c.min, c.max);
        return *this;
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

struct AttributeText {
    std::string operator()(const NoAttr&) const { return {}; }
    std::string operator()(const ConvAttr& a) const {
        return Words()
            .pair("stride", a.stride)
            .pair("dilation", a.dilation)
            .edges(a.padding)
            .add<std::int64_t>("groups", a.groups, 1)
            .pair("output_padding", a.output_padding, {0, 0})
            .clamp(a.clamp)
            .take();
    }
    std::string operator()(const FullyConnectedAttr& a) const { return Words().clamp(a.clamp).take(); }
    std::string operator()(const PoolAttr& a) const {
        return Words()
            .pair("kernel", a.kernel)
            .pair("stride", a.stride)
            .pair("dilation", a.dilation)
            .edges(a.padding)
            .add("count_include_pad", a.count_include_pad, false)
            .add<std::int64_t>("divisor", a.divisor, 0)
            .clamp(a.clamp)
            .take();
    }
    std::string operator()(const ReduceAttr& a) const {
        return Words().list("axes", a.axes).add("keep_dims", a.keep_dims, false).take();
    }
    std::string operator()(const BinaryAttr& a) const { return Words().clamp(a.clamp).take(); }
    std::string operator()(const UnaryAttr& a) const {
        return Words()
            .add("alpha", a.alpha, 0.0)
            .add("beta", a.beta, 0.0)
            .add("approximate", a.approximate, false)
            .clamp(a.clamp)
            .take();
    }
    std::string operator()(const AxisAttr& a) const {
        return Words().list("axis", std::array{a.axis}).add("beta", a.beta, 1.0).take();
    }
    std::string operator()(const SliceAttr& a) const {
        return Words().list("starts", a.starts).list("ends", a.ends).list("steps", a.steps).take();
    }
    std::string operator()(const PadAttr& a) const {
        return Words()
            .add("mode", static_cast<int>(a.mode), 0)
            .list("before", a.before)
            .list("after", a.after)
            .add("value", a.value, 0.0)
            .take();
    }
    std::string operator()(const PermuteAttr& a) const { return Words().list("order", a.order).take(); }
    std::string operator()(const ResizeAttr& a) const {
        return Words()
            .add<std::string>("mode", a.mode == ResizeAttr::Mode::Nearest ? "nearest" : "bilinear", "")
            .add("align_corners", a.align_corners, false)
            .add("half_pixel", a.half_pixel, false)
            .take();
    }
    std::string operator()(const NormAttr& a) const {
        return Words()
            .add("epsilon", a.epsilon, 0.0)
            .add<std::int64_t>("groups", a.groups, 1)
            .list("axes", a.axes)
            .take();
    }
};

std::string operand_text(const Graph& g, ValueId id) {
    if (id == kNoValue) return "-";
    const Value& v = g[id];
    return v.is_constant() ? fmt::format("'{}' {}", v.name, type_text(v)) : fmt::format("'{}'", v.name);
}

}  // namespace

std::string type_text(const Value& v) {
    std::string text = fmt::format("{}{}", dtype_name(v.stored_type()), shape_text(v.shape));
    if (!v.quantization) return text;
    const Quantization& q = *v.quantization;
    if (q.per_tensor()) return text + fmt::format(" q({:.9g}, {})", q.scales[0], q.zero_points[0]);
    return text + fmt::format(" q(axis {})", q.axis);
}

std::string operation_text(const Node& node) {
    return op_name(node.op) + std::visit(AttributeText{}, node.attributes);
}

std::string dump(const Graph& g) {
    std::string text = fmt::format("graph '{}'\n", g.name);
    for (const auto id : g.inputs) text += fmt::format("  input '{}' {}\n", g[id].name, type_text(g[id]));
    for (const Node& node : g.nodes) {
        std::vector<std::string> operands;
        for (const auto id : node.inputs) operands.push_back(operand_text(g, id));
        text += fmt::format("  '{}' {} = {} ({})", g[node.outputs[0]].name, type_text(g[node.outputs[0]]),
                            operation_text(node), fmt::join(operands, ", "));
        if (!node.source.module.empty() || !node.source.line.empty())
            text +=
                fmt::format("  # {}{}{}", node.source.module, node.source.line.empty() ? "" : " ", node.source.line);
        text += '\n';
    }
    for (const auto id : g.outputs) text += fmt::format("  output '{}' {}\n", g[id].name, type_text(g[id]));
    return text;
}

}  // namespace talpa::compiler
