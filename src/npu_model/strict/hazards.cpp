#include "npu_model/strict/hazards.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "npu/registers_used.h"
#include "npu/validate.h"
#include "npu_model/strict/block_dependency.h"
#include "npu_model/strict/footprint.h"

namespace talpa::npu_model {

using npu::Extent;
using npu::Operation;
using npu::OpKind;

namespace {

// Is each element written where the same one was read?
bool same_elements(const npu::FeatureMap& in, const npu::FeatureMap& out) {
    const auto tiled = [](const npu::FeatureMap& m) { return m.width0 < m.width || m.height0 < m.height; };
    const bool at_one_place = tiled(in) || tiled(out) ? in.base == out.base && in.width0 == out.width0 &&
                                                            in.height0 == out.height0 && in.height1 == out.height1
                                                      : in.base[0] == out.base[0];
    return at_one_place && in.layout == out.layout && in.type.bytes == out.type.bytes && in.height == out.height &&
           in.width == out.width && in.depth == out.depth && (in.height == 1 || in.stride_y == out.stride_y) &&
           (in.layout == npu::Layout::Nhcwb16 || in.width == 1 || in.stride_x == out.stride_x) &&
           (in.layout == npu::Layout::Nhwc || in.depth <= 16 || in.stride_c == out.stride_c);
}

// Does each element depend on the one at the same place only? A pool of one position does, and is how maps are
// rescaled.
bool is_element_by_element(const Operation& op) {
    const bool pools = op.kind == OpKind::MaxPool || op.kind == OpKind::AvgPool;
    return npu::is_elementwise(op.kind) || (pools && op.kernel.height == 1 && op.kernel.width == 1);
}

// An operation that may still be running.
struct InFlight {
    Operation op;
    std::vector<Touch> touches;
};

// Issued operations of one kind, oldest first; they finish in order.
class Queue {
  public:
    explicit Queue(unsigned depth) : depth_(depth) {}
    /// To issue one more, all but depth - 1 must have finished.
    void make_room() { wait(depth_ - 1); }
    void issue(InFlight f) { running_.push_back(std::move(f)); }
    void wait(std::size_t at_most) {
        while (running_.size() > at_most) running_.pop_front();
    }
    [[nodiscard]] const std::deque<InFlight>& running() const { return running_; }

  private:
    std::size_t depth_;
    std::deque<InFlight> running_;
};

std::string place(unsigned space, Extent e) {
    return space == kSharedRam ? fmt::format("{:#x}..{:#x} of the shared RAM", e.begin, e.end)
                               : fmt::format("{:#x}..{:#x} of region {}", e.begin, e.end, space);
}

class Checker {
  public:
    Checker(const HazardOptions& options)
        : options_(options), hardware_(*options.hardware), kernels_(npu::kMaxQueuedKernels), dmas_(hardware_.max_dmas) {
        if (!options.initialised) return;
        written_[0].add({0, std::int64_t{1} << 40});
        for (const InitialisedRange& r : *options.initialised)
            written_[r.region].add(
                {static_cast<std::int64_t>(r.range.offset), static_cast<std::int64_t>(r.range.offset + r.range.size)});
    }

    [[nodiscard]] bool full() const { return found_.size() >= options_.at_most; }
    [[nodiscard]] std::vector<Hazard> take() {
        if (options_.spent != nullptr) *options_.spent = options_.effort - effort_;
        return std::move(found_);
    }

    void check(const Operation& op, const npu::RegisterState& registers) {
        check_registers(op, registers);
        if (const auto legal = npu::check(op, hardware_); !legal)
            report({Hazard::Kind::IllegalOperation, op.offset_bytes, host::Error(legal.error()).message});
        if (op.kind == OpKind::DmaWait) dmas_.wait(op.parameter & 0xF);
        if (op.kind == OpKind::KernelWait) kernels_.wait(op.parameter);
        if (op.kind == OpKind::Dma) start_dma(op);
        if (npu::is_kernel(op.kind)) start_kernel(op);
    }

  private:
    void report(Hazard h) {
        if (!full()) found_.push_back(std::move(h));
    }

    void check_registers(const Operation& op, const npu::RegisterState& registers) {
        const std::uint16_t uses = npu::uses_of(op);
        const auto unset = [&](std::uint16_t code, bool has_payload) {
            const auto name = *npu::command_name({0, code, has_payload, 0, 0});
            report({Hazard::Kind::UnsetRegister, op.offset_bytes,
                    fmt::format("command stream offset {}: {} uses {}, which the stream has not set", op.offset_bytes,
                                npu::op_kind_name(op.kind), name)});
        };
        for (const auto& r : npu::used_cmd0()) {
            if (r.code == npu::Cmd0::PARALLEL_MODE && hardware_.product == npu::Product::EthosU55) continue;
            if ((r.uses & uses) == r.uses && !registers.written(r.code))
                unset(static_cast<std::uint16_t>(r.code), false);
        }
        for (const auto& r : npu::used_cmd1())
            if ((r.uses & uses) == r.uses && !registers.written(r.code))
                unset(static_cast<std::uint16_t>(r.code), true);
    }

