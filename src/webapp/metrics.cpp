#include "webapp/metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>

namespace talpa::webapp {

void Metrics::picture_done(const classifier::RunResult& result, double total_ms) {
    const std::scoped_lock lock(mutex_);
    ++done_;
    npu_cycles_ += result.npu_cycles;
    total_ms_ += total_ms;
    for (std::size_t i = 0; i < std::size(kBucketsMs); ++i) buckets_[i] += total_ms <= kBucketsMs[i];
    for (const auto& [phase, ms] : result.phases_ms) phase_ms_[phase] += ms;
}

void Metrics::picture_failed(const std::string& code) {
    const std::scoped_lock lock(mutex_);
    ++failed_[code];
}

void Metrics::request(const std::string& route, int status) {
    const std::scoped_lock lock(mutex_);
    ++requests_[{route, status}];
}

std::uint64_t Metrics::pictures() const {
    const std::scoped_lock lock(mutex_);
    return done_;
}

std::string Metrics::text(const Gauges& gauges) const {
    const std::scoped_lock lock(mutex_);
    std::string out;
    const auto head = [&](std::string_view name, std::string_view type, std::string_view help) {
        out += fmt::format("# HELP talpa_{0} {2}\n# TYPE talpa_{0} {1}\n", name, type, help);
    };
    const auto single = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
        head(name, type, help);
        out += fmt::format("talpa_{} {}\n", name, value);
    };
    single("pictures_total", "counter", "Pictures that were classified.", done_);
    head("picture_failures_total", "counter", "Pictures that were not, by the problem's code.");
    for (const auto& [code, count] : failed_)
        out += fmt::format("talpa_picture_failures_total{{code=\"{}\"}} {}\n", code, count);
    head("picture_seconds", "histogram", "From the upload's end to the answer, waiting included.");
    for (std::size_t i = 0; i < std::size(kBucketsMs); ++i)
        out += fmt::format("talpa_picture_seconds_bucket{{le=\"{}\"}} {}\n", kBucketsMs[i] / 1000, buckets_[i]);
    out += fmt::format(
        "talpa_picture_seconds_bucket{{le=\"+Inf\"}} {0}\ntalpa_picture_seconds_sum {1}\n"
        "talpa_picture_seconds_count {0}\n",
        done_, total_ms_ / 1000);
    head("phase_seconds_total", "counter", "Time by phase; those of the Cortex-M33 by its own clock.");
    for (const auto& [phase, ms] : phase_ms_)
        out += fmt::format("talpa_phase_seconds_total{{phase=\"{}\"}} {}\n", phase, ms / 1000);
    single("npu_cycles_total", "counter", "Cycles of the NPU.", npu_cycles_);
    single("programs_staged_total", "counter", "How often a program was written to the board's memory.",
           gauges.programs_staged);
    head("requests_total", "counter", "Answers, by route and status.");
    for (const auto& [key, count] : requests_)
        out += fmt::format("talpa_requests_total{{route=\"{}\",status=\"{}\"}} {}\n", key.first, key.second, count);
    single("pictures_waiting", "gauge", "Pictures in the queue.", gauges.waiting);
    single("event_listeners", "gauge", "Connections to /api/events.", gauges.listeners);
    single("connections", "gauge", "Open connections.", gauges.connections);
    single("connection_timeouts_total", "counter", "Connections that were too slow.", gauges.timeouts);
    single("connections_dropped_total", "counter", "Connections that made room for others.", gauges.dropped);
    single("firmware_running", "gauge", "1 when the remote processor runs.", gauges.firmware_runs ? 1 : 0);
    single("peak_resident_bytes", "gauge", "Most memory that the server ever had.", gauges.resident_bytes);
    single("uptime_seconds", "gauge", "Since the start.", gauges.uptime_s);
    return out;
}

std::uint64_t peak_resident_bytes() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace talpa::webapp
