#include "inspect/network.h"

#include <algorithm>
#include <map>
#include <set>

#include "inspect/owners.h"
#include "npu/extent.h"

namespace talpa::inspect {
namespace {

using npu::OpKind;

// Boxes of many short runs (a transpose writes single bytes) are followed by their hull; so are all of a stream that
// would take more work than any real one, and in the end nothing more is looked at.
constexpr std::int64_t kMaxRuns = 1 << 14;
constexpr std::int64_t kRunBudget = 20'000'000, kVisitBudget = 100'000'000;

bool same_map(const npu::FeatureMap& a, const npu::FeatureMap& b) {
    return a.type == b.type && a.layout == b.layout && a.region == b.region && a.zero_point == b.zero_point &&
           a.width == b.width && a.stride_y == b.stride_y && a.stride_x == b.stride_x;
}

// A copy out of the constants: the compiler pads by filling borders so.
bool fills_border(const npu::Operation& op) {
    return op.kind == OpKind::AvgPool && op.ifm.region == 0 && op.kernel.height == 1 && op.kernel.width == 1;
}

// Could both be parts of one layer, by what they compute?
bool same_function(const npu::Operation& a, const npu::Operation& b) {
    if (a.kind != b.kind || !same_map(a.ifm, b.ifm) || !same_map(a.ofm, b.ofm)) return false;
    if (a.activation != b.activation || a.ofm_global_scale != b.ofm_global_scale || a.ofm_rounding != b.ofm_rounding)
        return false;
    if (a.ofm_global_scale && a.ofm_scale != b.ofm_scale) return false;
    if (npu::is_elementwise(a.kind))
        return same_map(a.ifm2, b.ifm2) && a.opa_scale == b.opa_scale && a.opb_scale == b.opb_scale &&
               a.ifm2_is_scalar == b.ifm2_is_scalar && a.ofm.depth == b.ofm.depth;
    return a.kernel == b.kernel && a.upscale == b.upscale;
}

class Analysis {
  public:
    Analysis(Network& network, bool fast_is_scratch) : net_(network), fast_is_scratch_(fast_is_scratch) {}

    void run(std::span<const Border> inputs, std::span<const Border> outputs) {
        net_.layer_of.assign(net_.operations.size(), kNone);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            const int range = new_range(TensorRange::Kind::Input, inputs[i].region, 0);
            net_.ranges[index(range)].input = static_cast<int>(i);
            const npu::Extent e{static_cast<std::int64_t>(inputs[i].offset),
                                static_cast<std::int64_t>(inputs[i].offset + inputs[i].size)};
            write(range, e);
        }
        for (std::size_t i = 0; i < net_.operations.size(); ++i) {
            if (net_.operations[i].kind == OpKind::Dma) copy(i);
            if (npu::is_kernel(net_.operations[i].kind)) kernel(i);
        }
        for (std::size_t i = 0; i < outputs.size(); ++i) output(i, outputs[i]);
        std::erase_if(net_.ranges, [](const TensorRange& r) { return r.end <= r.begin; });
        for (Layer& layer : net_.layers) finish(layer);
        for (TensorRange& r : net_.ranges) place(r);
    }

  private:
    static std::size_t index(int i) { return static_cast<std::size_t>(i); }
    [[nodiscard]] std::uint8_t region_of(const npu::Access& a) const {
        if (a.internal) return kShram;
        return a.region == 2 && fast_is_scratch_ ? 1 : a.region;
    }

    int new_range(TensorRange::Kind kind, std::uint8_t region, std::size_t op) {
        TensorRange r;
        r.kind = kind;
        r.region = region == 2 && fast_is_scratch_ ? 1 : region;
        r.first = r.last = op;
        net_.ranges.push_back(r);
        return static_cast<int>(net_.ranges.size()) - 1;
    }

    void write(int range, npu::Extent e) {
        TensorRange& r = net_.ranges[index(range)];
        const npu::Extent whole = npu::Extent{r.begin, r.end}.joined(e);
        r.begin = whole.begin;
        r.end = whole.end;
        owners_[r.region].assign(e, range);
    }

