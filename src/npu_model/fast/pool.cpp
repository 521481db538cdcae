// Max and average pools over 8 bits, 16 channels at a time, on padded copies of the rows that a window needs.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/core/checked_math.h"
#include "npu_model/fast/image.h"
#include "npu_model/fast/memory_span.h"
#include "npu_model/fast/plan.h"
#include "npu_model/fast/requantization.h"
#include "npu_model/fast/scratch.h"

namespace talpa::npu_model::fast {
namespace {

constexpr std::size_t kMaxRingBytes = 64u << 20;
constexpr std::uint64_t kMinParallelElements = 1u << 17;

// How many of the window's rows or columns at output `at` are not padding.
std::uint32_t valid_taps(std::uint32_t at, std::uint32_t stride, std::uint32_t kernel, std::uint32_t dilation,
                         std::uint32_t before, std::uint32_t needed) {
    std::uint32_t n = 0;
    for (std::uint32_t k = 0; k < kernel; ++k) {
        const std::int64_t position = std::int64_t{at} * stride + std::int64_t{k} * dilation - before;
        n += position >= 0 && position < needed ? 1 : 0;
    }
    return n;
}

// The hardware's reciprocal of a window of n elements (ethos-u65, section 5.5).
npu::Scale reciprocal(std::uint32_t n) {
    const auto k = static_cast<unsigned>(std::bit_width(n - 1));
    return {static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + k)) + (std::uint64_t{1} << k)) / n),
            static_cast<std::uint8_t>(31 + k)};
}

class PoolPlan final : public Plan {
  public:
    explicit PoolPlan(const Microkernels& kernels) : kernels_(kernels) {}

    ImageShape image;
    bool is_max = false;
    std::uint8_t clamp_table[256] = {};                    // max
    Epilogue epilogue;                                     // average
    std::vector<ChannelBlock> blocks;                      // average: by number of valid taps - 1, or one for all
    std::vector<std::uint32_t> valid_rows, valid_columns;  // by output row and column; empty where one block serves all

    [[nodiscard]] std::size_t line_bytes() const {
        return round_up<std::size_t>(std::size_t{image.width} * 16 + 64, 64);
    }

    bool run(const Context& context) const override {
        const npu::Operation& op = context.op;
        if (span_of(context, op.ifm).overlaps(span_of(context, op.ofm))) return false;
        std::uint8_t table[256];
        if (!context.lut.empty()) byte_table(context, table);
        const std::uint32_t count = ceil_div<std::uint32_t>(op.ofm.depth, kLanes);
        const auto block = [&](std::uint32_t b) { run_block(context, b, context.lut.empty() ? nullptr : table); };
        if (context.pool.threads() == 1 ||
            std::uint64_t{op.ifm.height} * op.ifm.width * op.ifm.depth < kMinParallelElements) {
            for (std::uint32_t b = 0; b < count; ++b) block(b);
        } else {
            context.pool.run(count, block);
        }
        return true;
    }

  private:
    void run_block(const Context& context, std::uint32_t block, const std::uint8_t* table) const {
        const npu::Operation& op = context.op;
        const npu::Kernel& k = op.kernel;
        const std::uint32_t c0 = block * kLanes, slots = k.dilated_height();
        std::uint8_t* ring = scratch(ScratchSlot::Rows, line_bytes() * slots);
        std::uint8_t* results = scratch(ScratchSlot::Accumulators, std::size_t{op.ofm.width} * 64);
        std::vector<const std::uint8_t*> rows(k.height);
        std::vector<const ChannelBlock*> by_pixel(op.ofm.width, blocks.data());

        PoolTask task;
        task.rows = rows.data();
        task.row_count = static_cast<int>(k.height);
        task.columns = static_cast<int>(k.width);
        task.column_step = 16 * std::ptrdiff_t{k.dilation_x};
        task.pixel_step = 16 * std::ptrdiff_t{k.stride_x};
        task.pixels = static_cast<int>(op.ofm.width);
        task.is_signed = op.ifm.type.is_signed;
        task.largest = results;
        task.sums = reinterpret_cast<std::int32_t*>(results);
        Output out;
        out.pixel_stride = pixel_stride(op.ofm);
        out.vector_stride = block_stride(op.ofm);
        out.last_channels = static_cast<int>(std::min<std::uint32_t>(kLanes, op.ofm.depth - c0));
        Epilogue finish = epilogue;
        finish.lut = table;

        std::uint32_t next = 0;
        for (std::uint32_t y = 0; y < op.ofm.height; ++y) {
            const std::uint32_t top = y * k.stride_y;
            for (next = std::max(next, top); next < top + slots; ++next)
                copy_line(context, image, next, c0,
                          is_max ? static_cast<std::int32_t>(op.ifm.type.min()) : op.ifm.zero_point,
                          ring + (next % slots) * line_bytes());
            for (std::uint32_t ky = 0; ky < k.height; ++ky)
                rows[ky] = ring + ((top + ky * k.dilation_y) % slots) * line_bytes();
            out.data = context.memory(op.ofm) + op.ofm.offset_of(y, 0, c0);
            if (is_max) {
                kernels_.pool_max(task);
                kernels_.map_bytes(results, results, std::size_t{op.ofm.width} * kLanes, clamp_table);
                if (table != nullptr) kernels_.map_bytes(results, results, std::size_t{op.ofm.width} * kLanes, table);
                for (std::uint32_t x = 0; x < op.ofm.width; ++x)
                    std::memcpy(out.data + static_cast<std::ptrdiff_t>(x) * out.pixel_stride,
                                results + std::size_t{x} * kLanes, static_cast<std::size_t>(out.last_channels));
                continue;
            }
            kernels_.pool_sum(task);
            if (!valid_rows.empty())
                for (std::uint32_t x = 0; x < op.ofm.width; ++x)
                    by_pixel[x] = &blocks[std::max(1u, valid_rows[y] * valid_columns[x]) - 1];
            kernels_.finish_pixels(task.sums, by_pixel.data(), task.pixels, out, finish);
        }
    }

