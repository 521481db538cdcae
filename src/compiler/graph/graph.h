// The network between the compiler's stages: what every importer makes, what quantization completes and what lowering
// reads. One graph, one meaning: every value stands for real numbers; a value that has a `quantization` is stored as
// integers of that scale and zero point. So a float model is a graph without quantizations, post-training quantization
// fills them in, and a quantized file (PT2E's quantize/dequantize pairs, TFLite, ONNX QDQ) arrives with them.
//
// Layout: spatial operators (convolutions, pools, resize) are channels-last, N x H x W x C, as the NPU computes;
// importers of channels-first formats put permutes around them and the layout pass cancels those.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace talpa::compiler {

enum class DType : std::uint8_t { Float32, Int8, UInt8, Int16, Int32, Int64, Bool };
[[nodiscard]] const char* dtype_name(DType type);
[[nodiscard]] std::size_t dtype_size(DType type);

/// Outermost dimension first. Rank 0 to 8; no symbolic sizes.
using Shape = std::vector<std::int64_t>;
/// Number of elements; the importers have checked that it fits. The largest number for a shape that they have not.
[[nodiscard]] std::int64_t element_count(const Shape& shape);

/// real = (stored - zero_point) * scale. Per tensor: one scale, axis -1. Per channel: one for each index of `axis`.
struct Quantization {
    DType type = DType::Int8;
    std::vector<double> scales;             ///< finite, > 0
    std::vector<std::int32_t> zero_points;  ///< as many as scales
    int axis = -1;
    std::int64_t min = -128, max = 127;  ///< what the stored numbers are clamped to

    [[nodiscard]] bool per_tensor() const { return axis < 0; }
    friend bool operator==(const Quantization&, const Quantization&) = default;
};

/// Element bytes, little-endian, C order, in `Value::stored_type()`. Shared between graphs, never changed.
using Bytes = std::vector<std::uint8_t>;
using ConstantData = std::shared_ptr<const Bytes>;

using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = std::numeric_limits<ValueId>::max();  ///< an optional operand left out

struct Value {
    std::string name{};  ///< the file's own, for messages; unique within a graph
    Shape shape{};
    DType type = DType::Float32;  ///< of the values themselves; Float32 for everything that may be quantized
    std::optional<Quantization> quantization{};
    ConstantData constant{};  ///< null: computed, or an input

    [[nodiscard]] DType stored_type() const { return quantization ? quantization->type : type; }
    [[nodiscard]] bool is_constant() const { return constant != nullptr; }
};

// Attributes, by operator. Two-element arrays are {height, width}.
using Pair = std::array<std::int64_t, 2>;
struct Edges {
    std::int64_t top = 0, left = 0, bottom = 0, right = 0;
    friend bool operator==(const Edges&, const Edges&) = default;
};

/// What a fused activation does to the real result, before it is quantized.
struct Clamp {
    double min = -std::numeric_limits<double>::infinity();
    double max = std::numeric_limits<double>::infinity();
    [[nodiscard]] bool any() const {
        return min > -std::numeric_limits<double>::max() || max < std::numeric_limits<double>::max();
    }
    friend bool operator==(const Clamp&, const Clamp&) = default;
};

/// Conv2d: input N,H,W,I; weight O,KH,KW,I/groups; bias O or kNoValue. Depthwise: groups == I (O a multiple of it,
/// output channel o reads input channel o / (O / groups)). ConvTranspose2d: weight the same shape O,KH,KW,I/groups;
/// out[i*stride - padding + dilation*k] += in[i] * w[k], with `output_padding` more rows and columns at the end.
struct ConvAttr {
    Pair stride{1, 1}, dilation{1, 1};
    Edges padding{};
    std::int64_t groups = 1;
    Pair output_padding{0, 0};
    Clamp clamp{};
};
/// FullyConnected: input …,I; weight O,I; bias O or kNoValue.
struct FullyConnectedAttr {
    Clamp clamp{};
};
/// MaxPool2d, AvgPool2d over N,H,W,C. Max ignores padded positions; average counts them if `count_include_pad`,
/// or divides by `divisor` if that is not 0.
struct PoolAttr {
    Pair kernel{1, 1}, stride{1, 1}, dilation{1, 1};
    Edges padding{};
    bool count_include_pad = false;
    std::int64_t divisor = 0;
    Clamp clamp{};
};
/// Mean, Sum, ReduceMax, ReduceMin, ArgMax (one axis; int64 or int32 result), CumSum (one axis).
struct ReduceAttr {
    std::vector<int> axes{};  ///< 0 to rank - 1, ascending
    bool keep_dims = false;
};
/// Add, Sub, Mul, Div, Minimum, Maximum, Pow, Prelu (x, slope): operands broadcast as NumPy's do.
struct BinaryAttr {
    Clamp clamp{};
};
/// One operand, elementwise. `alpha`: LeakyRelu's slope, Elu's alpha, Softplus's threshold; `beta`: Softplus's beta.
struct UnaryAttr {
    double alpha = 0, beta = 0;
    bool approximate = false;  ///< Gelu: the tanh form
    Clamp clamp{};             ///< of ClampOp (relu, relu6, hardtanh …)
};
/// Softmax, LogSoftmax, Concat, Gather (axis).
struct AxisAttr {
    int axis = 0;
    double beta = 1;  ///< Softmax
};
/// One entry a dimension; steps >= 1 or negative (reverse), ends exclusive, already clipped to the shape.
struct SliceAttr {
    std::vector<std::int64_t> starts{}, ends{}, steps{};
};
struct PadAttr {
    enum class Mode : std::uint8_t { Constant, Reflect, Symmetric, Replicate } mode = Mode::Constant;
    std::vector<std::int64_t> before{}, after{};  ///< one entry a dimension, >= 0
    double value = 0;                             ///< real
};
struct PermuteAttr {
    std::vector<int> order;  ///< output dimension i is input dimension order[i]
};
/// Input N,H,W,C; the output's size is its shape.
struct ResizeAttr {
    enum class Mode : std::uint8_t { Nearest, Bilinear } mode = Mode::Nearest;
    bool align_corners = false, half_pixel = false;
    Pair scale_inverse{0, 0};  ///< unused when 0
};
/// LayerNorm over the last `axes` dimensions; GroupNorm; BatchNorm over the last dimension (folded before lowering):
/// inputs x, gamma?, beta?, (BatchNorm: mean, variance).
struct NormAttr {
    double epsilon = 1e-5;
    std::int64_t groups = 1;
    std::vector<int> axes{};
};
struct NoAttr {};