    template <typename Fn>
    void runs(const npu::Box& box, Fn&& fn) {
        const npu::Box merged = box.merged();
        if (merged.runs() > std::min(kMaxRuns, run_budget_)) return fn(merged.hull());
        run_budget_ -= merged.runs();
        merged.for_each_run(fn);
    }

    // Ranges that an operation reads, with the operand it reads them as.
    std::map<int, npu::Operand> reads_of(std::size_t i) {
        std::map<int, npu::Operand> found;
        npu::for_each_box(net_.operations[i], [&](const npu::Access& a, const npu::Box& box) {
            if (a.is_write) return;
            runs(box, [&](npu::Extent e) {
                if (visit_budget_ <= 0) return;
                owners_[region_of(a)].visit(e, [&](int range) {
                    --visit_budget_;
                    found.emplace(range, a.operand);
                });
            });
        });
        for (const auto& [range, operand] : found) net_.ranges[index(range)].last = i;
        return found;
    }

    // A DMA brings constants to a kernel that is still to come, or moves a feature map and is a layer itself.
    void copy(std::size_t i) {
        const npu::Dma& dma = net_.operations[i].dma;
        const bool constants = !dma.src_internal && dma.src_region == 0;
        const auto kind = dma.dst_internal ? TensorRange::Kind::Table
                          : constants      ? TensorRange::Kind::Weights
                                           : TensorRange::Kind::Copy;
        const auto sources = reads_of(i);
        const int range = new_range(kind, dma.dst_internal ? kShram : dma.dst_region, i);
        runs(npu::destination_box(dma), [&](npu::Extent e) { write(range, e); });
        if (kind == TensorRange::Kind::Copy) {
            const int layer = new_layer(i);
            net_.ranges[index(range)].layer = layer;
            link(layer, sources);
        }
    }

    int new_layer(std::size_t i) {
        net_.layers.emplace_back();
        net_.layers.back().name = operation_title(net_.operations[i]);
        states_.emplace_back();
        const int layer = static_cast<int>(net_.layers.size()) - 1;
        join(layer, i);
        return layer;
    }

    void join(int layer, std::size_t i) {
        net_.layers[index(layer)].operations.push_back(i);
        net_.layer_of[i] = layer;
        states_[index(layer)].last_op = i;
        states_[index(layer)].last_kernel = kernels_;
        // Layers in the order of their last kernel, latest first: as many as a cascade may have.
        constexpr std::size_t kCascade = 24;
        std::erase(recent_, layer);
        recent_.insert(recent_.begin(), layer);
        if (recent_.size() > kCascade) recent_.pop_back();
    }

    void link(int layer, const std::map<int, npu::Operand>& sources) {
        Layer& l = net_.layers[index(layer)];
        for (const auto& [range, operand] : sources) {
            TensorRange& r = net_.ranges[index(range)];
            if (r.kind == TensorRange::Kind::Weights || r.kind == TensorRange::Kind::Table) {
                if (r.layer != kNone) continue;
                r.layer = layer;
                l.operations.push_back(r.first);
                net_.layer_of[r.first] = layer;
                continue;
            }
            const int from = r.input != kNone ? -2 - r.input : r.layer;
            if (from != layer && from != kNone && std::ranges::find(l.inputs, from) == l.inputs.end())
                l.inputs.push_back(from);
        }
    }

    // Where the weights of a kernel come from in the constants: the DMA that brought them says so.
    [[nodiscard]] std::set<std::pair<std::uint64_t, std::uint64_t>> weight_sources(
        std::size_t i, const std::map<int, npu::Operand>& sources) const {
        const npu::Operation& op = net_.operations[i];
        std::set<std::pair<std::uint64_t, std::uint64_t>> found;
        if (!npu::has_weights(op.kind)) return found;
        for (const npu::Range& w : op.weights) {
            if (w.size == 0) continue;
            std::uint64_t at = w.offset;
            for (const auto& [range, operand] : sources) {
                const TensorRange& r = net_.ranges[index(range)];
                const npu::Dma& dma = net_.operations[r.first].dma;
                if (r.kind == TensorRange::Kind::Weights && w.offset >= dma.dst && w.offset < dma.dst + dma.length)
                    at = dma.src + (w.offset - dma.dst);
            }
            found.emplace(at, w.size);
        }
        return found;
    }

