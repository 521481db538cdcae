// A program on a host, ready to run: files are mapped, pools are allocated with exactly the bytes that the file asks
// for, and the method is loaded on a given NPU device. What the command line, the reports and the web application use.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host/error.h"
#include "npu/device.h"
#include "pte/metadata.h"
#include "pte/program.h"
#include "runtime/method.h"

namespace talpa::runtime::host {

struct SessionOptions {
    std::string method = "forward";
    std::vector<std::filesystem::path> data_files;  ///< .ptd
    OperatorTable operators;                        ///< of runtime/operators/all.h, as a rule
    npu::Device* device = nullptr;  ///< must outlive the session; null: load and measure, no run of delegates
    std::uint64_t instruction_budget = 10'000'000;
    Observer* observer = nullptr;
};

/// An input or output as its user sees it.
struct PortInfo {
    Value::Kind kind = Value::Kind::Tensor;
    ScalarType type = ScalarType::Float32;  ///< of tensors
    std::vector<std::int32_t> sizes;        ///< logical (NCHW) order; upper bounds of dynamic inputs
    std::vector<std::uint8_t> dim_order;
    bool is_dynamic = false;
    bool is_planned = true;
    std::size_t size_bytes = 0;
    std::int64_t integer = 0;                         ///< of Int and Bool
    double real = 0;                                  ///< of Double
    std::optional<pte::IoQuantization> quantization;  ///< what the program says about it

    [[nodiscard]] std::string describe() const;  ///< "int8 [1, 3, 224, 224]"
};

using Milliseconds = std::chrono::duration<double, std::milli>;
struct PhaseTimes {
    Milliseconds open{}, load{}, bind{}, set_inputs{},
        run{};  ///< the last run; set_inputs sums up since the run before
};

class Session {
  public:
    /// Errors carry the path and the method; OperatorMissing lists every missing operator with the instructions that
    /// call it.
    [[nodiscard]] static talpa::host::Result<Session> open(const std::filesystem::path& path,
                                                           const SessionOptions& options);
    /// The same for bytes that the caller keeps, 16-aligned and unchanged as long as the session; `name` is for
    /// messages.
    [[nodiscard]] static talpa::host::Result<Session> open(Bytes program, std::string name,
                                                           const SessionOptions& options);
    Session(Session&&) noexcept;
    Session& operator=(Session&&) noexcept;
    ~Session();

    [[nodiscard]] const pte::Program& program() const;
    [[nodiscard]] Method& method();
    [[nodiscard]] const MemoryNeed& need() const;
    [[nodiscard]] const PhaseTimes& times() const;

    [[nodiscard]] std::uint32_t input_count() const;
    [[nodiscard]] std::uint32_t output_count() const;
    [[nodiscard]] PortInfo input(std::uint32_t i) const;
    [[nodiscard]] PortInfo output(std::uint32_t i) const;  ///< sizes of dynamic outputs are those of the last run

    /// Bytes in stored order. `sizes` are for dynamic inputs that use less than their upper bound. An unplanned input
    /// is used in place: its bytes must stay until the run is over.
    [[nodiscard]] talpa::host::Result<void> set_input(std::uint32_t i, Bytes bytes,
                                                      std::span<const std::int32_t> sizes = {});
    /// Runs once; all tensor inputs must have been set since the last run.
    [[nodiscard]] talpa::host::Result<void> run();
    /// Bytes of a tensor output; valid until the next `set_input` or `run`.
    [[nodiscard]] talpa::host::Result<Bytes> output_bytes(std::uint32_t i) const;
    /// Zeroes the arenas and brings mutable buffers back to their initial values.
    [[nodiscard]] talpa::host::Result<void> reset();

  private:
    struct State;
    explicit Session(std::unique_ptr<State> state);
    [[nodiscard]] static talpa::host::Result<Session> finish(std::unique_ptr<State> state,
                                                             const SessionOptions& options);
    std::unique_ptr<State> state_;
};

/// What a program's method needs, from the files alone.
[[nodiscard]] talpa::host::Result<MemoryNeed> memory_need(const pte::Program& program, const SessionOptions& options,
                                                          std::span<const pte::DataFile> data_files = {});

}  // namespace talpa::runtime::host
