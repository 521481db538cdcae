#include "npu_model/model.h"

#include <algorithm>
#include <optional>

#include "npu/decoder.h"
#include "npu/extent.h"
#include "npu/hardware.h"
#include "npu/validate.h"
#include "npu_model/dma.h"
#include "npu_model/fast/plan_cache.h"
#include "npu_model/kernels.h"
#include "npu_model/legality.h"
#include "npu_model/prepared.h"
#include "npu_model/shadow.h"
#include "npu_model/work.h"

namespace talpa::npu_model {

namespace {

using npu::Operation;
using npu::OpKind;

// Sentences by npu::Operand. X(text)
constexpr const char* kOutside[] = {
#define X(what) "command stream offset {}: " what " of {} touches byte {} of region {}, which has {} bytes"
    X("the IFM"),           X("the IFM2"),   X("the OFM"),         X("the weights"),
    X("the scale records"), X("the source"), X("the destination"), X("the table"),
#undef X
};

}  // namespace

/// One job under way.
class Model::Run {
  public:
    Run(Model& model, const npu::Job& job, const npu::Hardware& hardware)
        : model_(model), job_(job), hardware_(hardware) {
        if (model.options_.checks == DataChecks::Strict) shadow_.emplace(job, model.shram_.size(), model.initialised_);
    }

    Result<npu::JobStats> run() {
        if (!shadow_)
            if (PreparedJob* const known = model_.prepared_->find(job_)) return again(*known);
        if (!shadow_ && job_.constant_id != 0) prepare_.emplace().job = job_;
        npu::Decoder decoder(job_.stream);
        for (;;) {
            TRY_ASSIGN(const auto op, decoder.next());
            if (!op) break;
            TRY(step(*op));
        }
        const npu::JobStats stats{model_.cycles_.of(job_.stream)};
        if (prepare_) {
            prepare_->stats = stats;
            model_.prepared_->add(std::move(*prepare_));
        }
        return stats;
    }

  private:
    // Everything was checked in an earlier run, for regions of these sizes.
    Result<npu::JobStats> again(PreparedJob& known) {
        for (PreparedStep& step : known.steps) {
            model_.findings_.start_operation(step.op);
            if (step.op.kind == OpKind::Dma)
                dma(step.op);
            else
                TRY(compute(step.op, step.filter.get(), &step.plan));
            if (model_.options_.after_operation) model_.options_.after_operation(step.op, job_);
        }
        return known.stats;
    }

    void dma(const Operation& op) const {
        run_dma(op.dma, memory(op.dma.src_internal, op.dma.src_region), memory(op.dma.dst_internal, op.dma.dst_region));
    }

    // The step that is to be kept for `op`; null when none is kept.
    PreparedStep* keep(const Operation& op, const std::shared_ptr<const Filter>& filter) {
        if (!prepare_) return nullptr;
        if (filter)
            prepare_->filter_bytes += 2 * filter->weights.size() * sizeof(std::int16_t);  // the packed form is as large
        if (prepare_->steps.size() >= PreparedJobs::kMaxSteps ||
            prepare_->filter_bytes > model_.options_.filter_cache_bytes) {
            prepare_.reset();
            return nullptr;
        }
        return &prepare_->steps.emplace_back(op, filter, fast::PlanSlot{});
    }

    Result<void> step(const Operation& op) {
        if (op.kind != OpKind::Dma && !npu::is_kernel(op.kind)) return {};  // waits and masks: nothing to compute
        TRY(check_legal(op, hardware_));
        if (shadow_) TRY(npu::check(op, hardware_));
        TRY(check_bounds(op));
        TRY(charge(op));
        model_.findings_.start_operation(op);
        if (shadow_) {
            shadow_->before(op, hardware_.lut_base(), model_.findings_);
            TRY(no_findings());
        }
        if (op.kind == OpKind::Dma) {
            keep(op, {});
            dma(op);
        } else {
            TRY(kernel(op));
        }
        if (shadow_) {
            shadow_->after(op);
            TRY(no_findings());
        }
        if (model_.options_.after_operation) model_.options_.after_operation(op, job_);
        return {};
    }

    [[nodiscard]] std::uint8_t* memory(bool internal, std::uint8_t region) const {
        return internal ? model_.shram_.data() : job_.regions[region].data;
    }

