// Kernels that move numbers without changing them.
#include <algorithm>

#include "compiler/floats/kernel.h"
#include "compiler/graph/infer.h"

namespace talpa::compiler {

std::vector<std::int64_t> broadcast_strides(const Shape& shape, const Shape& to) {
    const auto own = row_major_strides(shape);
    std::vector<std::int64_t> strides(to.size(), 0);
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (shape[i] != 1) strides[to.size() - shape.size() + i] = own[i];
    return strides;
}

namespace {
void read_strided(KernelCall& call, const std::vector<std::int64_t>& strides, std::int64_t offset) {
    for_each_strided(call.out_shape(), strides, offset, [&](std::int64_t i, std::int64_t from) {
        call.output[static_cast<std::size_t>(i)] = call.inputs[0][static_cast<std::size_t>(from)];
    });
}
}  // namespace

void copy(KernelCall& call) {
    std::ranges::copy(call.inputs[0], call.output.begin());
}

void permute(KernelCall& call) {
    const auto own = row_major_strides(call.shape(0));
    std::vector<std::int64_t> strides;
    for (const int axis : call.node.as<PermuteAttr>().order) strides.push_back(own[static_cast<std::size_t>(axis)]);
    read_strided(call, strides, 0);
}

void expand(KernelCall& call) {
    read_strided(call, broadcast_strides(call.shape(0), call.out_shape()), 0);
}

void slice(KernelCall& call) {
    const auto& attr = call.node.as<SliceAttr>();
    auto strides = row_major_strides(call.shape(0));
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < strides.size(); ++i) {
        offset += attr.starts[i] * strides[i];
        strides[i] *= attr.steps[i];
    }
    read_strided(call, strides, offset);
}

void concat(KernelCall& call) {
    const auto axis = static_cast<std::size_t>(call.node.as<AxisAttr>().axis);
    const Shape& out = call.out_shape();
    std::int64_t inner = 1, outer = 1;
    for (std::size_t i = axis + 1; i < out.size(); ++i) inner *= out[i];
    for (std::size_t i = 0; i < axis; ++i) outer *= out[i];
    std::int64_t first = 0;
    for (std::size_t n = 0; n < call.inputs.size(); ++n) {
        const std::int64_t length = call.shape(n)[axis] * inner;
        for (std::int64_t o = 0; o < outer; ++o)
            std::copy_n(call.inputs[n].data() + o * length, length, call.output.data() + o * out[axis] * inner + first);
        first += length;
    }
}

void pad(KernelCall& call) {
    const auto& attr = call.node.as<PadAttr>();
    const Shape &in = call.shape(0), &out = call.out_shape();
    const auto strides = row_major_strides(in);
    std::vector<std::int64_t> index(out.size(), 0);
    for (std::size_t i = 0; i < call.output.size(); ++i) {
        std::int64_t from = 0;
        bool inside = true;
        for (std::size_t d = 0; d < out.size(); ++d) {
            std::int64_t at = index[d] - attr.before[d];
            if (at < 0 || at >= in[d]) {
                switch (attr.mode) {
                    case PadAttr::Mode::Constant:
                        inside = false;
                        break;
                    case PadAttr::Mode::Reflect:
                        at = at < 0 ? -at : 2 * (in[d] - 1) - at;
                        break;
                    case PadAttr::Mode::Symmetric:
                        at = at < 0 ? -at - 1 : 2 * in[d] - 1 - at;
                        break;
                    case PadAttr::Mode::Replicate:
                        at = std::clamp<std::int64_t>(at, 0, in[d] - 1);
                        break;
                }
                // A reflection that does not reach inside was refused when the graph was made.
                at = std::clamp<std::int64_t>(at, 0, in[d] - 1);
            }
            from += at * strides[d];
        }
        call.output[i] = inside ? call.inputs[0][static_cast<std::size_t>(from)] : static_cast<float>(attr.value);
        for (std::size_t d = out.size(); d-- > 0;) {
            if (++index[d] < out[d]) break;
            index[d] = 0;
        }
    }
}

void gather(KernelCall& call) {
    const auto axis = static_cast<std::size_t>(call.node.as<AxisAttr>().axis);
    const Shape& in = call.shape(0);
    std::int64_t inner = 1, outer = 1;
    for (std::size_t i = axis + 1; i < in.size(); ++i) inner *= in[i];
    for (std::size_t i = 0; i < axis; ++i) outer *= in[i];
    const auto count = static_cast<std::int64_t>(call.inputs[1].size());
    for (std::int64_t o = 0; o < outer; ++o)
        for (std::int64_t n = 0; n < count; ++n) {
            auto at = static_cast<std::int64_t>(call.inputs[1][static_cast<std::size_t>(n)]);
            at = std::clamp<std::int64_t>(at < 0 ? at + in[axis] : at, 0, in[axis] - 1);
            std::copy_n(call.inputs[0].data() + (o * in[axis] + at) * inner, inner,
                        call.output.data() + (o * count + n) * inner);
        }
}

}  // namespace talpa::compiler
