// Convolutions as matrix products: tiles of neighbouring output pixels by up to 48 output channels, over words of
// activations that are read where they lie, or from a padded copy.
#include <algorithm>
#include <vector>

#include "base/core/checked_math.h"
#include "npu_model/fast/image.h"
#include "npu_model/fast/memory_span.h"
#include "npu_model/fast/packed_weights.h"
#include "npu_model/fast/plan.h"
#include "npu_model/fast/requantization.h"
#include "npu_model/fast/scratch.h"

namespace talpa::npu_model::fast {
namespace {

constexpr std::size_t kMaxCopyBytes = 256u << 20;
constexpr std::size_t kWordBytes = 4;
// A unit of work for the thread pool should last some microseconds: about 16 million multiply-accumulates in 100.
constexpr std::uint64_t kMinUnitMacs = 1u << 20;
// Less is done before another thread has begun. A fully connected layer of a million is worth it: its weights come from
// memory.
constexpr std::uint64_t kMinParallelMacs = 1u << 18;
// Rows of activations that go through all weights before the next rows: they should stay in the second-level cache.
constexpr std::size_t kMaxUnitBytes = 192u << 10;

class ConvPlan final : public Plan {
  public:
    // One way to read the activations; which one is taken depends on the memory at hand.
    struct Source {
        ImageShape image;
        const PackedForm* form = nullptr;
        std::vector<std::ptrdiff_t> offsets;  // of each segment from the row's origin
        std::vector<std::ptrdiff_t> steps;
        bool copied = true;
    };

    ConvPlan(Requantization requantization, const Microkernels& kernels)
        : requantization_(std::move(requantization)), kernels_(kernels) {}

    bool bytes = true;  // 8-bit products
    std::uint32_t flip = 0;
    std::vector<Source> sources;  // direct first, if there is one; the last one is a copy

    bool run(const Context& context) const override {
        const npu::Operation& op = context.op;
        const Source& source = choose(context);
        const std::uint8_t* origin = nullptr;
        if (source.copied) {
            std::uint8_t* copy = scratch(ScratchSlot::Image, source.image.size_bytes());
            copy_image(context, source.image, copy);
            origin = copy;
        } else {
            origin = context.memory(op.ifm) + op.ifm.base[0];
        }
        std::uint8_t table[256];
        if (!context.lut.empty() && !requantization_.raw) byte_table(context, table);

        const PackedForm& form = *source.form;
        const auto groups = static_cast<std::uint32_t>(form.groups.size());
        const std::uint32_t rows = rows_per_unit(op, source, groups, context.pool.threads());
        const std::uint32_t row_units = ceil_div(op.ofm.height, rows);
        const auto unit = [&](std::uint32_t i) {
            const std::uint32_t y0 = i / groups * rows;
            run_group(context, source, origin, i % groups, y0, std::min(y0 + rows, op.ofm.height), table);
        };
        if (row_units * groups == 1 || macs(op) < kMinParallelMacs) {
            for (std::uint32_t i = 0; i < row_units * groups; ++i) unit(i);
        } else {
            context.pool.run(row_units * groups, unit);
        }
        return true;
    }

  private:
    static std::uint64_t macs(const npu::Operation& op) {
        return std::uint64_t{op.ofm.height} * op.ofm.width * op.ofm.depth * op.ifm.depth * op.kernel.height *
               op.kernel.width;
    }

    [[nodiscard]] const Source& choose(const Context& context) const {
        const Source& direct = sources.front();
        if (direct.copied) return direct;
        const npu::Operation& op = context.op;
        const MemorySpan ifm = span_of(context, op.ifm);
        const std::uint8_t* region_end = context.regions[op.ifm.region].data + context.regions[op.ifm.region].size;
        // The last word of a pixel may reach beyond its channels, and the output must not run into pixels that are
        // still to be read.
        const bool room = op.ifm.layout == npu::Layout::Nhcwb16 ||
                          region_end - ifm.end >= static_cast<std::ptrdiff_t>(kWordBytes - 1);
        return room && !ifm.overlaps(span_of(context, op.ofm)) ? direct : sources.back();
    }

