#include "compiler/compare/traced_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "npu_model/model.h"
#include "runtime/host/c_order.h"
#include "runtime/host/session.h"
#include "runtime/operators/all.h"

namespace talpa::compiler {
namespace {

using runtime::ScalarType;

std::int32_t element_at(const std::uint8_t* p, npu::ElementType type) {
    std::int32_t v = 0;
    std::memcpy(&v, p, type.bytes);
    if (type.bytes == 1) return type.is_signed ? static_cast<std::int8_t>(v) : v;
    if (type.bytes == 2) return type.is_signed ? static_cast<std::int16_t>(v) : v;
    return v;
}

template <typename T>
void widen(talpa::Bytes bytes, std::vector<float>& out) {
    out.resize(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(load_le<T>(bytes.data() + i * sizeof(T)));
}

std::vector<float> numbers_of(ScalarType type, talpa::Bytes bytes) {
    std::vector<float> out;
    switch (type) {
        case ScalarType::Float32:
            widen<float>(bytes, out);
            break;
        case ScalarType::Int8:
            widen<std::int8_t>(bytes, out);
            break;
        case ScalarType::Int16:
            widen<std::int16_t>(bytes, out);
            break;
        case ScalarType::Int32:
            widen<std::int32_t>(bytes, out);
            break;
        case ScalarType::Int64:
            widen<std::int64_t>(bytes, out);
            break;
        default:
            widen<std::uint8_t>(bytes, out);
            break;
    }
    return out;
}

void dequantize(std::vector<float>& numbers, double scale, double zero_point) {
    for (float& x : numbers) x = static_cast<float>((static_cast<double>(x) - zero_point) * scale);
}

/// Keeps a copy of every tensor of the compiler's networks as the operations write it, however few rows of it exist at
/// a time, and of the method's tensors after each instruction.
class Shadow final : public runtime::Observer {
  public:
    Shadow(const Graph& graph, const CompileReport& report) : graph_(graph), report_(report) {
        for (const DelegateMap& map : report.maps) {
            tensors_.emplace_back();
            for (const std::uint64_t elements : map.tensor_elements)
                tensors_.back().push_back({std::vector<std::int32_t>(elements), std::vector<char>(elements)});
        }
        for (const OperationOrigin& o : report.origins) origins_[{o.delegate, o.offset_bytes}] = &o;
        for (const auto& [index, id] : report.program_values) graph_value_[index] = id;
        values_.resize(graph.values.size());
    }
    void watch(const runtime::Method& method) { method_ = &method; }

    void before(const runtime::Step& step) override {
        const pte::InstructionView view(method_->view().instructions(step.chain)[step.instruction]);
        if (view.type() == pte::InstructionType::DelegateCall)
            delegate_ = static_cast<std::uint32_t>(view.delegate_index());
    }
    void after(const runtime::Step& step) override {
        const pte::InstructionView view(method_->view().instructions(step.chain)[step.instruction]);
        if (view.type() != pte::InstructionType::KernelCall && view.type() != pte::InstructionType::DelegateCall)
            return;
        for (std::uint32_t i = 0; i < view.args().size(); ++i) {
            const auto found = graph_value_.find(view.args()[i]);
            const runtime::Value& value = method_->values()[static_cast<std::size_t>(view.args()[i])];
            if (found == graph_value_.end() || value.kind != runtime::Value::Kind::Tensor ||
                value.tensor->data == nullptr || graph_[found->second].is_constant())
                continue;
            const runtime::Tensor& t = *value.tensor;
            const auto dense = runtime::host::to_c_order({t.data, t.size_bytes()}, scalar_size(t.type),
                                                         std::span(t.dim_order).first(t.rank), t.shape());
            keep(found->second, numbers_of(t.type, dense));
        }
    }
    void operation(const npu::Operation& op, const npu::Job& job) {
        const auto found = origins_.find({delegate_, op.offset_bytes});
        if (found == origins_.end()) return;
        const OperationOrigin& o = *found->second;
        auto& tensors = tensors_[delegate_];
        if (o.copied) tensors[o.copied->second] = tensors[o.copied->first];
        if (!o.written || !npu::is_kernel(op.kind)) return;
        Tensor& into = tensors[o.written->tensor];
        const std::uint8_t* base = job.regions[op.ofm.region].data;
        for (std::uint32_t y = 0; y < op.ofm.height; ++y)
            for (std::uint32_t x = 0; x < op.ofm.width; ++x)
                for (std::uint32_t c = 0; c < op.ofm.depth; ++c) {
                    const auto at = static_cast<std::size_t>(o.written->first + y * o.written->stride_y +
                                                             x * o.written->stride_x + c);
                    if (at >= into.elements.size()) continue;
                    into.elements[at] = element_at(base + op.ofm.offset_of(y, x, c), op.ofm.type);
                    into.written[at] = 1;
                }
    }

    std::vector<std::optional<std::vector<float>>> finish() {
        for (std::size_t d = 0; d < report_.maps.size(); ++d)
            for (const ValuePlace& place : report_.maps[d].values)
                if (!values_[place.value]) gather(place, tensors_[d][place.tensor]);
        return std::move(values_);
    }

  private:
    struct Tensor {
        std::vector<std::int32_t> elements;
        std::vector<char> written;
    };

    void keep(ValueId id, std::vector<float> numbers) {
        if (const auto& q = graph_[id].quantization; q && q->per_tensor())
            dequantize(numbers, q->scales[0], q->zero_points[0]);
        values_[id] = std::move(numbers);
    }
    /// Nothing if an element of it was never written: then it never existed as such.
    void gather(const ValuePlace& place, const Tensor& from) {
        const Shape& shape = graph_[place.value].shape;
        const auto count = static_cast<std::size_t>(element_count(shape));
        std::vector<float> numbers(count);
        std::vector<std::int64_t> at(shape.size());
        for (std::size_t i = 0; i < count; ++i) {
            std::int64_t element = place.offset;
            for (std::size_t d = 0; d < shape.size(); ++d) element += at[d] * place.strides[d];
            const auto index = static_cast<std::size_t>(element);
            if (index >= from.elements.size() || !from.written[index]) return;
            numbers[i] = static_cast<float>(from.elements[index]);
            for (std::size_t d = shape.size(); d-- > 0;) {
                if (++at[d] < shape[d]) break;
                at[d] = 0;
            }
        }
        keep(place.value, std::move(numbers));
    }

    const Graph& graph_;
    const CompileReport& report_;
    const runtime::Method* method_ = nullptr;
    std::uint32_t delegate_ = 0;
    std::vector<std::vector<Tensor>> tensors_;  ///< by delegate
    std::map<std::pair<std::uint32_t, std::uint32_t>, const OperationOrigin*> origins_;
    std::map<std::int32_t, ValueId> graph_value_;
    std::vector<std::optional<std::vector<float>>> values_;
};

/// An input as the program stores it.
host::Result<std::vector<std::uint8_t>> stored_input(const runtime::host::PortInfo& port, std::uint32_t index,
                                                     const std::vector<float>& numbers) {
    const std::size_t each = scalar_size(port.type);
    if (numbers.size() * each != port.size_bytes)
        return host::failure(ErrorCode::InvalidArgument, "input {} is {}; {} numbers were given", index,
                             port.describe(), numbers.size());
    std::vector<std::uint8_t> bytes(port.size_bytes);
    if (port.type == ScalarType::Float32) {
        std::memcpy(bytes.data(), numbers.data(), bytes.size());
    } else {
        if (!port.quantization &&
            (port.type == ScalarType::Int8 || port.type == ScalarType::UInt8 || port.type == ScalarType::Int16))
            return host::failure(ErrorCode::InvalidArgument,
                                 "input {} is {}, and the program does not say what its numbers stand for", index,
                                 port.describe());
        const double scale = port.quantization ? port.quantization->scale : 1;
        const double zero = port.quantization ? static_cast<double>(port.quantization->zero_point) : 0;
        const double least = port.type == ScalarType::Int8 ? -128 : port.type == ScalarType::UInt8 ? 0 : -32768;
        const double most = port.type == ScalarType::Int8 ? 127 : port.type == ScalarType::UInt8 ? 255 : 32767;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            double v = std::nearbyint(static_cast<double>(numbers[i]) / scale) + zero;
            if (each <= 2) v = std::clamp(v, least, most);
            const auto n = static_cast<std::uint64_t>(static_cast<std::int64_t>(v));
            for (std::size_t b = 0; b < each; ++b) bytes[i * each + b] = static_cast<std::uint8_t>(n >> (8 * b));
        }
    }
    if (runtime::host::is_c_order(port.dim_order, port.sizes)) return bytes;
    return runtime::host::from_c_order(bytes, each, port.dim_order, port.sizes);
}

}  // namespace

host::Result<TracedRun> traced_run(talpa::Bytes program, const std::string& name, const Graph& graph,
                                   const CompileReport& report, const npu::Hardware& npu,
                                   const std::vector<std::vector<float>>& inputs, unsigned threads) {
    Shadow shadow(graph, report);
    npu_model::ModelOptions options{.config = npu.config, .id = npu.id, .threads = std::max(threads, 1u)};
    options.after_operation = [&](const npu::Operation& op, const npu::Job& job) { shadow.operation(op, job); };
    npu_model::Model model(options);
    runtime::host::SessionOptions how;
    how.operators = runtime::all_operators();
    how.device = &model;
    how.observer = &shadow;
    TRY_ASSIGN(runtime::host::Session session, runtime::host::Session::open(program, name, how));
    shadow.watch(session.method());
    if (inputs.size() != session.input_count())
        return host::failure(ErrorCode::InvalidArgument, "the program has {} inputs, {} were given",
                             session.input_count(), inputs.size());
    std::vector<std::vector<std::uint8_t>> kept;
    for (std::uint32_t i = 0; i < inputs.size(); ++i) {
        TRY_ASSIGN(auto bytes, stored_input(session.input(i), i, inputs[i]));
        kept.push_back(std::move(bytes));
        TRY(session.set_input(i, kept.back()));
    }
    TRY(session.run());
    TracedRun run;
    for (std::uint32_t i = 0; i < session.output_count(); ++i) {
        const auto port = session.output(i);
        TRY_ASSIGN(const auto stored, session.output_bytes(i));
        auto numbers = numbers_of(
            port.type, runtime::host::to_c_order(stored, scalar_size(port.type), port.dim_order, port.sizes));
        if (port.quantization && port.type != ScalarType::Float32)
            dequantize(numbers, port.quantization->scale, static_cast<double>(port.quantization->zero_point));
        run.outputs.push_back(std::move(numbers));
    }
    run.values = shadow.finish();
    return run;
}

}  // namespace talpa::compiler
