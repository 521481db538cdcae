#include "webapp/worker.h"

#include "webapp/picture_png.h"

namespace talpa::webapp {
namespace {

using Clock = std::chrono::steady_clock;
using link::host::BoardError;
using link::host::BoardFault;
using link::host::RunPhase;

double ms_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Problem cancelled_problem() {
    return problem(BoardError(BoardFault::Cancelled, host::Error(ErrorCode::InvalidState, "the client has left")));
}

}  // namespace

Worker::Worker(link::host::BoardAccess& access, const WorkerOptions& options, Tell tell)
    : options_(options), tell_(std::move(tell)), client_(access, options.remoteproc_name) {
    prepare_thread_ = std::thread([this] { prepare_loop(); });
    device_thread_ = std::thread([this] { device_loop(); });
}

Worker::~Worker() {
    stop();
    prepare_thread_.join();
    device_thread_.join();
}

bool Worker::submit(const JobPtr& job) {
    {
        const std::scoped_lock lock(mutex_);
        if (stopping_ || pictures_waiting_ + job->pictures.size() > options_.queue_pictures) return false;
        job->submitted = Clock::now();
        job->outcomes.resize(job->pictures.size());
        pictures_waiting_ += job->pictures.size();
        waiting_.push_back(job);
    }
    changed_.notify_all();
    tell_queue();
    return true;
}

void Worker::ask(std::function<void(link::host::RunnerClient&)> task) {
    {
        const std::scoped_lock lock(mutex_);
        tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
}

std::size_t Worker::waiting() const {
    const std::scoped_lock lock(mutex_);
    return pictures_waiting_;
}

host::Json Worker::queue() const {
    const std::scoped_lock lock(mutex_);
    return queue_locked();
}

host::Json Worker::queue_locked() const {
    host::Json order = host::Json::array();
    for (const JobPtr& job : waiting_)
        order.push_back({{"id", job->id}, {"pictures", job->pictures.size() - job->next}});
    return {{"waiting", pictures_waiting_},
            {"limit", options_.queue_pictures},
            {"each_ms", each_ms_},
            {"wait_ms", each_ms_ * static_cast<double>(pictures_waiting_)},
            {"order", std::move(order)}};
}

void Worker::tell_queue() {
    host::Json now;
    {
        const std::scoped_lock lock(mutex_);
        now = queue_locked();
    }
    tell_("queue", now);
}

void Worker::tell_job(const Job& job, std::size_t index, std::string_view phase) {
    if (job.id.empty()) return;
    tell_("job", {{"id", job.id}, {"picture", index}, {"of", job.pictures.size()}, {"phase", phase}});
}

void Worker::stop() {
    {
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
}

void Worker::prepare_loop() {
    for (;;) {
        JobPtr job;
        std::size_t index = 0;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || (!waiting_.empty() && !ready_); });
            if (waiting_.empty()) return;  // stopping, and everything has its answer
            job = std::move(waiting_.front());
            waiting_.pop_front();
            index = job->next++;
            --pictures_waiting_;
            // Requests take turns, picture by picture: one with a hundred does not make the next one wait for all.
            if (job->next < job->pictures.size()) waiting_.push_back(job);
        }
        Ready ready = prepare(job, index);
        if (std::holds_alternative<classifier::PreparedPicture>(ready.picture)) {
            const std::unique_lock lock(mutex_);
            // Under the lock: when the device's thread has seen the end, nothing may be put there any more.
            if (!stopping_) {
                ready_ = std::move(ready);
                job.reset();
            }
        }
        if (job == nullptr) {
            changed_.notify_all();
        } else {
            Outcome outcome;
            outcome.what = std::holds_alternative<Problem>(ready.picture) ? std::get<Problem>(std::move(ready.picture))
                                                                          : problem(ProblemKind::Stopping);
            outcome.queue_ms = ready.queue_ms;
            finish(job, index, std::move(outcome));
        }
    }
}

