// What the server counts, in Prometheus' text format (version 0.0.4).
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "classifier/run_result.h"

namespace talpa::webapp {

class Metrics {
  public:
    void picture_done(const classifier::RunResult& result, double total_ms);
    void picture_failed(const std::string& code);
    void request(const std::string& route, int status);

    struct Gauges {
        std::size_t waiting = 0, listeners = 0, connections = 0, timeouts = 0, dropped = 0;
        std::uint64_t programs_staged = 0, resident_bytes = 0;
        double uptime_s = 0;
        bool firmware_runs = false;
    };
    [[nodiscard]] std::string text(const Gauges& gauges) const;
    [[nodiscard]] std::uint64_t pictures() const;

  private:
    static constexpr double kBucketsMs[] = {5, 10, 20, 35, 50, 75, 100, 150, 250, 500, 1000, 2500, 5000, 10000};
    mutable std::mutex mutex_;
    std::uint64_t done_ = 0, npu_cycles_ = 0;
    std::uint64_t buckets_[std::size(kBucketsMs)] = {};
    double total_ms_ = 0;
    std::map<std::string, double> phase_ms_;
    std::map<std::string, std::uint64_t> failed_;
    std::map<std::pair<std::string, int>, std::uint64_t> requests_;
};

/// Of this process, from getrusage: the most it ever had, in bytes.
[[nodiscard]] std::uint64_t peak_resident_bytes();

}  // namespace talpa::webapp
