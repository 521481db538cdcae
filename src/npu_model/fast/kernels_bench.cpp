// Single operations of MobileNetV2 (and relatives) on the fast kernels, planned once, on one thread: ./run bench
// kernels.
#include <benchmark/benchmark.h>

#include <memory>

#include "npu_model/fast/plan_cache.h"
#include "npu_model/random_operation.h"

namespace talpa::npu_model::fast {
namespace {

using npu::FeatureMap;
using npu::Layout;
using npu::OpKind;
using testing::AlignedMemory;
using testing::RandomOperation;

FeatureMap bricks(std::uint32_t height, std::uint32_t width, std::uint32_t depth, std::uint64_t base) {
    FeatureMap fm;
    fm.type = {1, true};
    fm.layout = Layout::Nhcwb16;
    fm.region = 1;
    fm.zero_point = -1;
    fm.height = fm.height0 = fm.height1 = height;
    fm.width = fm.width0 = width;
    fm.depth = depth;
    fm.base[0] = base;
    fm.stride_x = 16;
    fm.stride_c = 16 * static_cast<std::int64_t>(width);
    fm.stride_y = fm.stride_c * ((depth + 15) / 16);
    return fm;
}

std::uint64_t bytes_of(const FeatureMap& fm) {
    return static_cast<std::uint64_t>(fm.stride_y) * fm.height;
}

RandomOperation bare(OpKind kind, std::uint32_t size, std::uint32_t depth, std::uint32_t stride) {
    RandomOperation r;
    npu::Operation& op = r.op;
    op.kind = kind;
    op.ifm = bricks(size, size, depth, 0);
    op.kernel.stride_y = op.kernel.stride_x = static_cast<std::uint8_t>(stride);
    op.ofm_rounding = op.ifm_rounding = npu::Rounding::Natural;
    op.activation.raw_min = static_cast<std::uint16_t>(-128);
    op.activation.raw_max = 127;
    return r;
}

void give_memory(RandomOperation& r) {
    r.op.ofm.base[0] = bytes_of(r.op.ifm) + bytes_of(r.op.ifm2);
    r.memory[1] = AlignedMemory(r.op.ofm.base[0] + bytes_of(r.op.ofm));
    testing::Random random(1);
    for (std::size_t i = 0; i < r.memory[1].size(); ++i)
        r.memory[1].data()[i] = static_cast<std::uint8_t>(random.bits());
}

RandomOperation convolution(OpKind kind, std::uint32_t size, std::uint32_t in, std::uint32_t out, std::uint32_t kernel,
                            std::uint32_t stride) {
    RandomOperation r = bare(kind, size, in, stride);
    r.op.kernel.height = r.op.kernel.width = kernel;
    r.op.padding = {kernel / 2, kernel / 2, (kernel - 1) / 2, (kernel - 1) / 2};
    if (kernel == 3 && stride == 2) r.op.padding = {1, 1, 0, 0};
    const std::uint32_t reach = kernel > 1 ? (stride == 1 ? 2u : 1u) : 0u;
    r.op.ofm = bricks((size + reach - kernel) / stride + 1, (size + reach - kernel) / stride + 1, out, 0);
    give_memory(r);
    auto filter = std::make_shared<Filter>();
    filter->shape.ofm_depth = out;
    filter->shape.kernel_height = filter->shape.kernel_width = kernel;
    filter->shape.ifm_depth = in;
    filter->shape.depthwise = kind == OpKind::Depthwise;
    filter->weights.resize(filter->shape.bank_size());
    testing::Random random(2);
    for (auto& w : filter->weights) w = static_cast<std::int16_t>(random.in(-127, 127));
    filter->records.assign(out, {100, 1u << 30, 40});
    r.filter = std::move(filter);
    return r;
}

void run(benchmark::State& state, RandomOperation r, std::uint64_t macs) {
    ThreadPool pool(1);
    Findings findings;
    PlanCache plans;
    Context context = r.context(pool, findings);
    context.plans = &plans;
    if (!try_run(context)) return state.SkipWithError("not taken by the fast kernels");
    for (auto _ : state) benchmark::DoNotOptimize(try_run(context));
    const auto iterations = static_cast<double>(state.iterations());
    if (macs > 0)
        state.counters["GMAC/s"] =
            benchmark::Counter(static_cast<double>(macs) * iterations / 1e9, benchmark::Counter::kIsRate);
    state.SetBytesProcessed(static_cast<std::int64_t>(iterations) *
                            static_cast<std::int64_t>(bytes_of(r.op.ifm) + bytes_of(r.op.ifm2) + bytes_of(r.op.ofm)));
}

// size, input channels, output channels, kernel, stride
void BM_convolution(benchmark::State& state) {
    const auto arg = [&](std::size_t i) { return static_cast<std::uint32_t>(state.range(i)); };
    RandomOperation r = convolution(OpKind::Conv, arg(0), arg(1), arg(2), arg(3), arg(4));
    const std::uint64_t macs = std::uint64_t{r.op.ofm.height} * r.op.ofm.width * arg(1) * arg(2) * arg(3) * arg(3);
    run(state, std::move(r), macs);
}
BENCHMARK(BM_convolution)
    ->Args({112, 32, 16, 1, 1})
    ->Args({112, 16, 96, 1, 1})
    ->Args({56, 144, 24, 1, 1})
    ->Args({28, 32, 192, 1, 1})
    ->Args({14, 96, 576, 1, 1})
    ->Args({14, 576, 96, 1, 1})
    ->Args({7, 160, 960, 1, 1})
    ->Args({7, 320, 1280, 1, 1})
    ->Args({1, 1280, 1000, 1, 1})
    ->Args({224, 3, 32, 3, 2})
    ->Args({28, 64, 64, 3, 1});

// size, channels, kernel, stride
void BM_depthwise(benchmark::State& state) {
    const auto arg = [&](std::size_t i) { return static_cast<std::uint32_t>(state.range(i)); };
    RandomOperation r = convolution(OpKind::Depthwise, arg(0), arg(1), arg(1), arg(2), arg(3));
    const std::uint64_t macs = std::uint64_t{r.op.ofm.height} * r.op.ofm.width * arg(1) * arg(2) * arg(2);
    run(state, std::move(r), macs);
}
BENCHMARK(BM_depthwise)
    ->Args({112, 32, 3, 1})
    ->Args({112, 96, 3, 2})
    ->Args({56, 144, 3, 1})
    ->Args({14, 576, 3, 1})
    ->Args({7, 960, 3, 1})
    ->Args({14, 480, 5, 1});

// size, channels
void BM_add(benchmark::State& state) {
    const auto size = static_cast<std::uint32_t>(state.range(0)), depth = static_cast<std::uint32_t>(state.range(1));
    RandomOperation r = bare(OpKind::Add, size, depth, 1);
    r.op.ofm = bricks(size, size, depth, 0);
    r.op.ifm2 = bricks(size, size, depth, bytes_of(r.op.ifm));
    r.op.operand_scaling = npu::OperandScaling::Opa32;
    r.op.opa_scale = {1039029787, 11};
    r.op.ofm_global_scale = true;
    r.op.ofm_scale = {1927950739, 50};
    give_memory(r);
    run(state, std::move(r), 0);
}
BENCHMARK(BM_add)->Args({56, 24})->Args({28, 32})->Args({14, 96});

// A plane of bytes transposed by a 1x1 average pool, as compilers write it: rows, columns
void BM_transposition(benchmark::State& state) {
    const auto rows = static_cast<std::uint32_t>(state.range(0)), columns = static_cast<std::uint32_t>(state.range(1));
    RandomOperation r = bare(OpKind::AvgPool, 1, 1, 1);
    FeatureMap& in = r.op.ifm;
    in.layout = Layout::Nhwc;
    in.height = in.height0 = in.height1 = rows;
    in.width = in.width0 = columns;
    in.stride_y = columns;
    in.stride_x = 1;
    r.op.ofm = in;
    r.op.ofm.stride_y = 1;
    r.op.ofm.stride_x = rows;
    r.op.ofm.base[0] = std::uint64_t{rows} * columns;
    r.op.ofm_global_scale = true;
    r.op.ofm_scale = {0x80000001u, 31};
    r.memory[1] = AlignedMemory(std::size_t{2} * rows * columns);
    run(state, std::move(r), 0);
}
BENCHMARK(BM_transposition)->Args({3, 224})->Args({144, 28})->Args({64, 64});

}  // namespace
}  // namespace talpa::npu_model::fast

BENCHMARK_MAIN();
