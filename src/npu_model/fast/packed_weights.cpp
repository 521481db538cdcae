#include "npu_model/fast/packed_weights.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/core/checked_math.h"

namespace talpa::npu_model::fast {
namespace {

void put(std::uint8_t* word, std::uint32_t element, std::uint32_t elements, std::int16_t weight) {
    if (elements == 4)
        word[element] = static_cast<std::uint8_t>(weight);
    else
        std::memcpy(word + 2 * element, &weight, 2);
}

// 10 vectors become 3 + 3 + 2 + 2: groups of nearly equal width.
std::vector<std::uint32_t> balanced_groups(std::uint32_t vectors) {
    const std::uint32_t count = ceil_div<std::uint32_t>(vectors, kMaxVectors);
    std::vector<std::uint32_t> groups;
    for (std::uint32_t i = 0; i < count; ++i) groups.push_back((vectors - i + count - 1) / count);
    return groups;
}

}  // namespace

std::vector<WordSegment> word_segments(const WeightOrder& shape, const WordOrder& order) {
    std::vector<WordSegment> segments;
    for (std::uint32_t ky = 0; ky < shape.kernel_height; ++ky) {
        if (order.columns_together) {
            segments.push_back({ky, 0, 0, shape.kernel_width * shape.ifm_depth});
            continue;
        }
        const std::uint32_t step = order.bricks ? 16 : shape.ifm_depth;
        for (std::uint32_t kx = 0; kx < shape.kernel_width; ++kx)
            for (std::uint32_t c = 0; c < shape.ifm_depth; c += step)
                segments.push_back({ky, kx, c, std::min(step, shape.ifm_depth - c)});
    }
    return segments;
}

PackedWeights& packed_weights(const Filter& filter) {
    if (filter.packed) return *filter.packed;
    auto packed = std::make_shared<PackedWeights>();
    const std::size_t per_channel = filter.shape.ofm_depth == 0 ? 0 : filter.weights.size() / filter.shape.ofm_depth;
    packed->sums.resize(filter.shape.ofm_depth);
    std::int32_t low = 0, high = 0;
    for (std::uint32_t o = 0; o < filter.shape.ofm_depth; ++o) {
        const std::int16_t* w = filter.weights.data() + o * per_channel;
        std::int64_t sum = 0, magnitude = 0;
        for (std::size_t i = 0; i < per_channel; ++i) {
            sum += w[i];
            magnitude += std::abs(w[i]);
            low = std::min<std::int32_t>(low, w[i]);
            high = std::max<std::int32_t>(high, w[i]);
        }
        packed->sums[o] = {sum, magnitude};
    }
    packed->fits_bytes = low >= -128 && high <= 127;
    filter.packed = std::move(packed);
    return *filter.packed;
}

const PackedForm& packed_form(const Filter& filter, const WordOrder& order) {
    PackedWeights& packed = packed_weights(filter);
    for (const auto& form : packed.forms)
        if (form->order == order) return *form;

    const WeightOrder& shape = filter.shape;
    const auto segments = word_segments(shape, order);
    std::size_t words = 0;
    for (const WordSegment& s : segments) words += ceil_div(s.elements, order.elements);

    auto form = std::make_unique<PackedForm>();
    form->order = order;
    form->groups = balanced_groups(ceil_div<std::uint32_t>(shape.ofm_depth, kLanes));
    std::size_t size = 0;
    for (const std::uint32_t vectors : form->groups) {
        form->offsets.push_back(size);
        size += words * vectors * 64;
    }
    form->weights.assign(size, 0);
    const std::size_t channel_stride = std::size_t{shape.kernel_height} * shape.kernel_width * shape.ifm_depth;
    std::uint32_t o0 = 0;
    for (std::size_t g = 0; g < form->groups.size(); ++g) {
        const std::uint32_t vectors = form->groups[g], channels = std::min(vectors * kLanes, shape.ofm_depth - o0);
        for (std::uint32_t o = 0; o < channels; ++o) {
            const std::int16_t* bank = filter.weights.data() + (o0 + o) * channel_stride;
            std::uint8_t* word = form->weights.data() + form->offsets[g] + (o / kLanes) * 64 + (o % kLanes) * 4;
            for (const WordSegment& s : segments) {
                const std::int16_t* w = bank + (std::size_t{s.ky} * shape.kernel_width + s.kx) * shape.ifm_depth + s.c;
                for (std::uint32_t e = 0; e < s.elements; e += order.elements, word += vectors * 64)
                    for (std::uint32_t i = 0; i < std::min(order.elements, s.elements - e); ++i)
                        put(word, i, order.elements, w[e + i]);
            }
        }
        o0 += vectors * kLanes;
    }
    packed.forms.push_back(std::move(form));
    return *packed.forms.back();
}

const PackedForm& packed_depthwise(const Filter& filter, std::uint32_t elements) {
    PackedWeights& packed = packed_weights(filter);
    for (const auto& form : packed.forms)
        if (form->order.elements == elements) return *form;
    const WeightOrder& shape = filter.shape;
    const std::uint32_t x_groups = ceil_div(shape.kernel_width, elements);
    auto form = std::make_unique<PackedForm>();
    form->order.elements = elements;
    const std::size_t block_bytes = std::size_t{shape.kernel_height} * x_groups * 64;
    form->weights.assign(ceil_div<std::size_t>(shape.ofm_depth, kLanes) * block_bytes, 0);
    for (std::uint32_t o = 0; o < shape.ofm_depth; ++o)
        for (std::uint32_t ky = 0; ky < shape.kernel_height; ++ky)
            for (std::uint32_t kx = 0; kx < shape.kernel_width; ++kx) {
                std::uint8_t* word = form->weights.data() + (o / kLanes) * block_bytes +
                                     (ky * x_groups + kx / elements) * std::size_t{64} + (o % kLanes) * 4;
                put(word, kx % elements, elements,
                    filter.weights[(std::size_t{o} * shape.kernel_height + ky) * shape.kernel_width + kx]);
            }
    packed.forms.push_back(std::move(form));
    return *packed.forms.back();
}

}  // namespace talpa::npu_model::fast
