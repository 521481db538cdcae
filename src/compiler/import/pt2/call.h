// One node of an exported program while it is imported: its arguments by the schema's names, with types checked and
// defaults filled in, and its results (model-formats, section 1.4).
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/graph/builder.h"
#include "compiler/import/json_tree.h"
#include "compiler/import/spatial.h"
#include "compiler/import/stored_tensor.h"

namespace talpa::compiler::import::pt2 {

/// What a name of the program stands for. `integers`: the program sees the stored numbers of a quantized value, not the
/// reals (between quantize and dequantize).
struct Bound {
    ValueId id = kNoValue;
    bool integers = false;
};

/// Where names are looked up; the program (program.cpp) implements it.
class Names {
  public:
    virtual ~Names() = default;
    [[nodiscard]] virtual host::Result<Bound> lookup(std::string_view name) = 0;
};

class Call {
  public:
    /// Parses the node's arguments; `node` is its JSON.
    [[nodiscard]] static host::Result<Call> read(Json node, Builder& builder, Names& names);

    Builder& b;

    [[nodiscard]] bool has(std::string_view name) const;  ///< passed, and not None
    void ignore(std::initializer_list<std::string_view> names);

    [[nodiscard]] host::Result<Bound> bound(std::string_view name);
    /// A tensor of reals (or of whole numbers that are no quantized ones).
    [[nodiscard]] host::Result<ValueId> tensor(std::string_view name);
    [[nodiscard]] host::Result<ValueId> optional_tensor(std::string_view name);  ///< kNoValue when absent
    [[nodiscard]] host::Result<std::vector<ValueId>> tensors(std::string_view name);
    /// A tensor of any kind, for operators that only move elements; the results then are of that kind too.
    [[nodiscard]] host::Result<ValueId> moved(std::string_view name);
    /// A tensor, or a number as a constant of rank 0.
    [[nodiscard]] host::Result<ValueId> tensor_or_number(std::string_view name);
    [[nodiscard]] bool is_tensor(std::string_view name) const;

    [[nodiscard]] host::Result<std::int64_t> integer(std::string_view name, std::optional<std::int64_t> usual = {});
    [[nodiscard]] host::Result<double> number(std::string_view name, std::optional<double> usual = {});
    [[nodiscard]] host::Result<bool> boolean(std::string_view name, std::optional<bool> usual = {});
    [[nodiscard]] host::Result<std::string_view> text(std::string_view name,
                                                      std::optional<std::string_view> usual = {});
    [[nodiscard]] host::Result<std::vector<std::int64_t>> integers(std::string_view name,
                                                                   std::optional<std::vector<std::int64_t>> usual = {});
    [[nodiscard]] host::Result<std::vector<double>> numbers(std::string_view name);
    /// One number for each of `count` dimensions; one number or a list of one applies to all.
    [[nodiscard]] host::Result<std::vector<std::int64_t>> per_dimension(std::string_view name, std::size_t count,
                                                                        std::optional<std::int64_t> usual = {});
    [[nodiscard]] host::Result<RawType> dtype(std::string_view name);
    /// A dimension's index made positive.
    [[nodiscard]] host::Result<int> dimension(std::string_view name, std::size_t rank,
                                              std::optional<std::int64_t> usual = {});

    /// Names of the results, in order; a list result counts once an element.
    [[nodiscard]] const std::vector<std::string_view>& result_names() const { return result_names_; }
    [[nodiscard]] std::string name() const {
        return std::string(result_names_.empty() ? node_name_ : result_names_[0]);
    }
    void give(ValueId id) { results_.push_back({id, integers_}); }
    void give(Bound bound) { results_.push_back(bound); }
    [[nodiscard]] const std::vector<Bound>& results() const { return results_; }

    /// The program's name of the first tensor operand: what an in-place operator changes and what a view shows.
    [[nodiscard]] std::string_view operand_name() const;

    /// An argument that no accessor has asked for.
    [[nodiscard]] std::optional<std::string_view> unread() const;

  private:
    struct Argument {
        std::string_view name;
        Json value;  ///< the union's only member; its key is the tag
        bool read = false;
    };
    Call(Builder& builder, Names& names) : b(builder), names_(&names) {}
    [[nodiscard]] Argument* find(std::string_view name);
    [[nodiscard]] const Argument* find(std::string_view name) const;
    [[nodiscard]] host::Result<Json> argument(std::string_view name);
    [[nodiscard]] host::Error wrong_tag(std::string_view name, Json value) const;

    Names* names_;
    std::vector<Argument> arguments_;
    std::vector<std::string_view> result_names_;
    std::string_view node_name_;
    std::vector<Bound> results_;
    bool integers_ = false;
};

/// How one operator is imported.
struct Operator {
    std::string_view target;  ///< without "torch.ops."
    host::Result<void> (*import)(Call& call, Op op);
    Op op = Op::Requantize;  ///< handed to `import`; most rows share a function
    enum class Sharing : std::uint8_t {
        Fresh,
        View
    } sharing = Sharing::Fresh;  ///< a View's result shares the operand's memory
};

// Tables, a file each.
[[nodiscard]] std::span<const Operator> matrix_operators();
[[nodiscard]] std::span<const Operator> pool_operators();
[[nodiscard]] std::span<const Operator> elementwise_operators();
[[nodiscard]] std::span<const Operator> shape_operators();
[[nodiscard]] std::span<const Operator> slice_operators();
[[nodiscard]] std::span<const Operator> resize_operators();
[[nodiscard]] std::span<const Operator> norm_operators();
[[nodiscard]] std::span<const Operator> quantize_operators();
[[nodiscard]] std::span<const Operator> constant_operators();

}  // namespace talpa::compiler::import::pt2
