#include "inspect/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "inspect/plan_text.h"
#include "runtime/host/c_order.h"

namespace talpa::inspect {
namespace {

using runtime::ScalarType;
using runtime::Value;

/// The type of an NPU's element among those of the program format.
ScalarType scalar_type(npu::ElementType type) {
    switch (type.bytes) {
        case 1:
            return type.is_signed ? ScalarType::Int8 : ScalarType::UInt8;
        case 2:
            return type.is_signed ? ScalarType::Int16 : ScalarType::UInt16;
        default:
            return ScalarType::Int32;
    }
}

/// An output feature map as dense NHWC. The model has checked that every byte lies in its region.
CapturedTensor feature_map(const npu::FeatureMap& fm, const npu::Region& region) {
    CapturedTensor tensor{.type = scalar_type(fm.type),
                          .shape = {static_cast<std::int32_t>(fm.height), static_cast<std::int32_t>(fm.width),
                                    static_cast<std::int32_t>(fm.depth)},
                          .bytes = {}};
    tensor.bytes.reserve(std::size_t{fm.height} * fm.width * fm.depth * fm.type.bytes);
    for (std::uint32_t y = 0; y < fm.height; ++y)
        for (std::uint32_t x = 0; x < fm.width; ++x)
            for (std::uint32_t c = 0; c < fm.depth; ++c) {
                const std::uint8_t* p = region.data + fm.offset_of(y, x, c);
                tensor.bytes.insert(tensor.bytes.end(), p, p + fm.type.bytes);
            }
    return tensor;
}

}  // namespace

std::string instruction_name(const pte::MethodView& method, std::uint32_t chain, std::uint32_t instruction) {
    const pte::InstructionView view(method.instructions(chain)[instruction]);
    std::string what;
    switch (view.type()) {
        case pte::InstructionType::KernelCall:
            what = operator_name(method.op(static_cast<std::uint32_t>(view.op_index())));
            break;
        case pte::InstructionType::DelegateCall:
            what = fmt::format("delegate {}", view.delegate_index());
            break;
        case pte::InstructionType::MoveCall:
            what = "move";
            break;
        default:
            what = "control";
            break;
    }
    const std::string place = method.chain_count() == 1 ? "" : fmt::format("chain {}, ", chain);
    return fmt::format("{}instruction {} ({})", place, instruction, what);
}

void Tracer::before(const runtime::Step& step) {
    where_ = instruction_name(method_->view(), step.chain, step.instruction);
    first_point_ = points_.size();
    operations_ = 0;
    last_offset_.reset();
}

void Tracer::operation(const npu::Operation& op, const npu::Job& job) {
    // The runtime runs a delegate again when it cannot tell whether an output was written; the second run counts.
    if (last_offset_ && op.offset_bytes <= *last_offset_) {
        points_.resize(first_point_);
        operations_ = 0;
    }
    last_offset_ = op.offset_bytes;
    const std::uint32_t index = operations_++;
    if (!npu::is_kernel(op.kind)) return;  // a DMA only moves what the kernels show
    CapturedTensor tensor = feature_map(op.ofm, job.regions[op.ofm.region]);
    TracePoint point{.what = fmt::format("{}, operation {} {} at stream offset {:#x}", where_, index,
                                         npu::op_kind_name(op.kind), op.offset_bytes),
                     .key = fmt::format("{} {} [{}]", npu::op_kind_name(op.kind), runtime::scalar_name(tensor.type),
                                        fmt::join(tensor.shape, ", ")),
                     .inside_npu = true};
    add(std::move(point), std::move(tensor));
}

void Tracer::after(const runtime::Step& step) {
    const pte::InstructionView view(method_->view().instructions(step.chain)[step.instruction]);
    if (view.type() != pte::InstructionType::KernelCall && view.type() != pte::InstructionType::DelegateCall) return;
    const std::string op = view.type() == pte::InstructionType::KernelCall
                               ? operator_name(method_->view().op(static_cast<std::uint32_t>(view.op_index())))
                               : "delegate";
    const auto values = method_->values();
    for (std::uint32_t i = 0; i < view.args().size(); ++i) {
        const Value& value = values[static_cast<std::size_t>(view.args()[i])];
        if (value.kind == Value::Kind::Tensor) {
            add_value(where_, op, i, *value.tensor);
        } else if (value.kind == Value::Kind::TensorList) {
            for (std::uint32_t item = 0; item < value.count; ++item) {
                const auto index = load_le<std::int32_t>(value.items + std::size_t{4} * item);
                if (index >= 0 && values[static_cast<std::size_t>(index)].kind == Value::Kind::Tensor)
                    add_value(where_, op, i, *values[static_cast<std::size_t>(index)].tensor);
            }
        }
    }
}

void Tracer::add_value(const std::string& where, const std::string& op, std::size_t argument,
                       const runtime::Tensor& tensor) {
    if (tensor.data == nullptr) return;
    CapturedTensor copy{
        .type = tensor.type,
        .shape = {tensor.shape().begin(), tensor.shape().end()},
        .bytes = runtime::host::to_c_order({tensor.data, tensor.size_bytes()}, scalar_size(tensor.type),
                                           std::span(tensor.dim_order).first(tensor.rank), tensor.shape())};
    TracePoint point{
        .what = fmt::format("{}, argument {}{}", where, argument, tensor.is_constant ? " (a constant)" : ""),
        .key =
            fmt::format("{} {} {} [{}]", op, argument, runtime::scalar_name(tensor.type), fmt::join(copy.shape, ", "))};
    add(std::move(point), std::move(copy));
}

void Tracer::add(TracePoint point, CapturedTensor tensor) {
    point.hash =
        std::hash<std::string_view>{}({reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
    if (points_.size() == capture_) captured_ = std::move(tensor);
    points_.push_back(std::move(point));
}

}  // namespace talpa::inspect