Worker::Ready Worker::prepare(JobPtr job, std::size_t index) {
    Ready ready{.job = job, .index = index, .picture = {}, .queue_ms = ms_since(job->submitted)};
    if (stopping_) {
        ready.picture = problem(ProblemKind::Stopping);
        return ready;
    }
    if (job->cancelled) {
        ready.picture = cancelled_problem();
        return ready;
    }
    const std::string_view bytes = job->pictures[index].bytes;
    if (bytes.empty()) {
        ready.picture = problem(ProblemKind::EmptyPicture);
        return ready;
    }
    try {
        auto prepared =
            classifier::prepare_input(Bytes(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
                                      job->model->program, options_.limits);
        if (prepared)
            ready.picture = *std::move(prepared);
        else
            ready.picture = problem(prepared.error());
    } catch (const std::exception& e) {
        ready.picture = problem(ProblemKind::ServerFault, e.what());
    }
    return ready;
}

void Worker::device_loop() {
    for (;;) {
        std::optional<Ready> ready;
        std::function<void(link::host::RunnerClient&)> task;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stopping_ || ready_ || !tasks_.empty(); });
            if (!tasks_.empty()) {
                task = std::move(tasks_.front());
                tasks_.pop_front();
            } else if (ready_) {
                ready = std::move(ready_);
                ready_.reset();
            } else if (waiting_.empty()) {
                return;
            }
        }
        if (task) {
            task(client_);
        } else if (ready) {
            changed_.notify_all();  // room for the next one
            run(*std::move(ready));
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));  // stopping: the other thread empties the queue
        }
    }
}

void Worker::run(Ready ready) {
    const JobPtr& job = ready.job;
    Outcome outcome;
    outcome.queue_ms = ready.queue_ms;
    const auto& picture = std::get<classifier::PreparedPicture>(ready.picture);
    if (job->cancelled || stopping_) {
        outcome.what = job->cancelled ? cancelled_problem() : problem(ProblemKind::Stopping);
        return finish(job, ready.index, std::move(outcome));
    }
    const auto start = Clock::now();
    link::host::RunCallbacks callbacks;
    callbacks.phase = [&](RunPhase phase) {
        if (phase != RunPhase::Waiting) tell_job(*job, ready.index, phase == RunPhase::Staging ? "staging" : "running");
    };
    callbacks.cancelled = [&] { return job->cancelled || stopping_; };
    try {
        classifier::BoardRunOptions options;
        options.top = job->top;
        options.timeout = options_.timeout;
        auto result =
            classifier::run_on_board(client_, job->model->program, picture, job->model->labels, options, callbacks);
        if (result) {
            result->image = job->pictures[ready.index].name;
            outcome.what = *std::move(result);
        } else {
            // A run that we ended because we end is not the client's doing.
            const bool ours = stopping_ && result.error().fault == BoardFault::Cancelled;
            outcome.what = ours ? problem(ProblemKind::Stopping) : problem(result.error());
        }
        if (job->crop && !picture.fitted.rgb.empty()) outcome.crop_png = png_of(picture.fitted);
    } catch (const std::exception& e) {
        outcome.what = problem(ProblemKind::ServerFault, e.what());
    }
    programs_staged_ = client_.programs_staged();
    outcome.width = picture.width;
    outcome.height = picture.height;
    {
        const std::scoped_lock lock(mutex_);
        const double spent = ms_since(start);
        each_ms_ = each_ms_ == 0 ? spent : each_ms_ * 0.8 + spent * 0.2;
    }
    finish(job, ready.index, std::move(outcome));
}

void Worker::finish(const JobPtr& job, std::size_t index, Outcome outcome) {
    outcome.total_ms = ms_since(job->submitted);
    tell_job(*job, index, std::holds_alternative<Problem>(outcome.what) ? "failed" : "done");
    bool all = false;
    {
        const std::scoped_lock lock(mutex_);
        job->outcomes[index] = std::move(outcome);
        all = ++job->finished == job->pictures.size();
    }
    if (all) job->done(*job);
    tell_queue();
}

}  // namespace talpa::webapp
