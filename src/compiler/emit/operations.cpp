#include "compiler/emit/operations.h"

#include <algorithm>
#include <deque>

#include "compiler/emit/dependencies.h"
#include "compiler/schedule/maps.h"
#include "npu/encoder.h"
#include "npu/host/vector_sink.h"

namespace talpa::compiler {
namespace {

npu::Operation control(npu::OpKind kind, std::uint16_t parameter) {
    npu::Operation op;
    op.kind = kind;
    op.parameter = parameter;
    return op;
}

npu::Operation copy_to(std::uint8_t source_region, std::uint64_t source, std::uint8_t region, bool internal,
                       std::uint64_t destination, std::uint64_t bytes) {
    npu::Operation op = control(npu::OpKind::Dma, 0);
    op.dma.src_region = source_region;
    op.dma.src = source;
    op.dma.dst_region = internal ? 3 : region;
    op.dma.dst_internal = internal;
    op.dma.dst = destination;
    op.dma.length = bytes;
    return op;
}

// Issues operations with the waits that they need.
class Issuer {
  public:
    explicit Issuer(const npu::Hardware& hw) : hw_(hw) {}

    void kernel(npu::Operation op, std::int32_t step, std::uint32_t first_row) {
        wait_for(dmas_, op, npu::OpKind::DmaWait);
        op.blockdep = 0;
        if (!kernels_.empty()) op.blockdep = static_cast<std::uint8_t>(block_dependency(kernels_.back(), op, hw_));
        out_.push_back({op, step, first_row});
        kernels_.push_back(op);
        while (kernels_.size() > npu::kMaxQueuedKernels) kernels_.pop_front();
    }
    void dma(const npu::Operation& op, std::int32_t step) {
        wait_for(kernels_, op, npu::OpKind::KernelWait);
        wait_for(dmas_, op, npu::OpKind::DmaWait);
        out_.push_back({op, step});
        dmas_.push_back(op);
        while (dmas_.size() > hw_.max_dmas) dmas_.pop_front();
    }
    std::vector<EmittedOperation> finish() {
        if (!dmas_.empty()) out_.push_back({control(npu::OpKind::DmaWait, 0), -1});
        constexpr std::uint16_t kInterruptMask = 0xFFFF;
        out_.push_back({control(npu::OpKind::Stop, kInterruptMask), -1});
        return std::move(out_);
    }

  private:
    // All up to the last one that conflicts must have ended.
    void wait_for(std::deque<npu::Operation>& running, const npu::Operation& op, npu::OpKind kind) {
        for (std::size_t i = running.size(); i-- > 0;) {
            if (!conflict(op, running[i], hw_)) continue;
            const std::size_t may_run = running.size() - 1 - i;
            out_.push_back({control(kind, static_cast<std::uint16_t>(may_run)), -1});
            while (running.size() > may_run) running.pop_front();
            return;
        }
    }

    const npu::Hardware& hw_;
    std::vector<EmittedOperation> out_;
    std::deque<npu::Operation> kernels_, dmas_;
};

// Rows from a tensor to another of which either may be a ring: cut where one begins anew.
void copy_rows(Issuer& issue, const npu::Operation& op, std::int32_t owner) {
    const std::uint64_t row = op.dma.length / op.ofm.height;
    const auto at = [&](const npu::FeatureMap& fm, std::uint32_t y) {
        return y < fm.height0 ? fm.base[0] + y * row : fm.base[2] + (y - fm.height0) * row;
    };
    for (std::uint32_t y = 0; y < op.ofm.height;) {
        std::uint32_t end = op.ofm.height;
        for (const std::uint32_t cut : {op.ifm.height0, op.ofm.height0})
            if (y < cut) end = std::min(end, cut);
        npu::Operation part = control(npu::OpKind::Dma, 0);
        part.dma = op.dma;
        part.dma.src = at(op.ifm, y);
        part.dma.dst = at(op.ofm, y);
        part.dma.length = (end - y) * row;
        issue.dma(part, owner);
        y = end;
    }
}

}  // namespace

std::vector<EmittedOperation> emit_operations(const Plan& plan, const Target& target) {
    const npu::Hardware& hw = *target.hardware;
    Issuer issue(hw);
    for (const Action& a : plan.actions) {
        const Step& step = plan.network.steps[a.step];
        const auto owner = static_cast<std::int32_t>(a.step);
        const EncodedFilter& f = plan.filters[a.step];
        switch (a.kind) {
            case Action::Kind::LoadTable:
                issue.dma(copy_to(0, plan.tables[a.step], 0, true,
                                  static_cast<std::uint64_t>(hw.lut_base()) + 256u * a.lut_slot, step.table->size()),
                          owner);
                break;
            case Action::Kind::LoadWeights:
                issue.dma(copy_to(0, a.constant_offset, target.fast_region(), false, a.address, a.bytes), owner);
                break;
            case Action::Kind::Run: {
                npu::Operation op = rows_of_step(plan.network, plan.tensors, step, a.first_row, a.end_row);
                if (op.kind == npu::OpKind::Dma) {
                    copy_rows(issue, op, owner);
                    break;
                }
                op.cores = hw.cores;
                op.activation.lut_slot = a.lut_slot;
                if (step.filter) {
                    op.weight_region = op.scale_region = f.region;
                    for (unsigned core = 0; core < npu::kMaxCores; ++core) {
                        op.weights[core] = {f.address + f.weights[core].offset, f.weights[core].size};
                        op.scales[core] = {f.address + f.scales[core].offset, f.scales[core].size};
                    }
                }
                set_block(op, a.block, hw);
                issue.kernel(op, owner, a.first_row);
                break;
            }
        }
    }
    return issue.finish();
}

host::Result<EncodedStream> encode_operations(const std::vector<EmittedOperation>& operations, const Target& target) {
    npu::VectorSink sink;
    npu::StreamWriter writer(sink, target.hardware->product);
    EncodedStream stream;
    for (const EmittedOperation& e : operations) {
        TRY(writer.emit(e.op));
        stream.offsets.push_back(writer.size_bytes() - 4);
    }
    stream.words = std::move(sink.words);
    return stream;
}

}  // namespace talpa::compiler