    static std::uint32_t rows_per_unit(const npu::Operation& op, const Source& source, std::uint32_t groups,
                                       unsigned threads) {
        const auto row_bytes =
            static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, std::abs(source.image.row))) * op.kernel.stride_y;
        auto rows = static_cast<std::uint32_t>(std::clamp<std::size_t>(kMaxUnitBytes / row_bytes, 1, op.ofm.height));
        if (threads > 1) {
            const std::uint64_t row_macs = std::max<std::uint64_t>(1, macs(op) / op.ofm.height / groups);
            const auto enough =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(op.ofm.height, ceil_div(kMinUnitMacs, row_macs)));
            const std::uint32_t share = std::max(1u, ceil_div(op.ofm.height * groups, 4 * threads * groups));
            rows = std::min(rows, std::max(share, enough));
        }
        return rows;
    }

    void run_group(const Context& context, const Source& source, const std::uint8_t* origin, std::uint32_t group,
                   std::uint32_t y0, std::uint32_t y1, const std::uint8_t* table) const {
        const npu::Operation& op = context.op;
        const PackedForm& form = *source.form;
        std::uint32_t first = 0;
        for (std::uint32_t g = 0; g < group; ++g) first += form.groups[g];
        const std::uint32_t c0 = first * kLanes;

        const std::size_t segment_count = source.offsets.size();
        auto* segments = reinterpret_cast<Segment*>(scratch(ScratchSlot::Rows, segment_count * sizeof(Segment)));
        ConvTask task;
        task.segments = segments;
        task.segment_count = static_cast<std::ptrdiff_t>(segment_count);
        task.pitch = source.image.pixel * op.kernel.stride_x;
        task.flip = flip;
        task.weights = form.weights.data() + form.offsets[group];
        task.vectors = static_cast<int>(form.groups[group]);
        task.pixels = static_cast<int>(op.ofm.width);
        task.blocks = requantization_.blocks.data() + first;
        task.out.pixel_stride = pixel_stride(op.ofm);
        task.out.vector_stride = block_stride(op.ofm);
        task.out.last_channels =
            static_cast<int>(std::min<std::uint32_t>(kLanes, op.ofm.depth - c0 - (form.groups[group] - 1) * kLanes));
        task.epilogue = requantization_.epilogue;
        if (!context.lut.empty() && !requantization_.raw) task.epilogue.lut = table;
        const auto kernel = bytes ? kernels_.conv : kernels_.conv16;

        std::optional<OutputFinisher> finisher;
        if (requantization_.raw) {
            task.epilogue.raw = reinterpret_cast<std::int32_t*>(
                scratch(ScratchSlot::Accumulators, std::size_t{op.ofm.width} * form.groups[group] * 64));
            finisher.emplace(context);
        }
        for (std::uint32_t y = y0; y < y1; ++y) {
            const std::uint8_t* row = origin + static_cast<std::ptrdiff_t>(y * op.kernel.stride_y) * source.image.row;
            for (std::size_t s = 0; s < segment_count; ++s) segments[s] = {row + source.offsets[s], source.steps[s]};
            if (!finisher) task.out.data = context.memory(op.ofm) + op.ofm.offset_of(y, 0, c0);
            kernel(task);
            if (finisher) finisher->finish_raw(task.epilogue.raw, y, op.ofm.width, c0, form.groups[group]);
        }
    }

    Requantization requantization_;
    const Microkernels& kernels_;
};

void add_source(ConvPlan& plan, const Context& context, const ImageShape& image, std::uint32_t word_elements,
                bool copied) {
    const npu::Operation& op = context.op;
    ConvPlan::Source source;
    source.image = image;
    source.copied = copied;
    WordOrder order;
    order.elements = word_elements;
    order.bricks = image.layout == npu::Layout::Nhcwb16;
    order.columns_together = !order.bricks && op.kernel.dilation_x == 1 &&
                             image.pixel == static_cast<std::ptrdiff_t>(std::size_t{image.depth} * image.bytes);
    source.form = &packed_form(*context.filter, order);
    for (const WordSegment& s : word_segments(context.filter->shape, order)) {
        source.offsets.push_back(static_cast<std::ptrdiff_t>(s.ky * op.kernel.dilation_y) * image.row +
                                 static_cast<std::ptrdiff_t>(s.kx * op.kernel.dilation_x) * image.pixel +
                                 static_cast<std::ptrdiff_t>(s.c / 16) * (order.bricks ? image.block : 0));
        source.steps.push_back(ceil_div(s.elements, word_elements));
    }
    plan.sources.push_back(std::move(source));
}

bool has_byte_zero_point(const npu::FeatureMap& fm) {
    return fm.zero_point >= fm.type.min() && fm.zero_point <= fm.type.max();
}

}  // namespace

std::unique_ptr<Plan> plan_conv(const Context& context, Isa isa) {
    const npu::Operation& op = context.op;
    const bool short_input = op.ifm.type == npu::ElementType{2, true};
    if (op.ifm.type.bytes != 1 && !short_input) return nullptr;
    if (op.acc_format == npu::AccFormat::Fp16 || !has_byte_zero_point(op.ifm) || !has_linear_rows(op.ofm))
        return nullptr;

    const Microkernels& kernels = microkernels(isa);
    PackedWeights& packed = packed_weights(*context.filter);
    const bool bytes = kernels.word_elements == 4 && op.ifm.type.bytes == 1 && packed.fits_bytes;
    const bool coded = bytes && op.ifm.type.is_signed;
    auto requantization = plan_requantization(context, packed.sums, {coded ? 128 : 0});
    if (!requantization) return nullptr;
    const ImageShape copy = copied_image(op, bytes ? 1 : 2);
    if (copy.size_bytes() > kMaxCopyBytes) return nullptr;

    auto plan = std::make_unique<ConvPlan>(std::move(*requantization), kernels);
    plan->bytes = bytes;
    plan->flip = coded ? 0x80808080u : 0;
    const std::uint32_t word_elements = bytes ? 4 : 2;
    if (can_be_direct(op) && (bytes || short_input)) add_source(*plan, context, direct_image(op), word_elements, false);
    add_source(*plan, context, copy, word_elements, true);
    return plan;
}

}  // namespace talpa::npu_model::fast
