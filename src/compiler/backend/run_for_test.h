// For tests only: compiles a graph, checks the streams for hazards, runs the program on the strict NPU model.
#pragma once

#include <cstring>
#include <vector>

#include "compiler/backend/compile.h"
#include "npu_model/model.h"
#include "npu_model/strict/hazards.h"
#include "runtime/host/session.h"
#include "runtime/operators/all.h"

namespace talpa::compiler::testing {

struct RunResult {
    std::vector<std::vector<std::uint8_t>> outputs;
    CompileReport report;
    std::size_t pte_bytes = 0;
};

/// Before each delegate call the strict model hears which bytes hold data: the inputs.
class TellInputs final : public runtime::Observer {
  public:
    explicit TellInputs(npu_model::Model& model) : model_(model) {}
    void watch(const runtime::Method& method) { method_ = &method; }
    static std::vector<npu_model::InitialisedRange> inputs_of(const runtime::EthosUDelegate& delegate) {
        std::vector<npu_model::InitialisedRange> ranges;
        for (std::uint32_t i = 0; i < delegate.inputs().count(); ++i) {
            const pte::IoRecord record = delegate.inputs()[i];
            ranges.push_back({static_cast<std::uint8_t>(record.region), {record.offset, record.size_bytes}});
        }
        return ranges;
    }
    void before(const runtime::Step& step) override {
        const pte::InstructionView instruction(method_->view().instructions(step.chain)[step.instruction]);
        if (instruction.type() != pte::InstructionType::DelegateCall) return;
        model_.set_initialised(inputs_of(method_->delegates()[static_cast<std::size_t>(instruction.delegate_index())]));
    }
    void after(const runtime::Step&) override {}

  private:
    npu_model::Model& model_;
    const runtime::Method* method_ = nullptr;
};

inline host::Result<void> check_hazards(const runtime::Method& method) {
    for (const runtime::EthosUDelegate& delegate : method.delegates()) {
        npu_model::HazardOptions options;
        options.hardware = npu::find_hardware(delegate.config());
        options.initialised = TellInputs::inputs_of(delegate);
        TRY_ASSIGN(const auto hazards, npu_model::find_hazards(delegate.stream(), options));
        if (!hazards.empty()) return host::failure(ErrorCode::Hazard, "{}", hazards.front().text);
    }
    return {};
}

/// `strict` off: the fast kernels, no checks of data, for large networks.
inline host::Result<RunResult> compile_and_run(const Graph& graph, const std::vector<std::vector<std::uint8_t>>& inputs,
                                               const CompileOptions& options = {}, bool strict = true) {
    TRY_ASSIGN(Compiled compiled, compile(graph, options));
    npu_model::ModelOptions model_options;
    model_options.config = options.target.hardware->config;
    model_options.id = options.target.hardware->id;
    if (strict) model_options.checks = npu_model::DataChecks::Strict;
    npu_model::Model model(model_options);
    TellInputs observer(model);
    runtime::host::SessionOptions session_options;
    session_options.operators = runtime::all_operators();
    session_options.device = &model;
    if (strict) session_options.observer = &observer;
    TRY_ASSIGN(runtime::host::Session session,
               runtime::host::Session::open(talpa::Bytes(compiled.pte), "compiled", session_options));
    observer.watch(session.method());
    TRY(check_hazards(session.method()));
    for (std::uint32_t i = 0; i < inputs.size(); ++i) TRY(session.set_input(i, inputs[i]));
    TRY(session.run());
    RunResult result;
    result.report = std::move(compiled.report);
    result.pte_bytes = compiled.pte.size();
    for (std::uint32_t i = 0; i < session.output_count(); ++i) {
        TRY_ASSIGN(const talpa::Bytes bytes, session.output_bytes(i));
        result.outputs.emplace_back(bytes.begin(), bytes.end());
    }
    return result;
}

/// Stored numbers as bytes of their type, and back.
inline std::vector<std::uint8_t> to_bytes(const std::vector<std::int64_t>& numbers, DType type) {
    std::vector<std::uint8_t> bytes;
    for (const std::int64_t n : numbers)
        for (std::size_t b = 0; b < dtype_size(type); ++b) bytes.push_back(static_cast<std::uint8_t>(n >> (8 * b)));
    return bytes;
}
inline std::vector<std::int64_t> to_numbers(const std::vector<std::uint8_t>& bytes, DType type) {
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < bytes.size(); i += dtype_size(type))
        numbers.push_back(type == DType::Int16   ? static_cast<std::int16_t>(bytes[i] | bytes[i + 1] << 8)
                          : type == DType::UInt8 ? std::int64_t{bytes[i]}
                                                 : std::int64_t{static_cast<std::int8_t>(bytes[i])});
    return numbers;
}

}  // namespace talpa::compiler::testing
