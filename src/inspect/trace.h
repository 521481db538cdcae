// What happens inside a run, tensor by tensor: after each operation of the NPU its output feature map, after each
// instruction of the method its tensors. A hash of each is kept, and on request one whole, so that a trace of a large
// network stays small and two runs are compared by running them twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/device.h"
#include "runtime/method.h"

namespace talpa::inspect {

/// One tensor at one moment.
struct TracePoint {
    std::string what;  ///< "instruction 1 (delegate 0), operation 12 CONV at stream offset 0x1a4"
    std::string key;   ///< equal keys can be compared: kind of operation, type, shape; no offsets
    std::uint64_t hash = 0;
    bool inside_npu = false;
};

struct CapturedTensor {
    runtime::ScalarType type = runtime::ScalarType::Int8;
    std::vector<std::int32_t> shape;  ///< of a feature map: height, width, depth
    std::vector<std::uint8_t> bytes;  ///< in C order of the shape
};

class Tracer final : public runtime::Observer {
  public:
    /// `capture`: keep the tensor of the point with this index.
    explicit Tracer(std::optional<std::size_t> capture = {}) : capture_(capture) {}
    /// Before the first run; the method outlives the tracer.
    void watch(const runtime::Method& method) { method_ = &method; }

    void before(const runtime::Step& step) override;
    void after(const runtime::Step& step) override;
    /// After each operation (npu_model::ModelOptions::after_operation).
    void operation(const npu::Operation& op, const npu::Job& job);

    [[nodiscard]] const std::vector<TracePoint>& points() const { return points_; }
    [[nodiscard]] const std::optional<CapturedTensor>& captured() const { return captured_; }

  private:
    void add(TracePoint point, CapturedTensor tensor);
    void add_value(const std::string& where, const std::string& op, std::size_t argument,
                   const runtime::Tensor& tensor);

    std::optional<std::size_t> capture_;
    const runtime::Method* method_ = nullptr;
    std::vector<TracePoint> points_;
    std::optional<CapturedTensor> captured_;
    // Of the instruction that runs
    std::string where_;
    std::size_t first_point_ = 0;
    std::uint32_t operations_ = 0;
    std::optional<std::uint32_t> last_offset_;
};

/// "instruction 3 (aten::add.out)", with the chain where there are several.
[[nodiscard]] std::string instruction_name(const pte::MethodView& method, std::uint32_t chain,
                                           std::uint32_t instruction);

}  // namespace talpa::inspect