    // Two operations that may run at once: neither may write what the other reads or writes.
    void compare(const InFlight& now, const InFlight& earlier, Hazard::Kind kind, const char* remedy) {
        for (const Touch& a : now.touches)
            for (const Touch& b : earlier.touches) {
                if (!a.access.is_write && !b.access.is_write) continue;
                const auto common = common_bytes(a, b, effort_);
                if (!common) continue;
                report(
                    {kind, now.op.offset_bytes,
                     fmt::format("command stream offset {}: {} {} its {} at {}, where {} at offset {} may still {} its "
                                 "{}: {} is missing",
                                 now.op.offset_bytes, npu::op_kind_name(now.op.kind),
                                 a.access.is_write ? "writes" : "reads", npu::operand_name(a.access.operand),
                                 place(a.space, *common), npu::op_kind_name(earlier.op.kind), earlier.op.offset_bytes,
                                 b.access.is_write ? "write" : "read", npu::operand_name(b.access.operand), remedy)});
                return;
            }
    }

    void start_dma(const Operation& op) {
        dmas_.make_room();
        InFlight now{op, footprint(op, hardware_)};
        for (const InFlight& kernel : kernels_.running())
            compare(now, kernel, Hazard::Kind::MissingKernelWait, "KERNEL_WAIT");
        for (const InFlight& dma : dmas_.running()) compare(now, dma, Hazard::Kind::MissingDmaWait, "DMA_WAIT");
        check_reads(now);
        note_writes(now);
        dmas_.issue(std::move(now));
    }

    void start_kernel(const Operation& op) {
        kernels_.make_room();
        InFlight now{op, footprint(op, hardware_)};
        for (const InFlight& dma : dmas_.running()) compare(now, dma, Hazard::Kind::MissingDmaWait, "DMA_WAIT");
        if (!kernels_.running().empty()) check_block_dependency(op, kernels_.running().back().op);
        check_own_overlap(now);
        check_reads(now);
        note_writes(now);
        kernels_.issue(std::move(now));
    }

    void check_block_dependency(const Operation& op, const Operation& previous) {
        const unsigned allowed = max_block_dependency(previous, op, hardware_, effort_);
        if (op.blockdep <= allowed) return;
        report({Hazard::Kind::BlockDependency, op.offset_bytes,
                fmt::format("command stream offset {}: {} starts with BLOCKDEP {} while {} at offset {} computes its "
                            "input: at most {} is safe",
                            op.offset_bytes, npu::op_kind_name(op.kind), op.blockdep, npu::op_kind_name(previous.kind),
                            previous.offset_bytes, allowed)});
    }

    // Blocks are written while later ones are still to be read.
    void check_own_overlap(const InFlight& now) {
        for (const Touch& read : now.touches) {
            const bool second = read.access.operand == npu::Operand::Ifm2;
            if (read.access.is_write || (!second && read.access.operand != npu::Operand::Ifm)) continue;
            if (is_element_by_element(now.op) && same_elements(second ? now.op.ifm2 : now.op.ifm, now.op.ofm)) continue;
            for (const Touch& written : now.touches) {
                if (written.access.operand != npu::Operand::Ofm) continue;
                const auto common = common_bytes(read, written, effort_);
                if (!common) continue;
                report({Hazard::Kind::OverlapsItself, now.op.offset_bytes,
                        fmt::format("command stream offset {}: {} writes its OFM over its own {} at {}, otherwise than "
                                    "element on element",
                                    now.op.offset_bytes, npu::op_kind_name(now.op.kind),
                                    npu::operand_name(read.access.operand), place(read.space, *common))});
                return;
            }
        }
    }

    void check_reads(const InFlight& now) {
        if (!options_.initialised) return;
        for (const Touch& t : now.touches) {
            if (t.access.is_write) continue;
            const auto gap = first_gap(t);
            if (!gap) continue;
            report({Hazard::Kind::ReadBeforeWrite, now.op.offset_bytes,
                    fmt::format("command stream offset {}: {} reads its {} at {}, which nobody has written",
                                now.op.offset_bytes, npu::op_kind_name(now.op.kind),
                                npu::operand_name(t.access.operand), place(t.space, *gap))});
            return;
        }
    }

    std::optional<Extent> first_gap(const Touch& t) {
        std::optional<Extent> gap;
        if (!spend(effort_, t.box.runs())) return written_[t.space].first_gap({t.hull.begin, t.hull.begin + t.box.run});
        t.box.for_each_run([&](Extent e) {
            if (!gap) gap = written_[t.space].first_gap(e);
        });
        return gap;
    }

    void note_writes(const InFlight& now) {
        if (!options_.initialised) return;
        constexpr std::size_t kManyIntervals = 1 << 20;
        bool uses_lut = false;
        for (const Touch& t : now.touches) {
            if (t.access.operand == npu::Operand::Lut) uses_lut = true;
            if (!t.access.is_write) continue;
            if (written_[t.space].size() > kManyIntervals || !spend(effort_, t.box.runs()))
                written_[t.space].add(t.hull);
            else
                t.box.for_each_run([&](Extent e) { written_[t.space].add(e); });
        }
        // Without reserved banks the accumulators of any other operation destroy the tables (section 6.2).
        if (npu::is_kernel(now.op.kind) && !uses_lut && hardware_.reserved_end_banks == 0)
            written_[kSharedRam].remove({0, hardware_.shram_banks * std::int64_t{1024}});
    }

    const HazardOptions& options_;
    const npu::Hardware& hardware_;
    Effort effort_ = options_.effort;
    Queue kernels_, dmas_;
    std::array<IntervalSet, npu::kRegionCount + 1> written_;
    std::vector<Hazard> found_;
};

}  // namespace

host::Result<std::vector<Hazard>> find_hazards(npu::Words stream, const HazardOptions& options) {
    Checker checker(options);
    npu::Decoder decoder{stream};
    while (true) {
        TRY_ASSIGN(const auto op, decoder.next());
        if (!op || checker.full()) return checker.take();
        checker.check(*op, decoder.registers());
    }
}

}  // namespace talpa::npu_model