    const Microkernels& kernels_;
};

}  // namespace

std::unique_ptr<Plan> plan_pool(const Context& context, Isa isa) {
    const npu::Operation& op = context.op;
    if (op.ifm.type.bytes != 1 || op.ofm.type.bytes != 1 || !has_linear_rows(op.ofm)) return nullptr;
    if (op.ifm.zero_point < op.ifm.type.min() || op.ifm.zero_point > op.ifm.type.max() ||
        op.acc_format == npu::AccFormat::Fp16)
        return nullptr;
    const bool is_max = op.kind == npu::OpKind::MaxPool;
    if (is_max && (op.upscale != npu::Upscale::None || op.ifm.type != op.ofm.type)) return nullptr;
    const auto range = byte_range(op, is_max ? 0 : op.ofm.zero_point);
    if (!range) return nullptr;

    auto plan = std::make_unique<PoolPlan>(microkernels(isa));
    plan->image = copied_image(op, 1);
    plan->is_max = is_max;
    if (plan->line_bytes() * op.kernel.dilated_height() > kMaxRingBytes) return nullptr;
    if (is_max) {
        if (op.activation.function == npu::Activation::Function::Tanh ||
            op.activation.function == npu::Activation::Function::Sigmoid)
            return nullptr;
        for (int i = 0; i < 256; ++i) {
            const auto turned = static_cast<std::int8_t>(i ^ range->flip);
            plan->clamp_table[i] = static_cast<std::uint8_t>(std::clamp(turned, range->low, range->high) ^ range->flip);
        }
        return plan;
    }

    const std::uint32_t area = op.kernel.height * op.kernel.width;
    const std::int64_t largest =
        std::max(std::abs(op.ifm.type.min() - op.ifm.zero_point), std::abs(op.ifm.type.max() - op.ifm.zero_point)) *
        area;
    const bool own_division = op.padding.any() || !op.ofm_global_scale;
    // Padding was filled with the zero point, so that every window has `area` elements of which the padding adds
    // nothing.
    const auto bias = static_cast<std::int32_t>(-std::int64_t{op.ifm.zero_point} * area);
    const std::uint32_t count = own_division ? area : 1;
    for (std::uint32_t n = 1; n <= count; ++n) {
        auto r =
            uniform_requantization(op, own_division ? reciprocal(n) : op.ofm_scale, op.ofm_rounding, *range, largest);
        // 2^31 + 1 over one element: by that the NPU leaves a value as it is.
        if (!r && own_division && n == 1)
            r = uniform_requantization(op, {1u << 30, 30}, op.ofm_rounding, *range, largest);
        if (!r) return nullptr;
        std::ranges::fill(r->blocks[0].bias, bias);
        plan->blocks.push_back(r->blocks[0]);
        // One epilogue serves all windows: mixed forms would need two.
        if (n > 1 && r->epilogue.wide != plan->epilogue.wide) return nullptr;
        plan->epilogue = r->epilogue;
    }
    if (own_division) {
        const npu::Kernel& k = op.kernel;
        const std::uint32_t height = plan->image.height - op.padding.top - op.padding.bottom,
                            width = plan->image.width - op.padding.left - op.padding.right;
        for (std::uint32_t y = 0; y < op.ofm.height; ++y)
            plan->valid_rows.push_back(valid_taps(y, k.stride_y, k.height, k.dilation_y, op.padding.top, height));
        for (std::uint32_t x = 0; x < op.ofm.width; ++x)
            plan->valid_columns.push_back(valid_taps(x, k.stride_x, k.width, k.dilation_x, op.padding.left, width));
    }
    return plan;
}

}  // namespace talpa::npu_model::fast
