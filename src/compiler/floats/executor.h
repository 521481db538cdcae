// Runs a graph in float32: for calibration, for judging a quantized network against its float original, and as the
// plain meaning that everything else is compared with. Constants are dequantized; computed values that have a
// quantization are rounded to what it can store when that is asked for, which foretells a quantized network's outputs.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/host/error.h"
#include "compiler/graph/graph.h"

namespace talpa::compiler {

/// The real numbers that a constant stands for, whatever it is stored as. Errors: not as many bytes as its shape needs.
[[nodiscard]] host::Result<std::vector<float>> real_values(const Value& value);

/// Rounds and clamps `numbers` to what the value's quantization can store; nothing without a per-tensor one.
void round_to_quantization(const Value& value, std::span<float> numbers);

/// Sees every computed value and input once, in the graph's order. Integer values (indices) come as floats too.
using ValueObserver = std::function<void(ValueId, std::span<const float>)>;

enum class Rounding : std::uint8_t {
    None,       ///< float throughout
    Quantized,  ///< every value to the numbers that its quantization has
};

class FloatExecutor {
  public:
    /// Packs weights. `graph` must outlive the executor and stay as it is. Errors: operand counts or shapes that do not
    /// belong together, named by node.
    [[nodiscard]] static host::Result<FloatExecutor> create(const Graph& graph, Rounding rounding = Rounding::None);
    FloatExecutor(FloatExecutor&&) noexcept;
    FloatExecutor& operator=(FloatExecutor&&) noexcept;
    ~FloatExecutor();

    /// Buffers that a run leaves for the next; one per thread.
    class Workspace {
        friend class FloatExecutor;
        std::vector<std::vector<float>> free_;
    };

    /// One inference; `inputs` in the graph's order, C order of their shapes. May be called from several threads, each
    /// with a workspace of its own. The observer is called from the calling thread. `dither` other than 0: what is
    /// rounded is moved by up to a tenth of a step before, at random, so that other numbers lie beyond a half: another
    /// outcome of the same roundings.
    [[nodiscard]] host::Result<std::vector<std::vector<float>>> run(std::span<const std::vector<float>> inputs,
                                                                    Workspace& workspace,
                                                                    const ValueObserver& observer = {},
                                                                    std::uint32_t dither = 0) const;

  private:
    struct Prepared;
    explicit FloatExecutor(std::unique_ptr<Prepared> prepared);
    std::unique_ptr<Prepared> prepared_;
};

}  // namespace talpa::compiler