    // Every byte of every access, before any of them is touched.
    Result<void> check_bounds(const Operation& op) const {
        std::optional<Error> error;
        npu::for_each_access(
            op,
            [&](const npu::Access& access, npu::Extent extent) {
                if (error) return;
                const npu::Region& region = job_.regions[access.region];
                const std::uint64_t size = access.internal          ? model_.shram_.size()
                                           : region.data != nullptr ? region.size
                                                                    : 0;
                if (access.is_write && !access.internal && access.region == 0) {
                    error = Error(ErrorCode::OutOfBounds,
                                  "command stream offset {}: {} writes to region 0, which holds the constants",
                                  op.offset_bytes, npu::op_kind_name(op.kind));
                } else if (extent.begin < 0 || static_cast<std::uint64_t>(extent.end) > size) {
                    const std::int64_t byte = extent.begin < 0 ? extent.begin : extent.end - 1;
                    error =
                        access.internal
                            ? Error(
                                  ErrorCode::OutOfBounds,
                                  "command stream offset {}: {} touches byte {} of the shared RAM, which has {} bytes",
                                  op.offset_bytes, npu::op_kind_name(op.kind), byte, size)
                            : Error(ErrorCode::OutOfBounds, kOutside[static_cast<std::size_t>(access.operand)],
                                    op.offset_bytes, npu::op_kind_name(op.kind), byte, access.region, size);
                }
            },
            hardware_.lut_base());
        if (error) return std::unexpected(*error);
        return {};
    }

    Result<void> charge(const Operation& op) {
        const std::uint64_t work = work_of(op), left = model_.options_.work_limit - work_;
        if (work > left)
            return fail(ErrorCode::OutOfResources,
                        "command stream offset {}: {} needs {} steps of work, {} of {} are left", op.offset_bytes,
                        npu::op_kind_name(op.kind), work, left, model_.options_.work_limit);
        work_ += work;
        return {};
    }

    Result<void> no_findings() const {
        if (model_.findings_.all().empty()) return {};
        const Finding& f = model_.findings_.all().front();
        if (f.kind == Finding::Kind::UninitialisedRead)
            return fail(ErrorCode::NpuFault,
                        "command stream offset {}: {} reads {} bytes that nobody wrote, the first at {} of region {}",
                        f.offset_bytes, npu::op_kind_name(f.op), f.count, f.first, f.region);
        return fail(ErrorCode::NpuFault, "command stream offset {}: {} has {} {}", f.offset_bytes,
                    npu::op_kind_name(f.op), f.count, finding_text(f.kind));
    }

    [[nodiscard]] Bytes bytes(std::uint8_t region, const npu::Range& range) const {
        if (range.size == 0) return {};
        return {job_.regions[region].data + range.offset, static_cast<std::size_t>(range.size)};
    }

    Result<std::shared_ptr<const Filter>> filter(const Operation& op) {
        FilterSource source;
        source.order = {.ofm_depth = op.ofm.depth,
                        .kernel_height = op.kernel.height,
                        .kernel_width = op.kernel.width,
                        .ifm_depth = op.ifm.depth,
                        .block_depth = op.block_depth,
                        .dilation_y = op.kernel.dilation_y,
                        .dilation_x = op.kernel.dilation_x,
                        .depthwise = op.kind == OpKind::Depthwise,
                        .part_kernel_first = op.kernel.part_kernel_first,
                        .ifm_16bit = op.ifm.type.bytes == 2,
                        .decompose_4x4 = op.kernel.decompose_4x4,
                        .ublock_depth = hardware_.ublock_depth,
                        .cores = op.cores};
        source.scales_globally = op.ofm_global_scale;
        for (unsigned core = 0; core < op.cores; ++core) {
            source.weights[core] = bytes(op.weight_region, op.weights[core]);
            if (!op.ofm_global_scale) source.records[core] = bytes(op.scale_region, op.scales[core]);
        }
        return model_.cache_.get(source, op.offset_bytes);
    }

    Result<void> kernel(const Operation& op) {
        std::shared_ptr<const Filter> filter_now;
        if (npu::has_weights(op.kind)) {
            auto found = filter(op);
            if (!found) return std::unexpected(located(op, found.error()));
            filter_now = std::move(*found);
        }
        PreparedStep* const kept = keep(op, filter_now);
        return compute(op, filter_now.get(), kept != nullptr ? &kept->plan : nullptr);
    }

