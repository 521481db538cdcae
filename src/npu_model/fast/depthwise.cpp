// Depthwise convolutions, 16 channels at a time: each input row is spread once so that the taps in x of a channel lie
// together, and then serves every output row whose window holds it.
#include <algorithm>
#include <cstring>
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

constexpr std::size_t kMaxRingBytes = 64u << 20;
constexpr std::uint64_t kMinParallelMacs = 1u << 18;

class DepthwisePlan final : public Plan {
  public:
    DepthwisePlan(Requantization requantization, const Microkernels& kernels)
        : requantization_(std::move(requantization)), kernels_(kernels) {}

    bool bytes = true;
    std::uint32_t flip = 0;
    ImageShape image;
    const PackedForm* form = nullptr;
    std::uint32_t x_groups = 1;

    [[nodiscard]] std::size_t spread_bytes(const npu::Operation& op) const {
        return std::size_t{op.ofm.width} * 64 * x_groups;
    }
    // The padded line, then room for vectors that read past its end.
    [[nodiscard]] std::size_t line_bytes() const {
        const std::size_t beyond =
            std::size_t{x_groups} * form->order.elements * 2 + 4;  // columns; dilation is at most 2
        return round_up<std::size_t>((image.width + beyond) * 16 * image.bytes + 128, 64);
    }

    bool run(const Context& context) const override {
        const npu::Operation& op = context.op;
        if (span_of(context, op.ifm).overlaps(span_of(context, op.ofm))) return false;
        std::uint8_t table[256];
        if (!context.lut.empty() && !requantization_.raw) byte_table(context, table);
        const std::uint32_t blocks = ceil_div<std::uint32_t>(op.ofm.depth, kLanes);
        const unsigned threads = context.pool.threads();
        const std::uint64_t macs =
            std::uint64_t{op.ofm.height} * op.ofm.width * op.ofm.depth * op.kernel.height * op.kernel.width;
        if (threads == 1 || macs < kMinParallelMacs) {
            for (std::uint32_t b = 0; b < blocks; ++b) run_block(context, b, 0, op.ofm.height, table);
            return true;
        }
        // Rows to threads, as convolutions do it: what a thread reads here it has written there. Few rows are not worth
        // the rows that two parts both need.
        constexpr std::uint32_t kMinRows = 7;
        const std::uint32_t by_rows = op.ofm.height >= kMinRows * threads ? threads : 1;
        const std::uint32_t parts = std::min(op.ofm.height, std::max(by_rows, 4 * threads / blocks)),
                            rows = ceil_div(op.ofm.height, parts);
        context.pool.run(blocks * parts, [&](std::uint32_t i) {
            const std::uint32_t y0 = i / blocks * rows;
            if (y0 < op.ofm.height) run_block(context, i % blocks, y0, std::min(op.ofm.height, y0 + rows), table);
        });
        return true;
    }

  private:
    void run_block(const Context& context, std::uint32_t block, std::uint32_t y0, std::uint32_t y1,
                   const std::uint8_t* table) const {
        const npu::Operation& op = context.op;
        const npu::Kernel& k = op.kernel;
        const std::uint32_t c0 = block * kLanes;
        // A ring of spread rows: slot y mod the window's height.
        const std::uint32_t slots = k.dilated_height();
        const std::size_t row_bytes = spread_bytes(op);
        std::uint8_t* line = scratch(ScratchSlot::Image, line_bytes());
        std::uint8_t* ring = scratch(ScratchSlot::Rows, row_bytes * slots);
        std::vector<const std::uint8_t*> groups(std::size_t{k.height} * x_groups);

        DepthwiseTask task;
        task.groups = groups.data();
        task.group_count = static_cast<std::ptrdiff_t>(groups.size());
        task.weights = form->weights.data() + block * groups.size() * 64;
        task.pixels = static_cast<int>(op.ofm.width);
        task.block = requantization_.blocks.data() + block;
        task.out.pixel_stride = pixel_stride(op.ofm);
        task.out.vector_stride = block_stride(op.ofm);
        task.out.last_channels = static_cast<int>(std::min<std::uint32_t>(kLanes, op.ofm.depth - c0));
        task.epilogue = requantization_.epilogue;
        if (!context.lut.empty() && !requantization_.raw) task.epilogue.lut = table;
        std::optional<OutputFinisher> finisher;
        if (requantization_.raw) {
            task.epilogue.raw =
                reinterpret_cast<std::int32_t*>(scratch(ScratchSlot::Accumulators, std::size_t{op.ofm.width} * 64));
            finisher.emplace(context);
        }

        const bool in_place = spreads_in_place(op);
        std::uint32_t next = y0 * k.stride_y;  // first row of the padded grid that is not in the ring
        for (std::uint32_t y = y0; y < y1; ++y) {
            const std::uint32_t top = y * k.stride_y;
            for (next = std::max(next, top); next < top + slots; ++next)
                if ((next - top) % k.dilation_y == 0 || k.stride_y % k.dilation_y != 0)
                    spread_row(context, in_place, next, c0, line, ring + (next % slots) * row_bytes);
            for (std::uint32_t ky = 0; ky < k.height; ++ky)
                for (std::uint32_t g = 0; g < x_groups; ++g)
                    groups[ky * x_groups + g] =
                        ring + ((top + ky * k.dilation_y) % slots) * row_bytes + std::size_t{g} * op.ofm.width * 64;
            if (!finisher) task.out.data = context.memory(op.ofm) + op.ofm.offset_of(y, 0, c0);
            (bytes ? kernels_.depthwise : kernels_.depthwise16)(task);
            if (finisher) finisher->finish_raw(task.epilogue.raw, y, op.ofm.width, c0, 1);
        }
    }

