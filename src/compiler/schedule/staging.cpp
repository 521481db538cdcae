#include "compiler/schedule/staging.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "compiler/schedule/filters.h"
#include "compiler/schedule/maps.h"

namespace talpa::compiler {
namespace {

bool is_dense(const View& v) {
    return (v.width == 1 || v.stride_x == std::int64_t{v.depth}) &&
           (v.height == 1 || v.stride_y == std::int64_t{v.depth} * v.width);
}

class Stager {
  public:
    Stager(Network& n, const Target& target, BlockChooser& chooser) : n_(n), target_(target), chooser_(chooser) {}

    void run() {
        // Steps by tensor of the outside that would gain.
        std::vector<Step> steps;
        steps.reserve(n_.steps.size());
        std::vector<std::int64_t> gain(n_.tensors.size());
        for (const Step& s : n_.steps)
            for (const View* v : {&s.ifm, &s.ifm2, &s.ofm})
                if (v->tensor != kNoTensor && is_outside(v->tensor)) gain[v->tensor] += gain_of(s, v->tensor);
        std::map<TensorId, TensorId> outputs;
        std::map<TensorId, std::size_t> last_writer;
        for (std::size_t i = 0; i < n_.steps.size(); ++i) last_writer[n_.steps[i].ofm.tensor] = i;
        const std::size_t count = n_.steps.size();
        for (std::size_t i = 0; i < count; ++i) {
            Step s = n_.steps[i];
            for (View* v : {&s.ifm, &s.ifm2})
                if (v->tensor != kNoTensor && n_.tensors[v->tensor].role == Tensor::Role::Input &&
                    pays(v->tensor, gain))
                    stage_input(*v, s, steps);
            for (View* v : {&s.ifm, &s.ifm2, &s.ofm}) {
                if (v->tensor == kNoTensor || n_.tensors[v->tensor].role != Tensor::Role::Output) continue;
                if (!outputs.contains(v->tensor) && pays(v->tensor, gain)) outputs[v->tensor] = stand_in(v->tensor);
                if (outputs.contains(v->tensor)) v->tensor = outputs[v->tensor];
            }
            const TensorId written = n_.steps[i].ofm.tensor;
            steps.push_back(std::move(s));
            if (outputs.contains(written) && last_writer[written] == i) {
                Step copy;
                copy.op.kind = npu::OpKind::Dma;
                copy.node = steps.back().node;
                const TensorId from = outputs[written];
                copy.ifm = whole_of(from, n_.tensors[from], 0);
                copy.ofm = whole_of(written, n_.tensors[written], 0);
                steps.push_back(std::move(copy));
            }
        }
        n_.steps = std::move(steps);
    }

  private:
    [[nodiscard]] bool is_outside(TensorId t) const {
        return n_.tensors[t].role == Tensor::Role::Input || n_.tensors[t].role == Tensor::Role::Output;
    }
    // A copy takes its time too, but beside the kernels.
    [[nodiscard]] bool pays(TensorId t, const std::vector<std::int64_t>& gain) const {
        constexpr double kShareNotHidden = 0.6;
        const npu_model::MemoryTiming& dram = target_.config.timing(npu_model::MemoryArea::Dram);
        const double copy = static_cast<double>(n_.tensors[t].bytes()) / dram.bytes_per_cycle + dram.read_latency;
        return static_cast<double>(gain[t]) > copy * kShareNotHidden;
    }
    [[nodiscard]] TensorId stand_in(TensorId of) {
        Tensor t = n_.tensors[of];
        t.role = Tensor::Role::Internal;
        t.name += "/sram";
        n_.tensors.push_back(std::move(t));
        return static_cast<TensorId>(n_.tensors.size() - 1);
    }

    [[nodiscard]] std::int64_t gain_of(const Step& s, TensorId tensor) {
        std::vector<Placement> places(n_.tensors.size());
        for (std::size_t t = 0; t < places.size(); ++t)
            places[t].region = n_.tensors[t].role == Tensor::Role::Constant ? 0 : target_.fast_region();
        const auto cycles = [&](std::uint8_t region) {
            places[tensor].region = region;
            npu::Operation op = rows_of_step(n_, places, s, 0, s.ofm.height);
            op.cores = target_.hardware->cores;
            if (s.filter) {
                op.weights[0].size = estimated_weight_bytes(s);
                op.scales[0].size = record_bytes(s);
            }
            return static_cast<std::int64_t>(chooser_.choose(op).inner_cycles);
        };
        return cycles(1) - cycles(target_.fast_region());
    }

    void stage_input(View& v, const Step& reader, std::vector<Step>& steps) {
        const TensorId input = v.tensor;
        // The part that is read if it is one run of bytes, else the whole.
        View part = is_dense(v) ? v : whole_of(input, n_.tensors[input], 0);
        part.zero_point = 0;
        const auto key = std::tuple(input, part.offset, part.height, part.width, part.depth);
        auto found = staged_.find(key);
        if (found == staged_.end()) {
            const TensorId copy = stand_in(input);
            Tensor& t = n_.tensors[copy];
            t.height = part.height;
            t.width = part.width;
            t.depth = part.depth;
            Step dma;
            dma.op.kind = npu::OpKind::Dma;
            dma.node = reader.node;
            dma.ifm = part;
            dma.ofm = whole_of(copy, t, 0);
            steps.push_back(std::move(dma));
            found = staged_.emplace(key, copy).first;
        }
        const TensorId copy = found->second;
        v.offset -= part.offset;
        v.tensor = copy;
    }

    Network& n_;
    const Target& target_;
    BlockChooser& chooser_;
    std::map<std::tuple<TensorId, std::int64_t, std::uint32_t, std::uint32_t, std::uint32_t>, TensorId> staged_;
};

}  // namespace

void stage_io(Network& network, const Target& target, BlockChooser& chooser) {
    if (target.mode != MemoryMode::DedicatedSram) return;
    Stager(network, target, chooser).run();
}

}  // namespace talpa::compiler
