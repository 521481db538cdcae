#include "compiler/schedule/long_rows.h"

#include <map>
#include <tuple>
#include <vector>

#include "compiler/graph/npu_limits.h"
#include "compiler/schedule/maps.h"

namespace talpa::compiler {
namespace {

bool is_whole(const Tensor& t, const View& v) {
    return v.offset == 0 && v.height == t.height && v.width == t.width && v.depth == t.depth &&
           (v.width == 1 || v.stride_x == std::int64_t{v.depth}) &&
           (v.height == 1 || v.stride_y == std::int64_t{v.depth} * v.width);
}

class Lengthener {
  public:
    Lengthener(Network& n, const Target& target, BlockChooser& chooser)
        : n_(n), target_(target), chooser_(chooser), any_shape_(n.tensors.size()) {}

    void run() {
        for (std::size_t i = 0; i < n_.tensors.size(); ++i)
            any_shape_[i] = n_.tensors[i].role != Tensor::Role::Constant;
        for (bool changed = true; changed;) {
            changed = false;
            for (const Step& s : n_.steps) {
                if (takes_any_shape(s)) continue;
                for (const View* v : views(s)) {
                    changed = changed || any_shape_[v->tensor];
                    any_shape_[v->tensor] = false;
                }
            }
        }
        using Extent = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
        std::map<Extent, std::vector<Step*>> alike;
        for (Step& s : n_.steps)
            if (takes_any_shape(s)) alike[{s.ofm.height, s.ofm.width, s.ofm.depth}].push_back(&s);
        for (const auto& [extent, steps] : alike) {
            const auto [height, width, depth] = extent;
            const std::uint32_t row = width * depth;
            if (width == 1 || row > kMostInDimension) continue;
            std::uint32_t best = width;
            std::uint64_t least = cycles(steps);
            for (const std::uint32_t columns : {1u, 2u, 3u, 4u, 6u, 8u}) {
                if (row % columns != 0 || columns >= width) continue;
                reshape(steps, columns, row / columns);
                const std::uint64_t now = cycles(steps);
                if (now >= least) continue;
                least = now;
                best = columns;
            }
            reshape(steps, best, row / best);
        }
    }

  private:
    [[nodiscard]] static std::vector<const View*> views(const Step& s) {
        std::vector<const View*> list{&s.ifm, &s.ofm};
        if (s.ifm2.tensor != kNoTensor) list.push_back(&s.ifm2);
        return list;
    }
    [[nodiscard]] bool takes_any_shape(const Step& s) const {
        if (!npu::is_elementwise(s.op.kind)) return false;
        if (s.op.ifm2_broadcast_h || s.op.ifm2_broadcast_w || s.op.ifm2_broadcast_c) return false;
        for (const View* v : views(s)) {
            const Tensor& t = n_.tensors[v->tensor];
            if (!any_shape_[v->tensor] || !is_whole(t, *v) || v->height != s.ofm.height || v->width != s.ofm.width ||
                v->depth != s.ofm.depth)
                return false;
        }
        return true;
    }
    void reshape(const std::vector<Step*>& steps, std::uint32_t width, std::uint32_t depth) {
        for (Step* s : steps)
            for (View* v : {&s->ifm, &s->ifm2, &s->ofm}) {
                if (v->tensor == kNoTensor) continue;
                Tensor& t = n_.tensors[v->tensor];
                t.width = width;
                t.depth = depth;
                *v = whole_of(v->tensor, t, v->zero_point);
            }
    }
    [[nodiscard]] std::uint64_t cycles(const std::vector<Step*>& steps) {
        std::vector<Placement> places(n_.tensors.size());
        for (std::size_t i = 0; i < places.size(); ++i)
            places[i].region = n_.tensors[i].role == Tensor::Role::Internal ? target_.fast_region() : std::uint8_t{1};
        std::uint64_t sum = 0;
        for (const Step* s : steps) {
            npu::Operation op = rows_of_step(n_, places, *s, 0, s->ofm.height);
            op.cores = target_.hardware->cores;
            const Block& block = chooser_.choose(op);
            if (block.height == 0) return UINT64_MAX;  // none fits
            sum += block.inner_cycles;
        }
        return sum;
    }

    Network& n_;
    const Target& target_;
    BlockChooser& chooser_;
    std::vector<bool> any_shape_;
};

}  // namespace

void lengthen_rows(Network& network, const Target& target, BlockChooser& chooser) {
    Lengthener(network, target, chooser).run();
}

}  // namespace talpa::compiler