    // Bricks in one piece: nearly all windows lie inside the row, where they are spread from as they are; the few at
    // its ends go through a short line that holds padding and the pixels beside it.
    [[nodiscard]] bool spreads_in_place(const npu::Operation& op) const {
        return bytes && op.ifm.layout == npu::Layout::Nhcwb16 && op.upscale == npu::Upscale::None &&
               is_single_tile(op.ifm);
    }

    void spread_row(const Context& context, bool in_place, std::uint32_t y, std::uint32_t c0, std::uint8_t* line,
                    std::uint8_t* out) const {
        const npu::Operation& op = context.op;
        SpreadTask task;
        task.stride = op.kernel.stride_x;
        task.dilation = op.kernel.dilation_x;
        task.pixels = static_cast<int>(op.ofm.width);
        task.flip = flip;
        const std::uint32_t elements = form->order.elements;
        const std::uint32_t pad_top = op.padding.top, pad_left = op.padding.left;
        const bool stored = y >= pad_top && y - pad_top < op.ifm.height;
        // Windows [first, last) touch no padding.
        const std::uint32_t first = ceil_div<std::uint32_t>(pad_left, op.kernel.stride_x);
        const std::uint32_t reach = (x_groups * elements - 1) * op.kernel.dilation_x;
        const std::uint32_t limit = pad_left + op.ifm.width;  // of the padded grid
        const std::uint32_t last =
            std::min(op.ofm.width, limit > reach ? (limit - reach - 1) / op.kernel.stride_x + 1 : 0u);
        if (!in_place || !stored || last <= first) {
            copy_line(context, image, y, c0, op.ifm.zero_point, line);
            for (std::uint32_t g = 0; g < x_groups; ++g) {
                task.line = line + std::size_t{g} * elements * op.kernel.dilation_x * 16 * image.bytes;
                task.out = out + std::size_t{g} * op.ofm.width * 64;
                (bytes ? kernels_.spread : kernels_.spread16)(task);
            }
            return;
        }
        const std::uint8_t* row = context.memory(op.ifm) + op.ifm.offset_of(y - pad_top, 0, c0);
        const auto part = [&](const std::uint8_t* origin, std::uint32_t from, std::uint32_t to) {
            task.pixels = static_cast<int>(to - from);
            for (std::uint32_t g = 0; g < x_groups; ++g) {
                task.line = origin + std::size_t{g} * elements * op.kernel.dilation_x * 16;
                task.out = out + (std::size_t{g} * op.ofm.width + from) * 64;
                kernels_.spread(task);
            }
        };
        // `origin` of a window is at column window * stride - pad_left of the row.
        if (first > 0) {
            const std::uint32_t columns = std::min(op.ifm.width, (first - 1) * op.kernel.stride_x + reach + 1);
            std::memset(line, op.ifm.zero_point, std::size_t{pad_left} * 16);
            std::memcpy(line + std::size_t{pad_left} * 16, row, std::size_t{columns} * 16);
            if (columns == op.ifm.width)
                std::memset(line + (std::size_t{pad_left} + columns) * 16, op.ifm.zero_point,
                            (std::size_t{reach} + 1) * 16);
            part(line, 0, first);
        }
        part(row + (std::size_t{first} * op.kernel.stride_x - pad_left) * 16, first, last);
        if (last < op.ofm.width) {
            const std::uint32_t from = last * op.kernel.stride_x - pad_left,
                                columns = op.ifm.width > from ? op.ifm.width - from : 0;
            const std::uint32_t wanted = (op.ofm.width - last - 1) * op.kernel.stride_x + reach + 1;
            std::memcpy(line, row + std::size_t{from} * 16, std::size_t{columns} * 16);
            if (wanted > columns)
                std::memset(line + std::size_t{columns} * 16, op.ifm.zero_point, (std::size_t{wanted} - columns) * 16);
            part(line, last, op.ofm.width);
        }
    }

    Requantization requantization_;
    const Microkernels& kernels_;
};

}  // namespace

std::unique_ptr<Plan> plan_depthwise(const Context& context, Isa isa) {
    const npu::Operation& op = context.op;
    if (op.ifm.type.bytes != 1 && op.ifm.type != npu::ElementType{2, true}) return nullptr;
    if (op.acc_format == npu::AccFormat::Fp16 || !has_linear_rows(op.ofm)) return nullptr;
    if (op.ifm.zero_point < op.ifm.type.min() || op.ifm.zero_point > op.ifm.type.max()) return nullptr;

    const Microkernels& kernels = microkernels(isa);
    PackedWeights& packed = packed_weights(*context.filter);
    const bool bytes = kernels.word_elements == 4 && op.ifm.type.bytes == 1 && packed.fits_bytes;
    const bool coded = bytes && op.ifm.type.is_signed;
    auto requantization = plan_requantization(context, packed.sums, {coded ? 128 : 0});
    if (!requantization) return nullptr;

    auto plan = std::make_unique<DepthwisePlan>(std::move(*requantization), kernels);
    plan->bytes = bytes;
    plan->flip = coded ? 0x80808080u : 0;
    plan->image = copied_image(op, bytes ? 1 : 2);
    plan->form = &packed_depthwise(*context.filter, bytes ? 4 : 2);
    plan->x_groups = ceil_div(op.kernel.width, bytes ? 4u : 2u);
    if (plan->spread_bytes(op) * op.kernel.dilated_height() > kMaxRingBytes || plan->line_bytes() > kMaxRingBytes)
        return nullptr;
    return plan;
}

}  // namespace talpa::npu_model::fast
