#include "compiler/quantize/calibrate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

#include "compiler/floats/executor.h"
#include "compiler/graph/ops.h"

namespace talpa::compiler {

host::Result<void> for_each_sample(std::size_t count, unsigned threads,
                                   const std::function<host::Result<void>(std::size_t, unsigned)>& work) {
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::optional<host::Error> failed;
    const auto run = [&](unsigned worker) {
        for (std::size_t i = next++; i < count; i = next++) {
            if (auto done = work(i, worker); !done) {
                const std::scoped_lock lock(mutex);
                if (!failed) failed = done.error();
                next = count;
            }
        }
    };
    {
        std::vector<std::jthread> workers;
        for (unsigned t = 1; t < std::min<std::size_t>(std::max(threads, 1u), count); ++t) workers.emplace_back(run, t);
        run(0);
    }
    if (failed) return std::unexpected(*failed);
    return {};
}

namespace {

/// What one thread saw.
struct Seen {
    FloatExecutor::Workspace workspace;
    std::vector<Histogram> values;
    std::vector<std::vector<double>> peaks;
};

/// Mean of each channel of one sample, added in the order of samples afterwards: sums in double must not depend on
/// which thread had which sample.
using Means = std::vector<std::vector<double>>;

void add_means(const Value& value, std::span<const float> data, std::vector<double>& means) {
    const auto channels = static_cast<std::size_t>(value.shape.empty() ? 1 : value.shape.back());
    means.assign(channels, 0.0);
    for (std::size_t i = 0; i < data.size(); i += channels)
        for (std::size_t c = 0; c < channels; ++c) means[c] += static_cast<double>(data[i + c]);
    for (auto& mean : means) mean /= static_cast<double>(data.size() / channels);
}

void add_peaks(const Value& value, std::span<const float> data, std::vector<double>& peaks) {
    const auto channels = static_cast<std::size_t>(value.shape.back());
    peaks.resize(channels, 0.0);
    for (std::size_t i = 0; i < data.size(); i += channels)
        for (std::size_t c = 0; c < channels; ++c)
            peaks[c] = std::max(peaks[c], std::fabs(static_cast<double>(data[i + c])));
}

/// Values whose channels can be told apart, and that equalisation may want: feature maps.
bool has_channels(const Value& value) {
    return value.shape.size() == 4;
}

}  // namespace

host::Result<Calibration> calibrate(const Graph& graph, std::span<const Sample> samples, unsigned threads,
                                    const std::function<void(std::size_t)>& progress) {
    if (samples.empty()) return host::failure(ErrorCode::InvalidArgument, "there are no calibration samples");
    TRY_ASSIGN(const auto executor, FloatExecutor::create(graph));
    // Channel means are only wanted where a weighted operator reads them.
    std::vector<char> wants_means(graph.values.size(), 0);
    for (const auto& node : graph.nodes)
        if (has_weights(node.op)) wants_means[node.inputs[0]] = 1;

    // Peaks only where nothing clamps: there alone can channels be equalised.
    std::vector<char> is_linear(graph.values.size(), 0);
    for (const auto& node : graph.nodes) {
        const auto* conv = std::get_if<ConvAttr>(&node.attributes);
        if ((conv != nullptr && !conv->clamp.any()) || node.op == Op::Add) is_linear[node.outputs[0]] = 1;
    }

    std::vector<Seen> seen(std::max(threads, 1u));
    for (auto& s : seen) {
        s.values.resize(graph.values.size());
        s.peaks.resize(graph.values.size());
    }
    std::vector<Means> means(samples.size());
    Calibration result;
    result.outputs.resize(samples.size());
    std::atomic<std::size_t> done{0};
    TRY(for_each_sample(samples.size(), threads, [&](std::size_t i, unsigned worker) -> host::Result<void> {
        auto& s = seen[worker];
        means[i].resize(graph.values.size());
        const auto observe = [&](ValueId id, std::span<const float> data) {
            s.values[id].add(data);
            if (wants_means[id]) add_means(graph[id], data, means[i][id]);
            if (has_channels(graph[id]) && is_linear[id]) add_peaks(graph[id], data, s.peaks[id]);
        };
        auto outputs = executor.run(samples[i], s.workspace, observe);
        if (!outputs) return std::unexpected(std::move(outputs.error()).with_context(fmt::format("sample {}", i)));
        for (const auto& output : *outputs)
            result.outputs[i].insert(result.outputs[i].end(), output.begin(), output.end());
        if (progress) progress(++done);
        return {};
    }));

    result.samples = samples.size();
    result.values.resize(graph.values.size());
    result.channel_means.resize(graph.values.size());
    result.channel_peaks.resize(graph.values.size());
    for (ValueId id = 0; id < graph.values.size(); ++id) {
        for (const auto& s : seen) {
            result.values[id].add(s.values[id]);
            auto& peaks = result.channel_peaks[id];
            peaks.resize(std::max(peaks.size(), s.peaks[id].size()), 0.0);
            for (std::size_t c = 0; c < s.peaks[id].size(); ++c) peaks[c] = std::max(peaks[c], s.peaks[id][c]);
        }
        if (!wants_means[id]) continue;
        auto& total = result.channel_means[id];
        total.assign(means[0][id].size(), 0.0);
        for (const auto& m : means)
            for (std::size_t c = 0; c < total.size(); ++c) total[c] += m[id][c] / static_cast<double>(samples.size());
    }
    return result;
}

}  // namespace talpa::compiler
