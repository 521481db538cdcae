#include "compiler/quantize/compare_runs.h"

#include <algorithm>
#include <cmath>

#include "compiler/floats/executor.h"

namespace talpa::compiler {

namespace {
double decibels(double signal, double noise) {
    constexpr double kNone = 200;
    if (noise <= 0) return kNone;
    return std::clamp(10 * std::log10(signal / noise), -kNone, kNone);
}
}  // namespace

double snr_db(std::span<const float> exact, std::span<const float> actual) {
    double signal = 0, noise = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
        const double x = static_cast<double>(exact[i]), d = x - static_cast<double>(actual[i]);
        signal += x * x;
        noise += d * d;
    }
    return decibels(signal, noise);
}

host::Result<double> output_snr(const Graph& quantized, std::span<const Sample> samples,
                                std::span<const std::vector<float>> expected, unsigned threads) {
    TRY_ASSIGN(const auto executor, FloatExecutor::create(quantized, Rounding::Quantized));
    std::vector<FloatExecutor::Workspace> workspaces(std::max(threads, 1u));
    std::vector<double> ratios(samples.size());
    TRY(for_each_sample(samples.size(), threads, [&](std::size_t i, unsigned worker) -> host::Result<void> {
        TRY_ASSIGN(const auto outputs, executor.run(samples[i], workspaces[worker]));
        std::vector<float> joined;
        for (const auto& output : outputs) joined.insert(joined.end(), output.begin(), output.end());
        ratios[i] = snr_db(expected[i], joined);
        return {};
    }));
    std::ranges::nth_element(ratios, ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2));
    return ratios[ratios.size() / 2];
}

host::Result<Agreement> agreement(const Graph& exact, const Graph& quantized, std::span<const Sample> samples,
                                  unsigned threads) {
    TRY_ASSIGN(const auto reference, FloatExecutor::create(exact));
    TRY_ASSIGN(const auto rounded, FloatExecutor::create(quantized, Rounding::Quantized));
    std::vector<FloatExecutor::Workspace> workspaces(std::max(threads, 1u));
    std::vector<double> ratios(samples.size());
    std::vector<char> same(samples.size());
    TRY(for_each_sample(samples.size(), threads, [&](std::size_t i, unsigned worker) -> host::Result<void> {
        TRY_ASSIGN(const auto a, reference.run(samples[i], workspaces[worker]));
        TRY_ASSIGN(const auto b, rounded.run(samples[i], workspaces[worker]));
        ratios[i] = snr_db(a[0], b[0]);
        const auto best = [](const std::vector<float>& v) { return std::max_element(v.begin(), v.end()) - v.begin(); };
        same[i] = best(a[0]) == best(b[0]);
        return {};
    }));
    Agreement result{.samples = samples.size()};
    for (std::size_t i = 0; i < samples.size(); ++i) {
        result.same_top1 += same[i] != 0;
        if (same[i] == 0) result.different.push_back(i);
    }
    if (ratios.empty()) return result;
    std::ranges::nth_element(ratios, ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2));
    result.median_snr_db = ratios[ratios.size() / 2];
    return result;
}

host::Result<std::vector<LayerNoise>> layer_noise(const Graph& exact, const Graph& quantized,
                                                  std::span<const Sample> samples, unsigned threads) {
    TRY_ASSIGN(const auto reference, FloatExecutor::create(exact));
    TRY_ASSIGN(const auto rounded, FloatExecutor::create(quantized, Rounding::Quantized));
    struct Energy {
        double signal = 0, noise = 0, low = 0, high = 0;
    };
    std::vector<std::vector<Energy>> energies(samples.size());
    struct Worker {
        FloatExecutor::Workspace workspace;
        std::vector<std::vector<float>> values;
    };
    std::vector<Worker> workers(std::max(threads, 1u));
    const auto one = [&](std::size_t i, unsigned index) -> host::Result<void> {
        auto& worker = workers[index];
        worker.values.resize(exact.values.size());
        energies[i].resize(exact.values.size());
        TRY(reference.run(samples[i], worker.workspace, [&](ValueId id, std::span<const float> data) {
            worker.values[id].assign(data.begin(), data.end());
        }));
        TRY(rounded.run(samples[i], worker.workspace, [&](ValueId id, std::span<const float> data) {
            if (id >= worker.values.size() || worker.values[id].size() != data.size()) return;
            auto& e = energies[i][id];
            for (std::size_t k = 0; k < data.size(); ++k) {
                const double x = static_cast<double>(worker.values[id][k]), d = x - static_cast<double>(data[k]);
                e.signal += x * x;
                e.noise += d * d;
                e.low = std::min(e.low, x);
                e.high = std::max(e.high, x);
            }
        }));
        return {};
    };
    TRY(for_each_sample(samples.size(), threads, one));
    std::vector<LayerNoise> layers;
    for (const auto& node : quantized.nodes)
        for (const auto id : node.outputs) {
            if (!quantized[id].quantization || id >= exact.values.size()) continue;
            Energy total;
            for (const auto& e : energies) {
                total.signal += e[id].signal;
                total.noise += e[id].noise;
                total.low = std::min(total.low, e[id].low);
                total.high = std::max(total.high, e[id].high);
            }
            layers.push_back(
                {.value = id, .snr_db = decibels(total.signal, total.noise), .low = total.low, .high = total.high});
        }
    return layers;
}

}  // namespace talpa::compiler
