// As in layout.cpp, reshapes are remembered instead of carried out.
#include <map>

#include "compiler/graph/ops.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rebuild.h"

namespace talpa::compiler {
namespace {

using host::Result;

class Sink : public Rebuild {
  public:
    explicit Sink(const Graph& old) : Rebuild(old), seen_(old.values.size(), kNoValue) {}

  private:
    void carried(ValueId old, ValueId id) override { seen_[old] = id; }

    Result<ValueId> plain(ValueId old) override {
        const auto id = seen_[old];
        if (made_[id].shape == old_[old].shape) return id;
        auto& made = shaped_.try_emplace({id, old_[old].shape}, kNoValue).first->second;
        if (made == kNoValue) {
            TRY_ASSIGN(made, build_.reshape(id, old_[old].shape, old_[old].name));
        }
        return made;
    }

    /// May the node compute on what its first operand is a reshape of?
    [[nodiscard]] bool can_wait(const Node& n) const {
        const Shape &inner = made_[seen_[n.inputs[0]]].shape, &outer = old_[n.inputs[0]].shape;
        if (inner == outer) return false;
        switch (op_facts(n.op).kind) {
            case OpClass::Unary:
                return true;
            case OpClass::Norm:
                return n.op == Op::BatchNorm && !inner.empty() && inner.back() == outer.back();
            case OpClass::Binary:
                return made_[seen_[n.inputs[1]]].shape == inner && old_[n.inputs[1]].shape == outer;
            default:
                return false;
        }
    }

    Result<void> node(const Node& n) override {
        const auto out = n.outputs[0];
        if (n.op == Op::Reshape) {
            seen_[out] = seen_[n.inputs[0]];
            return {};
        }
        if (!can_wait(n)) {
            TRY_ASSIGN(seen_[out], copy(n));
            return {};
        }
        std::vector<ValueId> operands;
        for (const auto id : n.inputs) operands.push_back(id == kNoValue ? kNoValue : seen_[id]);
        TRY_ASSIGN(seen_[out], add_like(n, std::move(operands), n.attributes));
        return {};
    }

    std::vector<ValueId> seen_;
    std::map<std::pair<ValueId, Shape>, ValueId> shaped_;
};

}  // namespace

Result<void> sink_reshapes(Graph& graph) {
    TRY_ASSIGN(graph, Sink(graph).run());
    return {};
}

}  // namespace talpa::compiler
