// The Ethos-U delegate: one payload of a program, checked at load, and its runs on an NPU device. Input tensors are
// copied into the scratch (region 1), outputs out of it; constants are used where they lie in the program. (pte-format,
// section 7)
#pragma once

#include <cstdint>
#include <span>

#include "base/core/error.h"
#include "npu/device.h"
#include "pte/data_file.h"
#include "pte/delegate_blob.h"
#include "pte/program.h"
#include "runtime/memory.h"
#include "runtime/tensor.h"

namespace talpa::runtime {

class EthosUDelegate {
  public:
    EthosUDelegate() = default;

    /// Everything that can be known before a run: blocks, container, configuration (when a device is given), and a scan
    /// of the whole stream, which yields the scratch sizes and refuses accesses outside the regions and writes to
    /// constants. `index` is the delegate's in the method, for messages.
    [[nodiscard]] static Result<EthosUDelegate> load(const pte::Program& program, const pte::DelegateView& delegate,
                                                     std::uint32_t index, pte::DataFiles data_files,
                                                     const npu::Device* device);

    [[nodiscard]] std::uint32_t argument_count() const { return inputs_.count() + outputs_.count(); }
    [[nodiscard]] const pte::IoTable& inputs() const { return inputs_; }
    [[nodiscard]] const pte::IoTable& outputs() const { return outputs_; }
    [[nodiscard]] npu::Words stream() const { return {stream_, stream_words_}; }
    [[nodiscard]] Bytes weights() const { return {weights_, weight_bytes_}; }
    [[nodiscard]] std::size_t scratch_bytes() const { return scratch_bytes_; }
    /// Of memory of its own; 0 when region 2 is not used or is the scratch itself.
    [[nodiscard]] std::size_t fast_scratch_bytes() const { return fast_scratch_bytes_; }
    /// Sram_Only and Shared_Sram programs: region 2 is region 1.
    [[nodiscard]] bool fast_scratch_is_scratch() const { return fast_is_scratch_; }
    [[nodiscard]] std::uint32_t config() const { return config_; }
    [[nodiscard]] std::uint32_t id() const { return id_; }

    /// Do the tensors of a call fit the records (V30; section 7.3)? `args` are inputs, then outputs.
    [[nodiscard]] Result<void> check_arguments(std::span<const Value> values, pte::Vector<std::int32_t> args) const;

    /// One run. The arguments must have passed `check_arguments` and have memory. Errors: the device's; NpuFault when
    /// it reports success but left an output untouched (V35). Returns the cycles that the device reports.
    [[nodiscard]] Result<std::uint64_t> run(npu::Device& device, std::span<const Value> values,
                                            pte::Vector<std::int32_t> args, Pool scratch, Pool fast_scratch) const;

    /// The job for a device: for `run`, and for tools that look into a run.
    [[nodiscard]] npu::Job job(Pool scratch, Pool fast_scratch) const;

  private:
    [[nodiscard]] Result<void> take_blocks(const pte::Program& program, const pte::DelegateView& delegate,
                                           pte::DataFiles data_files);
    [[nodiscard]] Result<void> measure(std::string_view memory_mode);
    [[nodiscard]] Result<std::uint64_t> run_once(npu::Device& device, std::span<const Value> values,
                                                 pte::Vector<std::int32_t> args, Pool scratch, Pool fast_scratch,
                                                 std::uint8_t salt) const;
    [[nodiscard]] std::uint8_t prior_byte(std::span<const Value> values, pte::Vector<std::int32_t> args,
                                          std::uint32_t at, std::uint8_t salt) const;
    [[nodiscard]] std::int32_t untouched_output(std::span<const Value> values, pte::Vector<std::int32_t> args,
                                                Pool scratch, std::uint8_t salt) const;

    // Pointers are padded, so that the method pool needs the same bytes on a host and on the M33.
    alignas(8) const std::uint32_t* stream_ = nullptr;
    alignas(8) const std::uint8_t* weights_ = nullptr;
    alignas(16) pte::IoTable inputs_;
    alignas(16) pte::IoTable outputs_;
    alignas(16) std::uint32_t stream_words_ = 0;
    std::uint32_t weight_bytes_ = 0;
    std::uint32_t scratch_bytes_ = 0;
    std::uint32_t fast_scratch_bytes_ = 0;
    std::uint32_t config_ = 0, id_ = 0;
    std::uint32_t index_ = 0;
    bool fast_is_scratch_ = false;
};
static_assert(sizeof(EthosUDelegate) == 80);

}  // namespace talpa::runtime
