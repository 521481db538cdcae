// Permutes are not carried out but remembered: an old value is known as "that new value, its dimensions taken in this
// order". Operators that do not care compute on the new value and pass the order on; those that do get a real permute,
// made once. Since importers surround spatial operators by permutes, orders cancel and only the edges are left.
#include <algorithm>
#include <map>
#include <numeric>

#include "compiler/graph/infer.h"
#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rebuild.h"

namespace talpa::compiler {
namespace {

using host::Result;
using Order = std::vector<int>;

struct Seen {
    ValueId id = kNoValue;
    Order order;  ///< old dimension i is dimension order[i] of `id`
};

std::size_t at(const Order& order, std::size_t d) {
    return static_cast<std::size_t>(order[d]);
}

Order identity(std::size_t rank) {
    Order order(rank);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

/// Dimensions of `from` and `to` that hold the same elements: joined, split or equal.
struct Group {
    std::vector<std::size_t> from, to;
};
std::vector<Group> match_dimensions(const Shape& from, const Shape& to) {
    std::vector<Group> groups;
    std::size_t i = 0, j = 0;
    while (i < from.size() && j < to.size()) {
        Group g{{i}, {j}};
        std::int64_t a = from[i++], b = to[j++];
        while (a != b) {
            if (a < b && i < from.size()) {
                a *= from[i];
                g.from.push_back(i++);
            } else if (b < a && j < to.size()) {
                b *= to[j];
                g.to.push_back(j++);
            } else {
                return {};
            }
        }
        groups.push_back(std::move(g));
    }
    if (groups.empty()) return {};
    for (; i < from.size(); ++i) groups.back().from.push_back(i);
    for (; j < to.size(); ++j) groups.back().to.push_back(j);
    return groups;
}

class Layout : public Rebuild {
  public:
    explicit Layout(const Graph& old) : Rebuild(old), uses_(find_uses(old)), seen_(old.values.size()) {}

  private:
    void carried(ValueId old, ValueId id) override { seen_[old] = {id, identity(old_[old].shape.size())}; }
    Result<ValueId> plain(ValueId old) override { return ordered(seen_[old], identity(old_[old].shape.size())); }
    Result<void> node(const Node& node) override;

    Result<ValueId> ordered(const Seen& seen, const Order& wanted);
    Result<ValueId> of_rank(ValueId old, const Order& wanted);
    [[nodiscard]] Result<Seen> as_read(const Node& node);
    [[nodiscard]] Order favourite(const Node& node, std::size_t rank) const;
    void set(const Node& node, ValueId id, Order order) { seen_[node.outputs[0]] = {id, std::move(order)}; }

    Result<void> unary(const Node& node);
    Result<void> joined(const Node& node);
    Result<void> reduce(const Node& node);
    Result<void> softmax(const Node& node);
    Result<void> slice(const Node& node);
    Result<void> pad(const Node& node);
    Result<void> reshape(const Node& node);

    Uses uses_;
    std::vector<Seen> seen_;
    std::map<std::pair<ValueId, Order>, ValueId> permuted_;
};

/// A new value of which the old one is the permute by `wanted`.
Result<ValueId> Layout::ordered(const Seen& seen, const Order& wanted) {
    const Order order = composed(seen.order, inverse(wanted));
    if (is_identity(order)) return seen.id;
    auto& made = permuted_.try_emplace({seen.id, order}, kNoValue).first->second;
    if (made != kNoValue) return made;
    const Shape shape = made_[seen.id].shape;
    const std::string name = made_[seen.id].name + ".permuted";
    if (keeps_memory_order(shape, order)) {
        Shape moved;
        for (const int d : order) moved.push_back(shape[static_cast<std::size_t>(d)]);
        TRY_ASSIGN(made, build_.reshape(seen.id, moved, name));
    } else {
        TRY_ASSIGN(made, build_.permute(seen.id, order, name));
    }
    return made;
}

/// As above for an operand that broadcasts: dimensions of one element are put in front up to the rank of `wanted`.
Result<ValueId> Layout::of_rank(ValueId old, const Order& wanted) {
    const Shape& shape = old_[old].shape;
    if (shape.size() == wanted.size()) return ordered(seen_[old], wanted);
    if (element_count(shape) == 1) return plain(old);  // broadcasts as it is
    TRY_ASSIGN(const auto id, plain(old));
    Shape full(wanted.size() - shape.size(), 1);
    full.insert(full.end(), shape.begin(), shape.end());
    TRY_ASSIGN(const auto wide, build_.reshape(id, full, made_[id].name + ".wide"));
    return ordered({wide, identity(full.size())}, wanted);
}

/// The order in which most elements come in; computed ones decide, constants can follow.
Order Layout::favourite(const Node& node, std::size_t rank) const {
    Order best = identity(rank);
    std::int64_t most = 0;
    for (const auto id : node.inputs) {
        const Seen& s = seen_[id];
        if (s.order.size() != rank || made_[s.id].is_constant()) continue;
        const auto weight = element_count(old_[id].shape) * 2 + (is_identity(s.order) ? 0 : 1);
        if (weight > most) {
            most = weight;
            best = s.order;
        }
    }
    return best;
}

/// The operand of a node that cuts or pads, permuted before it if everything behind it wants that anyway: so that the
/// padding stands right before the convolution that takes it over.
Result<Seen> Layout::as_read(const Node& n) {
    const Seen s = seen_[n.inputs[0]];
    const auto& readers = uses_.readers[n.outputs[0]];
    if (readers.empty() || !is_identity(s.order)) return s;
    const Node& first = old_.nodes[readers[0]];
    if (first.op != Op::Permute) return s;
    for (const auto r : readers)
        if (old_.nodes[r].op != Op::Permute || old_.nodes[r].as<PermuteAttr>().order != first.as<PermuteAttr>().order)
            return s;
    const Order wanted = inverse(first.as<PermuteAttr>().order);
    TRY_ASSIGN(const auto id, ordered(s, wanted));
    return Seen{id, wanted};
}

Result<void> Layout::unary(const Node& n) {
    Seen s = seen_[n.inputs[0]];
    // What leaves the network as float is permuted while it is still small and on the NPU.
    if (n.op == Op::Requantize && !old_[n.outputs[0]].quantization &&
        std::ranges::find(old_.outputs, n.outputs[0]) != old_.outputs.end()) {
        TRY_ASSIGN(s.id, plain(n.inputs[0]));
        s.order = identity(s.order.size());
    }
    TRY_ASSIGN(const auto id, add_like(n, {s.id}, n.attributes));
    set(n, id, s.order);
    return {};
}

Result<void> Layout::joined(const Node& n) {
    const Order order = favourite(n, old_[n.outputs[0]].shape.size());
    std::vector<ValueId> operands;
    for (const auto old : n.inputs) {
        TRY_ASSIGN(const auto id, of_rank(old, order));
        operands.push_back(id);
    }
    Attributes attributes = n.attributes;
    if (n.op == Op::Concat) {
        auto& axis = std::get<AxisAttr>(attributes).axis;
        axis = order[static_cast<std::size_t>(axis)];
    }
    TRY_ASSIGN(const auto id, add_like(n, std::move(operands), std::move(attributes)));
    set(n, id, order);
    return {};
}

Result<void> Layout::reduce(const Node& n) {
    const Seen s = seen_[n.inputs[0]];
    ReduceAttr attr = n.as<ReduceAttr>();
    std::vector<bool> reduced(s.order.size());
    for (int& axis : attr.axes) {
        reduced[static_cast<std::size_t>(axis)] = true;
        axis = s.order[static_cast<std::size_t>(axis)];
    }
    std::ranges::sort(attr.axes);
    TRY_ASSIGN(const auto id, add_like(n, {s.id}, attr));
    Order order;
    if (attr.keep_dims || n.op == Op::CumSum) {
        order = s.order;
    } else {
        Order left;
        for (std::size_t d = 0; d < s.order.size(); ++d)
            if (!reduced[d]) left.push_back(s.order[d]);
        for (const int d : left)
            order.push_back(static_cast<int>(std::ranges::count_if(left, [d](int other) { return other < d; })));
    }
    set(n, id, order);
    return {};
}

Result<void> Layout::softmax(const Node& n) {
    const Seen s = seen_[n.inputs[0]];
    AxisAttr attr = n.as<AxisAttr>();
    attr.axis = s.order[static_cast<std::size_t>(attr.axis)];
    TRY_ASSIGN(const auto id, add_like(n, {s.id}, attr));
    set(n, id, s.order);
    return {};
}

Result<void> Layout::slice(const Node& n) {
    TRY_ASSIGN(const Seen s, as_read(n));
    const SliceAttr& from = n.as<SliceAttr>();
    SliceAttr attr = from;
    for (std::size_t d = 0; d < s.order.size(); ++d) {
        attr.starts[at(s.order, d)] = from.starts[d];
        attr.ends[at(s.order, d)] = from.ends[d];
        attr.steps[at(s.order, d)] = from.steps[d];
    }
    TRY_ASSIGN(const auto id, add_like(n, {s.id}, attr));
    set(n, id, s.order);
    return {};
}

Result<void> Layout::pad(const Node& n) {
    TRY_ASSIGN(const Seen s, as_read(n));
    const PadAttr& from = n.as<PadAttr>();
    PadAttr attr = from;
    for (std::size_t d = 0; d < s.order.size(); ++d) {
        attr.before[at(s.order, d)] = from.before[d];
        attr.after[at(s.order, d)] = from.after[d];
    }
    TRY_ASSIGN(const auto id, add_like(n, {s.id}, attr));
    set(n, id, s.order);
    return {};
}

/// What joins or splits dimensions that lie side by side in the new value too needs no permute before it.
Result<void> Layout::reshape(const Node& n) {
    const Seen s = seen_[n.inputs[0]];
    const Shape from = old_[n.inputs[0]].shape, to = old_[n.outputs[0]].shape;
    const std::string name = old_[n.outputs[0]].name;
    if (keeps_memory_order(made_[s.id].shape, s.order)) {
        TRY_ASSIGN(const auto id, build_.reshape(s.id, to, name));
        set(n, id, identity(to.size()));
        return {};
    }
    auto groups = match_dimensions(from, to);
    bool together = !groups.empty();
    for (const Group& g : groups)
        for (std::size_t i = 1; i < g.from.size(); ++i)
            together &= at(s.order, g.from[i]) == at(s.order, g.from[i - 1]) + 1;
    if (!together) {
        TRY_ASSIGN(const auto id, plain(n.inputs[0]));
        TRY_ASSIGN(const auto shaped, build_.reshape(id, to, name));
        set(n, shaped, identity(to.size()));
        return {};
    }
    std::ranges::sort(groups, {}, [&](const Group& g) { return at(s.order, g.from[0]); });
    Shape shape;
    Order order(to.size());
    for (const Group& g : groups)
        for (const auto d : g.to) {
            order[d] = static_cast<int>(shape.size());
            shape.push_back(to[d]);
        }
    TRY_ASSIGN(const auto id, build_.reshape(s.id, shape, name));
    set(n, id, order);
    return {};
}

Result<void> Layout::node(const Node& n) {
    switch (n.op) {
        case Op::Permute: {
            const Seen& s = seen_[n.inputs[0]];
            set(n, s.id, composed(s.order, n.as<PermuteAttr>().order));
            return {};
        }
        case Op::Reshape:
            return reshape(n);
        case Op::Concat:
            return joined(n);
        case Op::Slice:
            return slice(n);
        case Op::Pad:
            return pad(n);
        default:
            break;
    }
    switch (op_facts(n.op).kind) {
        case OpClass::Unary:
            return unary(n);
        case OpClass::Binary:
            return joined(n);
        case OpClass::Reduce:
            return reduce(n);
        case OpClass::Axis:
            return softmax(n);
        default:
            break;
    }
    TRY_ASSIGN(const auto id, copy(n));
    set(n, id, identity(old_[n.outputs[0]].shape.size()));
    return {};
}

}  // namespace

Result<void> layout(Graph& graph) {
    TRY_ASSIGN(graph, Layout(graph).run());
    return {};
}

}  // namespace talpa::compiler
