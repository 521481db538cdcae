// Adds nodes to a graph with everything that follows from their operands worked out: the shape, the quantization of
// what only moves elements, constants folded at once, permutes of permutes joined. Importers and passes build with it.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/host/error.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler {

class Builder {
  public:
    explicit Builder(Graph& graph);

    [[nodiscard]] Graph& graph() { return graph_; }
    [[nodiscard]] const Value& operator[](ValueId id) const { return graph_[id]; }

    /// What the nodes added from now on come from.
    void at(Source source) { source_ = std::move(source); }

    /// Its name is made unique.
    ValueId value(Value value);

    /// Result: float32 (int64 of ArgMax) not quantized, except what only moves elements: that keeps type and
    /// quantization. `asked`: the result's shape where the operator leaves it open.
    [[nodiscard]] host::Result<ValueId> add(Op op, std::vector<ValueId> operands, Attributes attributes,
                                            const std::string& name, const Shape& asked = {});

    // The same for the commonest; each returns its operand where nothing would change.
    [[nodiscard]] host::Result<ValueId> permute(ValueId x, std::vector<int> order, const std::string& name);
    [[nodiscard]] host::Result<ValueId> reshape(ValueId x, const Shape& shape, const std::string& name);
    /// `quantization` none: dequantizes.
    [[nodiscard]] host::Result<ValueId> requantize(ValueId x, const std::optional<Quantization>& quantization,
                                                   const std::string& name);

  private:
    [[nodiscard]] std::string unique(const std::string& name);
    [[nodiscard]] Value result_of(Op op, const Attributes& attributes, const std::vector<ValueId>& operands) const;

    Graph& graph_;
    Source source_;
    std::unordered_set<std::string> names_;
    std::unordered_map<std::string, std::size_t> next_number_;
    std::unordered_map<ValueId, std::size_t> producer_;  ///< node index
};

/// Channels-first to channels-last and back, for rank 4.
inline const std::vector<int> kToChannelsLast{0, 2, 3, 1};
inline const std::vector<int> kToChannelsFirst{0, 3, 1, 2};

/// The order that undoes `order`, and the one of doing `first`, then `second`.
[[nodiscard]] std::vector<int> inverse(const std::vector<int>& order);
[[nodiscard]] std::vector<int> composed(const std::vector<int>& first, const std::vector<int>& second);
[[nodiscard]] bool is_identity(const std::vector<int>& order);
/// Does the permute leave all elements where they are in memory (only dimensions of one element move)?
[[nodiscard]] bool keeps_memory_order(const Shape& shape, const std::vector<int>& order);

}  // namespace talpa::compiler