using Attributes = std::variant<NoAttr, ConvAttr, FullyConnectedAttr, PoolAttr, ReduceAttr, BinaryAttr, UnaryAttr,
                                AxisAttr, SliceAttr, PadAttr, PermuteAttr, ResizeAttr, NormAttr>;

enum class Op : std::uint8_t {
    Conv2d,
    ConvTranspose2d,
    FullyConnected,
    MatMul,  // MatMul: two activations, batched, broadcasting
    MaxPool2d,
    AvgPool2d,
    Mean,
    Sum,
    ReduceMax,
    ReduceMin,
    ArgMax,
    CumSum,
    Add,
    Sub,
    Mul,
    Div,
    Minimum,
    Maximum,
    Pow,
    ClampOp,
    LeakyRelu,
    Prelu,
    Elu,
    Sigmoid,
    Tanh,
    HardSigmoid,
    HardSwish,
    Silu,
    Gelu,
    Exp,
    Log,
    Sqrt,
    Rsqrt,
    Abs,
    Neg,
    Reciprocal,
    Square,
    Softplus,
    Mish,
    Sin,
    Cos,
    Erf,
    Floor,
    Ceil,
    Round,
    Sign,
    Softmax,
    LogSoftmax,
    LayerNorm,
    GroupNorm,
    BatchNorm,
    Concat,
    Slice,
    Pad,
    Reshape,
    Permute,
    Expand,
    Resize,
    Gather,
    Requantize,  // the same reals in another quantization; also quantize and dequantize at float regions' borders
};
[[nodiscard]] const char* op_name(Op op);

/// Where a node comes from, for messages and the debug map.
struct Source {
    std::string node{};    ///< the file's name of it
    std::string target{};  ///< the file's operator, "aten.conv2d.default"
    std::string module{};  ///< dotted path of the module, may be empty
    std::string line{};    ///< "model.py:12", may be empty
};

struct Node {
    Op op = Op::Requantize;
    std::vector<ValueId> inputs;
    std::vector<ValueId> outputs;
    Attributes attributes;
    Source source;

    template <typename T>
    [[nodiscard]] const T& as() const {
        return std::get<T>(attributes);
    }
    template <typename T>
    [[nodiscard]] T& as() {
        return std::get<T>(attributes);
    }
};

/// Which integers a quantized operator must give.
enum class Arithmetic : std::uint8_t {
    Tosa,    ///< PT2E and our own quantizer: RESCALE with one rounding (ethos-u65, section 9.7)
    TfLite,  ///< LiteRT's reference kernels: double rounding (ethos-u65, section 5.3)
};

struct Graph {
    std::string name;
    std::vector<Value> values;
    std::vector<Node> nodes;  ///< in an order that can be executed
    std::vector<ValueId> inputs, outputs;
    Arithmetic arithmetic = Arithmetic::Tosa;

    [[nodiscard]] const Value& operator[](ValueId id) const { return values[id]; }
    [[nodiscard]] Value& operator[](ValueId id) { return values[id]; }
    ValueId add_value(Value value);
    /// The node's result value, new.
    ValueId add_node(Op op, std::vector<ValueId> inputs, Attributes attributes, Value result, Source source = {});
};

/// Node index that computes each value, or -1; and the nodes that read it, each once.
struct Uses {
    std::vector<std::int64_t> producer;
    std::vector<std::vector<std::uint32_t>> readers;
};
[[nodiscard]] Uses find_uses(const Graph& graph);

}  // namespace talpa::compiler