    void kernel(std::size_t i) {
        const auto sources = reads_of(i);
        const auto weights = weight_sources(i, sources);
        int layer = layer_to_join(i, sources, weights);
        if (layer == kNone) {
            layer = new_layer(i);
            states_[index(layer)].range = new_range(TensorRange::Kind::FeatureMap, net_.operations[i].ofm.region, i);
            net_.ranges[index(states_[index(layer)].range)].layer = layer;
        } else {
            join(layer, i);
        }
        link(layer, sources);
        State& state = states_[index(layer)];
        state.seen_before = false;
        for (const auto& w : weights)
            if (!state.weights.insert(w).second) state.seen_before = true;
        if (!state.seen_before && !weights.empty())
            net_.layers[index(layer)].raw_weight_bytes += raw_weight_bytes(net_.operations[i]);
        const int range = state.range;
        npu::for_each_box(net_.operations[i], [&](const npu::Access& a, const npu::Box& box) {
            if (a.is_write) runs(box, [&](npu::Extent e) { write(range, e); });
        });
        net_.ranges[index(range)].last = std::max(net_.ranges[index(range)].last, i);
        ++kernels_;
    }

    // A layer that this kernel continues: the same function, not fed by it, and either the next depth slice of the
    // kernel just before, or a stripe with the same weights not long after the last one.
    [[nodiscard]] int layer_to_join(std::size_t i, const std::map<int, npu::Operand>& sources,
                                    const std::set<std::pair<std::uint64_t, std::uint64_t>>& weights) const {
        const npu::Operation& op = net_.operations[i];
        for (const int l : recent_) {
            const State& state = states_[index(l)];
            if (state.range == kNone) continue;
            const npu::Operation& last = net_.operations[state.last_op];
            if (fills_border(op) && fills_border(last) && state.last_kernel + 1 == kernels_) return l;
            if (!same_function(op, last) || sources.contains(state.range)) continue;
            const bool next_to_it = state.last_kernel + 1 == kernels_;
            const bool same_weights =
                std::ranges::all_of(weights, [&](const auto& w) { return state.weights.contains(w); });
            const bool stripe = same_weights && op.ofm.depth == last.ofm.depth && op.ofm.base != last.ofm.base &&
                                (!weights.empty() || follows(op, last, next_to_it));
            const bool slice = next_to_it && !weights.empty() && !same_weights && op.ofm.height == last.ofm.height &&
                               (op.kind == OpKind::Depthwise || op.ifm.base == last.ifm.base);
            if (stripe || slice) return l;
        }
        return kNone;
    }

    // Without weights to tell by: the next rows of the same map on one side or the other, or the next copy of a
    // transpose.
    static bool follows(const npu::Operation& op, const npu::Operation& last, bool next_to_it) {
        if (npu_model::is_transposing_copy(op)) return next_to_it && op.ifm.base != last.ifm.base;
        const auto rows = [](const npu::FeatureMap& a, const npu::FeatureMap& b) {
            return static_cast<std::int64_t>(b.base[0]) ==
                   static_cast<std::int64_t>(a.base[0]) + std::int64_t{a.height} * a.stride_y;
        };
        return rows(last.ofm, op.ofm) || rows(last.ifm, op.ifm);
    }

    void output(std::size_t i, const Border& border) {
        std::set<int> layers;
        const std::uint8_t region = border.region == 2 && fast_is_scratch_ ? 1 : border.region;
        owners_[region & 7].visit(
            {static_cast<std::int64_t>(border.offset), static_cast<std::int64_t>(border.offset + border.size)},
            [&](int range) {
                TensorRange& r = net_.ranges[index(range)];
                r.output = static_cast<int>(i);
                r.last = net_.operations.size() - 1;
                if (r.layer != kNone) layers.insert(r.layer);
            });
        net_.outputs.emplace_back(layers.begin(), layers.end());
    }