    Result<void> compute(const Operation& op, const Filter* filter_now, fast::PlanSlot* plan) {
        std::span<const std::uint8_t> lut;
        if (op.activation.function == npu::Activation::Function::Lut)
            lut = std::span(model_.shram_)
                      .subspan(
                          static_cast<std::size_t>(hardware_.lut_base() + npu::kLutSlotBytes * op.activation.lut_slot),
                          static_cast<std::size_t>(npu::lut_bytes(op)));
        const Context context{op,           job_.regions,     filter_now,          lut,
                              model_.pool_, model_.findings_, model_.plans_.get(), plan};
        if (model_.options_.kernels == Kernels::Fast && !shadow_ && fast::try_run(context)) return {};
        return run_reference(context);
    }

    // Errors about a filter know the weight stream, not the operation: this puts the operation in front.
    static Error located(const Operation& op, const Error& e) {
        const char* name = npu::op_kind_name(op.kind);
        const auto& a = e.args;
        if (e.code == ErrorCode::WeightStream && e.arg_count == 2)
            return {
                e.code, "command stream offset {}: {}, bit {} of its weight stream: {}", op.offset_bytes, name, a[0],
                a[1]};
        if (e.code == ErrorCode::WeightStream && e.arg_count == 3)
            return {e.code,
                    "command stream offset {}: {}, bit {} of its weight stream: its {} bytes cannot hold {} weights",
                    op.offset_bytes,
                    name,
                    a[0],
                    a[1],
                    a[2]};
        if (e.code == ErrorCode::WeightStream && e.arg_count == 4)
            return {e.code,
                    "command stream offset {}: {}, bit {} of its weight stream: it holds {} {} weights, {} are needed",
                    op.offset_bytes,
                    name,
                    a[0],
                    a[1],
                    a[2],
                    a[3]};
        if (e.code == ErrorCode::CommandStream)
            return {e.code,
                    "command stream offset {}: {} with SCALE_LENGTH {}, its {} channels need {}",
                    op.offset_bytes,
                    name,
                    a[0],
                    a[1],
                    a[2]};
        return {e.code,
                "command stream offset {}: {} with a filter bank of {} weights, at most {} are supported",
                op.offset_bytes,
                name,
                a[0],
                a[1]};
    }

    Model& model_;
    const npu::Job& job_;
    const npu::Hardware& hardware_;
    std::optional<Shadow> shadow_;
    std::optional<PreparedJob> prepare_;  // what of this run may be kept
    std::uint64_t work_ = 0;
};

namespace {

// The part that is modelled, in the system that is asked for.
SystemConfig system_of(const ModelOptions& options) {
    const NpuConfig* npu = npu_config_of(options.config);
    if (npu == nullptr) return options.system;
    return system_config(npu->hardware->name, options.system.profile, options.system.mode).value_or(options.system);
}

}  // namespace

Model::Model(const ModelOptions& options)
    : options_(options),
      cache_(options.filter_cache_bytes),
      pool_(options.threads),
      plans_(std::make_unique<fast::PlanCache>()),
      prepared_(std::make_unique<PreparedJobs>(options.filter_cache_bytes)),
      cycles_(system_of(options)) {}
Model::~Model() = default;

Result<npu::JobStats> Model::run(const npu::Job& job) {
    const npu::Hardware* hardware = npu::find_hardware(options_.config);
    if (hardware == nullptr)
        return fail(ErrorCode::NotSupported, "no Ethos-U has the CONFIG word {}", hex(options_.config));
    if (job.config != 0 && job.config != options_.config)
        return fail(ErrorCode::DelegateIncompatible, "the program was compiled for CONFIG {}, this is an {} with {}",
                    hex(job.config), hardware->name, hex(options_.config));
    findings_.clear();
    const std::size_t shram_bytes = std::size_t{hardware->shram_banks} * 1024;
    if (!options_.keeps_shared_ram || shram_.size() != shram_bytes) shram_.assign(shram_bytes, 0);
    return Run(*this, job, *hardware).run();
}

}  // namespace talpa::npu_model
