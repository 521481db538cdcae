// The one that owns the board's NPU: takes pictures from a bounded queue, one request after the other in turn, prepares
// the next picture while the board runs the one before, and tells what becomes of each.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "classifier/board_program.h"
#include "webapp/models.h"
#include "webapp/problem.h"

namespace talpa::webapp {

struct Outcome {
    std::variant<Problem, classifier::RunResult> what;
    std::uint32_t width = 0, height = 0;  ///< of the picture
    std::string crop_png;                 ///< what the network saw, if that was asked for
    double queue_ms = 0, total_ms = 0;
};

/// A request's pictures. Fields up to `cancelled` do not change once it is submitted.
struct Job {
    std::string id;    ///< the client's, for events; may be empty
    std::string body;  ///< holds the bytes of the pictures
    struct Picture {
        std::string name;
        std::string_view bytes;
    };
    std::vector<Picture> pictures;
    ModelPtr model;
    std::size_t top = 5;
    bool crop = false;
    std::function<void(Job&)> done;  ///< called once, from one of the worker's threads
    std::atomic<bool> cancelled{false};

    std::vector<Outcome> outcomes;  ///< one a picture, when done
    std::size_t next = 0, finished = 0;
    std::chrono::steady_clock::time_point submitted;
};
using JobPtr = std::shared_ptr<Job>;

struct WorkerOptions {
    std::size_t queue_pictures = 64;
    std::chrono::milliseconds timeout{10'000};
    image::Limits limits;
    std::string remoteproc_name = "imx-rproc";
};

class Worker {
  public:
    using Tell = std::function<void(std::string_view event, const host::Json& data)>;
    Worker(link::host::BoardAccess& access, const WorkerOptions& options, Tell tell);
    ~Worker();

    /// False when its pictures do not fit the queue.
    [[nodiscard]] bool submit(const JobPtr& job);
    /// Runs `task` on the thread that owns the device, before the pictures that wait.
    void ask(std::function<void(link::host::RunnerClient&)> task);
    /// What waits, and for how long the last of it will, as far as one can tell.
    [[nodiscard]] host::Json queue() const;
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] std::uint64_t programs_staged() const { return programs_staged_; }
    /// Ends the run that goes on, fails what waits.
    void stop();

  private:
    struct Ready {
        JobPtr job;
        std::size_t index = 0;
        std::variant<Problem, classifier::PreparedPicture> picture;
        double queue_ms = 0;
    };
    void prepare_loop();
    void device_loop();
    [[nodiscard]] Ready prepare(JobPtr job, std::size_t index);
    void run(Ready ready);
    void finish(const JobPtr& job, std::size_t index, Outcome outcome);
    void tell_queue();
    void tell_job(const Job& job, std::size_t index, std::string_view phase);
    [[nodiscard]] host::Json queue_locked() const;

    WorkerOptions options_;
    Tell tell_;
    link::host::RunnerClient client_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<JobPtr> waiting_;
    std::size_t pictures_waiting_ = 0;
    std::optional<Ready> ready_;
    std::deque<std::function<void(link::host::RunnerClient&)>> tasks_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::uint64_t> programs_staged_{0};
    double each_ms_ = 0;  ///< what a picture takes, smoothed
    std::thread prepare_thread_, device_thread_;
};

}  // namespace talpa::webapp
