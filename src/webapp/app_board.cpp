// What is known of board and server: checks, status, events, metrics, and the two probes.
#include <fmt/format.h>

#include "base/host/terminal.h"
#include "webapp/app.h"

namespace talpa::webapp {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

/// Looks at the board and asks the firmware, on the thread that owns it.
void App::with_checks(std::function<void(const std::vector<Check>&)> then) {
    worker_.ask([this, then = std::move(then)](link::host::RunnerClient& client) {
        CheckInput input{.look = broker_->look_at_board(),
                         .remoteproc_name = options_.remoteproc,
                         .info = client.info(),
                         .program_path = options_.programs.empty() ? "" : options_.programs.front(),
                         .program_error = program_error_,
                         .target = {},
                         .labels = &labels_,
                         .labels_path = options_.labels,
                         .labels_error = labels_error_};
        const ModelPtr model = models_.find("");
        if (model != nullptr) {
            input.program = &model->program;
            input.program_bytes = model->program.bytes().size();
            input.target = model->target;
            if (model->uploaded) input.labels = &model->labels;
        }
        {
            const std::scoped_lock lock(seen_mutex_);
            tty_ = client.tty_path();
        }
        then(board_checks(input));
    });
}

void App::check_and_log() {
    with_checks([](const std::vector<Check>& checks) {
        std::string text;
        for (const Check& check : checks) {
            text +=
                fmt::format("talpa-webapp: check {}: {}: {}", check_state_name(check.state), check.title, check.found);
            if (check.state != Check::State::Ok && !check.fix.empty())
                text += fmt::format(" -> {}", std::string_view(check.fix).substr(0, check.fix.find('\n')));
            text += "\n";
        }
        host::say(text);
    });
}

void App::get_checks(http::Request&, const ExchangePtr& exchange) {
    with_checks(
        [this, exchange](const std::vector<Check>& checks) { reply(exchange, "/api/checks", to_json(checks)); });
}

void App::get_status(http::Request&, const ExchangePtr& exchange) {
    host::Json sandbox = host::Json::array();
    for (const SandboxStep& step : sandbox_)
        sandbox.push_back({{"what", step.what}, {"applied", step.applied}, {"detail", step.detail}});
    host::Json board;
    {
        const std::scoped_lock lock(seen_mutex_);
        board = {{"remoteproc", seen_.folder}, {"state", seen_.state}, {"firmware", seen_.firmware}, {"tty", tty_}};
    }
    reply(exchange, "/api/status",
          host::Json{{"version", TALPA_VERSION},
                     {"uptime_s", seconds_since(started_)},
                     {"pictures", metrics_.pictures()},
                     {"queue", worker_.queue()},
                     {"board", std::move(board)},
                     {"sandbox", std::move(sandbox)},
                     {"config", options_.json()}});
}

void App::get_events(http::Request& request, const ExchangePtr& exchange) {
    if (request.method == "HEAD") {
        http::Response head;
        head.content_type = "text/event-stream";
        return reply(exchange, "/api/events", std::move(head));
    }
    host::Json greeting{{"queue", worker_.queue()}, {"version", TALPA_VERSION}};
    {
        const std::scoped_lock lock(seen_mutex_);
        greeting["board"] = {{"remoteproc", seen_.folder}, {"state", seen_.state}, {"firmware", seen_.firmware}};
    }
    if (hub_.full()) return reply(exchange, "/api/events", problem(ProblemKind::Full, "too many pages listen"));
    metrics_.request("/api/events", 200);
    if (auto stream = exchange->open_events()) hub_.add(std::move(stream), greeting);
}

void App::get_metrics(http::Request&, const ExchangePtr& exchange) {
    const auto counts = server_.counts();
    bool runs = false;
    {
        const std::scoped_lock lock(seen_mutex_);
        runs = seen_.runs();
    }
    http::Response response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_.text({.waiting = worker_.waiting(),
                                   .listeners = hub_.listeners(),
                                   .connections = counts.connections,
                                   .timeouts = counts.timeouts,
                                   .dropped = counts.dropped,
                                   .programs_staged = worker_.programs_staged(),
                                   .resident_bytes = peak_resident_bytes(),
                                   .uptime_s = seconds_since(started_),
                                   .firmware_runs = runs});
    reply(exchange, "/metrics", std::move(response));
}

void App::get_health(http::Request&, const ExchangePtr& exchange) {
    http::Response response;
    response.content_type = "text/plain";
    response.body = "ok\n";
    reply(exchange, "/healthz", std::move(response));
}

/// For whoever sends requests to several boards: has this one's firmware answered INFO, and is there something to run?
/// Asked on the thread that owns the board; who asks meanwhile shares the question, so that probes cost the board
/// little.
void App::get_ready(http::Request&, const ExchangePtr& exchange) {
    {
        const std::scoped_lock lock(ready_mutex_);
        ready_waiting_.push_back(exchange);
        if (ready_waiting_.size() > 1) return;
    }
    worker_.ask([this](link::host::RunnerClient& client) {
        const auto info = client.info();
        std::optional<Problem> why;
        if (!info)
            why = problem(info.error());
        else if (models_.find("") == nullptr)
            why = problem(ProblemKind::NoModel, program_error_);
        if (why) why->status = 503;  // whatever it is: not ready
        http::Response response;
        response.content_type = "text/plain";
        response.body = "ready\n";
        if (why) response = why->response();
        std::vector<ExchangePtr> waiting;
        {
            const std::scoped_lock lock(ready_mutex_);
            waiting.swap(ready_waiting_);
        }
        for (const ExchangePtr& one : waiting) reply(one, "/readyz", response);
    });
}

}  // namespace talpa::webapp