    void finish(Layer& layer) {
        std::ranges::sort(layer.operations);
        const State& state = states_[static_cast<std::size_t>(&layer - net_.layers.data())];
        for (const auto& [offset, size] : state.weights) layer.weight_bytes += size;
        std::array<std::uint64_t, npu_model::kBounds> by_bound{};
        bool first = true;
        const npu::Operation* last = nullptr;
        for (const std::size_t i : layer.operations) {
            const npu::Operation& op = net_.operations[i];
            const npu_model::ScheduledCost& s = net_.cost.operations[i];
            layer.start = first ? s.start : std::min(layer.start, s.start);
            layer.end = std::max(layer.end, s.end);
            first = false;
            for (std::size_t area = 0; area < npu_model::kMemoryAreas; ++area)
                layer.traffic[area] += s.cost.traffic[area];
            if (!npu::is_kernel(op.kind)) continue;
            ++layer.kernels;
            layer.cycles += s.end - s.start + s.stall;
            layer.macs += s.cost.macs;
            by_bound[static_cast<std::size_t>(s.cost.bound)] += s.end - s.start;
            add_shape(layer, op, last);
            last = &op;
        }
        if (layer.kernels == 0) layer.cycles = layer.end - layer.start;
        layer.bound = layer.kernels == 0
                          ? npu_model::Bound::Dma
                          : static_cast<npu_model::Bound>(std::ranges::max_element(by_bound) - by_bound.begin());
    }

    // Slices add up in depth, stripes in height. Copies of a transpose or a border keep the shape of one.
    static void add_shape(Layer& layer, const npu::Operation& op, const npu::Operation* last) {
        if (last == nullptr) {
            layer.ifm_height = op.ifm.height, layer.ifm_width = op.ifm.width, layer.ifm_depth = op.ifm.depth;
            layer.ofm_height = op.ofm.height, layer.ofm_width = op.ofm.width, layer.ofm_depth = op.ofm.depth;
        } else if (npu_model::is_transposing_copy(op) || fills_border(op)) {
            return;
        } else if (npu::has_weights(op.kind) && op.ifm.base[0] == last->ifm.base[0] && op.weights != last->weights) {
            layer.ofm_depth += op.ofm.depth;
        } else if (op.kind == OpKind::Depthwise && op.weights != last->weights && op.ofm.height == last->ofm.height) {
            layer.ofm_depth += op.ofm.depth;
            layer.ifm_depth += op.ifm.depth;
        } else {
            layer.ofm_height += op.ofm.height;
            // What is read follows from the output; only the last stripe has padding below.
            const std::uint32_t grid =
                (layer.ofm_height - 1) * op.kernel.stride_y + op.kernel.dilated_height() - op.padding.bottom;
            const std::uint32_t factor = op.upscale == npu::Upscale::None ? 1 : 2;
            layer.ifm_height =
                npu::is_elementwise(op.kind) ? layer.ofm_height : (grid - std::min(grid, layer.padding_top)) / factor;
        }
        if (last == nullptr) layer.padding_top = op.padding.top;
    }

    void place(TensorRange& r) {
        r.from_cycle = r.kind == TensorRange::Kind::Input ? 0 : net_.cost.operations[r.first].start;
        r.to_cycle = r.output != kNone ? net_.cost.cycles_total
                                       : std::max(net_.cost.operations[r.last].end, net_.cost.operations[r.first].end);
    }

    struct State {
        int range = kNone;  // of its OFM
        std::size_t last_op = 0, last_kernel = 0;
        std::set<std::pair<std::uint64_t, std::uint64_t>> weights;
        bool seen_before = false;
    };
    Network& net_;
    bool fast_is_scratch_;
    std::array<Owners, 9> owners_;
    std::vector<State> states_;
    std::vector<int> recent_;
    std::int64_t run_budget_ = kRunBudget, visit_budget_ = kVisitBudget;
    std::size_t kernels_ = 0;
};

}  // namespace

const char* range_kind_name(TensorRange::Kind kind) {
    static constexpr const char* kNames[] = {"input", "feature map", "weights", "table", "copy"};
    return kNames[static_cast<std::size_t>(kind)];
}

Network analyse(std::vector<npu::Operation> operations, npu_model::NetworkCost cost, std::span<const Border> inputs,
                std::span<const Border> outputs, bool fast_is_scratch) {
    Network network;
    network.operations = std::move(operations);
    network.cost = std::move(cost);
    Analysis(network, fast_is_scratch).run(inputs, outputs);
    return network;
}

}  // namespace talpa::inspect
