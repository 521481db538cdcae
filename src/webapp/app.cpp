#include "webapp/app.h"

#include <fmt/format.h>

#include "base/host/terminal.h"
#include "webapp/embedded.h"
#include "webapp/http/multipart.h"
#include "webapp/picture_png.h"

namespace talpa::webapp {
namespace {

using http::Head;
using http::Request;
using http::Response;

constexpr std::uint64_t kSmallBody = 64 << 10;
constexpr std::chrono::seconds kLookEvery{1};
constexpr int kBeatEvery = 15;  // looks

double ms_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

std::string dump(const host::Json& json) {
    return json.dump(2, ' ', false, host::Json::error_handler_t::replace) + "\n";
}

/// Of every answer: nothing of it is a script, a frame or a page of somebody else's.
void harden(Response& response) {
    response.headers.emplace_back(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    response.headers.emplace_back("Referrer-Policy", "no-referrer");
    response.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
    response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
    response.headers.emplace_back("Server", "talpa");
    const bool cached =
        std::ranges::any_of(response.headers, [](const auto& header) { return header.first == "Cache-Control"; });
    if (!cached) response.headers.emplace_back("Cache-Control", "no-store");
}

std::string_view type_of(std::string_view path) {
    static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".json", "application/json"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"}};
    for (const auto& [ending, type] : kTypes)
        if (path.ends_with(ending)) return type;
    return "application/octet-stream";
}

std::optional<std::size_t> parse_top(const std::string& text) {
    if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
    const auto top = static_cast<std::size_t>(std::stoul(text));
    return top >= 1 && top <= 1000 ? std::optional(top) : std::nullopt;
}

/// A client's name for its request, for events: plain characters only.
std::string job_id(const std::string& text) {
    const bool plain =
        text.size() <= 64 && std::ranges::all_of(text, [](char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
        });
    return plain ? text : std::string();
}

host::Json outcome_json(const Outcome& outcome, const Job& job, double receive_ms) {
    host::Json json = classifier::to_json(std::get<classifier::RunResult>(outcome.what), job.model->labels);
    host::Json times{{"receive", receive_ms}, {"queue", outcome.queue_ms}};
    times.update(json["time_ms"]);
    times["total"] = outcome.total_ms + receive_ms;
    json["time_ms"] = std::move(times);
    json["model"] = job.model->id;
    if (outcome.width != 0) json["picture"] = {{"width", outcome.width}, {"height", outcome.height}};
    if (!outcome.crop_png.empty()) json["crop"] = "data:image/png;base64," + base64(outcome.crop_png);
    return json;
}

}  // namespace

const App::Route App::kRoutes[] = {
    {"POST", "/api/classify", true, false, &App::classify},
    {"GET", "/api/checks", false, false, &App::get_checks},
    {"GET", "/api/models", false, false, &App::get_models},
    {"POST", "/api/models", true, false, &App::add_model},
    {"GET", "/api/models/", false, false, &App::get_model},
    {"DELETE", "/api/models/", false, false, &App::remove_model},
    {"GET", "/api/samples", false, false, &App::get_samples},
    {"GET", "/api/samples/", false, false, &App::get_sample},
    {"GET", "/api/status", false, false, &App::get_status},
    {"GET", "/api/events", false, false, &App::get_events},
    {"GET", "/api/openapi.json", false, false, &App::get_openapi},
    {"GET", "/metrics", false, false, &App::get_metrics},
    {"GET", "/healthz", false, true, &App::get_health},
    {"GET", "/readyz", false, true, &App::get_ready},
    {"GET", "/", false, false, &App::get_page},
    {"GET", "/assets/", false, false, &App::get_asset},
};

App::App(Parts parts, http::Server& server)
    : options_(std::move(parts.options)),
      broker_(std::move(parts.broker)),
      gate_(options_.token, options_.allow_hosts),
      models_(options_.uploads),
      program_error_(std::move(parts.program_error)),
      labels_error_(std::move(parts.labels_error)),
      labels_(std::move(parts.labels)),
      samples_(std::move(parts.samples)),
      sandbox_(std::move(parts.sandbox)),
      server_(server),
      worker_(*broker_,
              {.queue_pictures = options_.queue,
               .timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options_.timeout_s * 1000)),
               .limits = {.max_pixels = static_cast<std::uint64_t>(options_.pixel_limit_mp * 1e6),
                          .max_file_bytes = static_cast<std::uint64_t>(options_.upload_limit_mib * (1 << 20))},
               .remoteproc_name = options_.remoteproc},
              [this](std::string_view event, const host::Json& data) { hub_.send(event, data); }) {
    for (ModelPtr& model : parts.models) models_.add(std::move(model));
    look_thread_ = std::thread([this] { look_loop(); });
}

App::~App() {
    {
        const std::scoped_lock lock(look_mutex_);
        ending_ = true;
    }
    look_changed_.notify_all();
    look_thread_.join();
}

/// Looks at the remote processor once a second, so that the page shows a stop as it happens.
void App::look_loop() {
    for (int round = 0;; ++round) {
        const auto look = broker_->look();
        bool changed = false;
        {
            const std::scoped_lock lock(seen_mutex_);
            changed = look.state != seen_.state || look.folder != seen_.folder;
            seen_ = look;
        }
        if (changed)
            hub_.send("board", {{"remoteproc", look.folder}, {"state", look.state}, {"firmware", look.firmware}});
        if (round % kBeatEvery == 0) hub_.beat();
        std::unique_lock lock(look_mutex_);
        if (look_changed_.wait_for(lock, kLookEvery, [&] { return ending_; })) return;
    }
}

const App::Route* App::route(const Head& head, bool& path_known) const {
    path_known = false;
    const std::string_view method = head.method == "HEAD" ? "GET" : std::string_view(head.method);
    for (const Route& r : kRoutes) {
        const bool prefix = r.path.size() > 1 && r.path.ends_with('/');
        if (prefix ? !(head.path.size() > r.path.size() && head.path.starts_with(r.path)) : head.path != r.path)
            continue;
        path_known = true;
        if (r.method == method) return &r;
    }
    return nullptr;
}

http::Admission App::admit(const Head& head) {
    bool path_known = false;
    const Route* const r = route(head, path_known);
    const auto refused = [&](Response response) {
        harden(response);
        metrics_.request(r != nullptr ? std::string(r->path) : "other", response.status);
        return http::Admission{.body_limit = 0, .refusal = std::move(response)};
    };
    if (auto response = gate_.refuse(head, r != nullptr && r->public_path)) return refused(*std::move(response));
    if (r == nullptr)
        return refused(problem(path_known ? ProblemKind::Method : ProblemKind::NotFound,
                               fmt::format("{} {}", head.method, head.path))
                           .response());
    return {.body_limit = r->uploads ? static_cast<std::uint64_t>(options_.upload_limit_mib * (1 << 20)) : kSmallBody,
            .refusal = {}};
}

void App::handle(Request request, std::shared_ptr<http::Exchange> exchange) {
    bool ignored = false;
    const Route* const r = route(request, ignored);
    try {
        (this->*r->handle)(request, exchange);
    } catch (const std::exception& e) {
        host::say(fmt::format("talpa-webapp: {} {}: {}\n", request.method, request.path, e.what()));
        reply(exchange, std::string(r->path), problem(ProblemKind::ServerFault, e.what()));
    }
}

Response App::trouble(int status, const std::string& detail) {
    const ProblemKind kind = status == 413   ? ProblemKind::TooLarge
                             : status == 431 ? ProblemKind::HeadTooLong
                             : status == 503 ? ProblemKind::Full
                                             : ProblemKind::BadRequest;
    Response response = problem(kind, detail).response();
    harden(response);
    metrics_.request("other", response.status);
    return response;
}

void App::reply(const ExchangePtr& exchange, const std::string& route, Response response) {
    harden(response);
    metrics_.request(route, response.status);
    exchange->respond(std::move(response));
}

void App::reply(const ExchangePtr& exchange, const std::string& route, const host::Json& json, int status) {
    Response response;
    response.status = status;
    response.body = dump(json);
    reply(exchange, route, std::move(response));
}

void App::reply(const ExchangePtr& exchange, const std::string& route, const Problem& problem) {
    reply(exchange, route, problem.response());
}

void App::classify(Request& request, const ExchangePtr& exchange) {
    const auto refuse = [&](const Problem& p) { reply(exchange, "/api/classify", p); };
    auto job = std::make_shared<Job>();
    job->id = job_id(request.query_value("id"));
    job->crop = request.query_value("crop") == "1";
    job->top = options_.top;
    job->body = std::move(request.body);
    std::string model_id = request.query_value("model"), top = request.query_value("top");
    const std::string type = request.header("content-type");
    bool form = false;
    if (type.starts_with("multipart/form-data")) {
        form = true;
        auto parts = http::parse_multipart(type, job->body);
        if (!parts) return refuse(problem(ProblemKind::BadRequest, parts.error().message));
        for (const http::Part& part : *parts) {
            if (part.name == "image")
                job->pictures.push_back({part.filename, part.bytes});
            else if (part.name == "model")
                model_id = part.bytes;
            else if (part.name == "top")
                top = part.bytes;
        }
        // A browser sends an empty part when no file was chosen.
        if (job->pictures.size() == 1 && job->pictures[0].bytes.empty() && job->pictures[0].name.empty())
            job->pictures.clear();
    } else if (!job->body.empty() && !type.starts_with("application/x-www-form-urlencoded")) {
        job->pictures.push_back({request.query_value("name"), job->body});
    } else if (!type.empty() && job->body.empty()) {
        return refuse(problem(ProblemKind::EmptyPicture));
    }
    if (job->pictures.empty()) return refuse(problem(ProblemKind::NoPicture));
    if (!top.empty()) {
        const auto number = parse_top(top);
        if (!number) return refuse(problem(ProblemKind::BadRequest, "top is a number from 1 to 1000"));
        job->top = *number;
    }
    job->model = models_.find(model_id);
    if (job->model == nullptr) {
        Problem none = problem(ProblemKind::NoModel, model_id.empty() ? program_error_ : fmt::format("'{}'", model_id));
        if (model_id.empty())
            none.fix =
                "/api/checks says what is wrong with the program and what to do; or upload one: POST /api/models";
        return refuse(none);
    }

    const bool several = form && job->pictures.size() > 1;
    const double receive_ms = request.receive_ms;
    job->done = [this, exchange, receive_ms, several](Job& done) { answer_job(exchange, done, receive_ms, several); };
    exchange->on_gone([weak = std::weak_ptr<Job>(job)] {
        if (const auto left = weak.lock()) left->cancelled = true;
    });
    if (!worker_.submit(job)) {
        Problem full = problem(ProblemKind::Full,
                               fmt::format("{} pictures wait, the limit is {}", worker_.waiting(), options_.queue));
        if (job->pictures.size() > options_.queue) {
            full = problem(ProblemKind::TooLarge, fmt::format("{} pictures in one request, the limit is {}",
                                                              job->pictures.size(), options_.queue));
        }
        job->done = nullptr;
        refuse(full);
    }
}

void App::answer_job(const ExchangePtr& exchange, Job& job, double receive_ms, bool several) {
    for (const Outcome& outcome : job.outcomes) {
        if (const auto* failed = std::get_if<Problem>(&outcome.what))
            metrics_.picture_failed(failed->code);
        else
            metrics_.picture_done(std::get<classifier::RunResult>(outcome.what), outcome.total_ms);
    }
    const auto one = [&](std::size_t i) {
        const Outcome& outcome = job.outcomes[i];
        if (const auto* failed = std::get_if<Problem>(&outcome.what))
            return host::Json{{"image", job.pictures[i].name}, {"problem", failed->json()}};
        return outcome_json(outcome, job, receive_ms);
    };
    if (!several) {
        if (const auto* failed = std::get_if<Problem>(&job.outcomes[0].what))
            reply(exchange, "/api/classify", *failed);
        else
            reply(exchange, "/api/classify", one(0));
    } else {
        host::Json results = host::Json::array();
        for (std::size_t i = 0; i < job.outcomes.size(); ++i) results.push_back(one(i));
        reply(exchange, "/api/classify", host::Json{{"results", std::move(results)}});
    }
    job.done = nullptr;  // it holds the exchange
}

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

void App::get_checks(Request&, const ExchangePtr& exchange) {
    with_checks(
        [this, exchange](const std::vector<Check>& checks) { reply(exchange, "/api/checks", to_json(checks)); });
}

void App::get_models(Request&, const ExchangePtr& exchange) {
    host::Json list = host::Json::array();
    for (const ModelPtr& model : models_.all()) list.push_back(model->json());
    reply(exchange, "/api/models", host::Json{{"models", std::move(list)}, {"uploads", options_.uploads}});
}

void App::get_model(Request& request, const ExchangePtr& exchange) {
    const ModelPtr model = models_.find(request.path.substr(std::string_view("/api/models/").size()));
    if (model == nullptr) return reply(exchange, "/api/models/", problem(ProblemKind::NoModel));
    host::Json json = model->json();
    json["layers"] = model->layers;
    reply(exchange, "/api/models/", json);
}

void App::remove_model(Request& request, const ExchangePtr& exchange) {
    if (!models_.remove(request.path.substr(std::string_view("/api/models/").size())))
        return reply(exchange, "/api/models/", problem(ProblemKind::NoModel, "only uploaded models can be removed"));
    hub_.send("models", host::Json::object());
    reply(exchange, "/api/models/", host::Json{{"removed", true}});
}

void App::add_model(Request& request, const ExchangePtr& exchange) {
    const auto refuse = [&](const Problem& p) { reply(exchange, "/api/models", p); };
    if (options_.uploads == 0) return refuse(problem(ProblemKind::Method, "uploads are switched off (--uploads 0)"));
    const auto parts = http::parse_multipart(request.header("content-type"), request.body, 8);
    if (!parts) return refuse(problem(ProblemKind::BadRequest, parts.error().message));
    std::string name = "uploaded";
    std::string_view program, labels;
    for (const http::Part& part : *parts) {
        if (part.name == "program") {
            program = part.bytes;
            if (!part.filename.empty()) name = part.filename;
        } else if (part.name == "labels") {
            labels = part.bytes;
        }
    }
    if (program.empty()) return refuse(problem(ProblemKind::BadRequest, "there is no file in the field 'program'"));
    const auto invalid = [](const host::Error& error) {
        host::Error bare = error;
        bare.hint.clear();
        Problem p = problem(ProblemKind::InvalidModel, bare.describe());
        if (!error.hint.empty()) p.fix = error.hint;
        return p;
    };
    auto opened = classifier::BoardProgram::of_bytes({program.begin(), program.end()}, name);
    if (!opened) return refuse(invalid(opened.error()));
    classifier::Labels read = labels.empty() ? labels_ : classifier::Labels();
    if (!labels.empty()) {
        auto given = classifier::Labels::of_text(labels, "the label file", 0);
        if (!given) return refuse(invalid(given.error()));
        read = *std::move(given);
    } else if (opened->classes != 0 && !read.check_enough_for(opened->classes)) {
        read = {};  // those of the command line are another network's
    }
    auto model = make_model(*std::move(opened), std::move(read), true);
    if (!model) return refuse(invalid(model.error()));
    models_.add(*model);
    hub_.send("models", host::Json::object());
    reply(exchange, "/api/models", (*model)->json(), 201);
}

void App::get_samples(Request&, const ExchangePtr& exchange) {
    host::Json list = host::Json::array();
    for (const Sample& sample : samples_)
        list.push_back({{"name", sample.name}, {"url", "/api/samples/" + sample.name}});
    reply(exchange, "/api/samples", host::Json{{"samples", std::move(list)}});
}

void App::get_sample(Request& request, const ExchangePtr& exchange) {
    const std::string name = request.path.substr(std::string_view("/api/samples/").size());
    for (const Sample& sample : samples_) {
        if (sample.name != name) continue;
        Response response{
            .status = 200, .content_type = sample.content_type, .body = {}, .fixed_body = sample.bytes, .headers = {}};
        response.headers.emplace_back("Cache-Control", "private, max-age=3600");
        return reply(exchange, "/api/samples/", std::move(response));
    }
    reply(exchange, "/api/samples/", problem(ProblemKind::NotFound, "no such sample"));
}

void App::get_status(Request&, const ExchangePtr& exchange) {
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
                     {"uptime_s", ms_since(started_) / 1000},
                     {"pictures", metrics_.pictures()},
                     {"queue", worker_.queue()},
                     {"board", std::move(board)},
                     {"sandbox", std::move(sandbox)},
                     {"config", options_.json()}});
}

void App::get_events(Request&, const ExchangePtr& exchange) {
    host::Json greeting{{"queue", worker_.queue()}, {"version", TALPA_VERSION}};
    {
        const std::scoped_lock lock(seen_mutex_);
        greeting["board"] = {{"remoteproc", seen_.folder}, {"state", seen_.state}, {"firmware", seen_.firmware}};
    }
    if (hub_.listeners() >= 120)
        return reply(exchange, "/api/events", problem(ProblemKind::Full, "too many pages listen"));
    metrics_.request("/api/events", 200);
    if (auto stream = exchange->open_events()) hub_.add(std::move(stream), greeting);
}

void App::get_metrics(Request&, const ExchangePtr& exchange) {
    const auto counts = server_.counts();
    bool runs = false;
    {
        const std::scoped_lock lock(seen_mutex_);
        runs = seen_.runs();
    }
    Response response;
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_.text({.waiting = worker_.waiting(),
                                   .listeners = hub_.listeners(),
                                   .connections = counts.connections,
                                   .timeouts = counts.timeouts,
                                   .dropped = counts.dropped,
                                   .programs_staged = worker_.programs_staged(),
                                   .resident_bytes = peak_resident_bytes(),
                                   .uptime_s = ms_since(started_) / 1000,
                                   .firmware_runs = runs});
    reply(exchange, "/metrics", std::move(response));
}

void App::get_health(Request&, const ExchangePtr& exchange) {
    Response response;
    response.content_type = "text/plain";
    response.body = "ok\n";
    reply(exchange, "/healthz", std::move(response));
}

/// For whoever sends requests to several boards: has this one's firmware answered INFO, and is there something to run?
/// Asked on the thread that owns the board; who asks meanwhile shares the question, so that probes cost the board
/// little.
void App::get_ready(Request&, const ExchangePtr& exchange) {
    {
        const std::scoped_lock lock(ready_mutex_);
        ready_waiting_.push_back(exchange);
        if (ready_waiting_.size() > 1) return;
    }
    worker_.ask([this](link::host::RunnerClient& client) {
        const auto info = client.info();
        Response response;
        response.content_type = "text/plain";
        response.body = "ready\n";
        if (!info) {
            response = problem(info.error()).response();
        } else if (models_.find("") == nullptr) {
            response = problem(ProblemKind::NoModel, program_error_).response();
        }
        if (response.status != 200) response.status = 503;
        std::vector<ExchangePtr> waiting;
        {
            const std::scoped_lock lock(ready_mutex_);
            waiting.swap(ready_waiting_);
        }
        for (const ExchangePtr& one : waiting) reply(one, "/readyz", response);
    });
}

void App::get_openapi(Request&, const ExchangePtr& exchange) {
    Response response;
    response.fixed_body = embedded("openapi.json");
    reply(exchange, "/api/openapi.json", std::move(response));
}

void App::get_page(Request&, const ExchangePtr& exchange) {
    Response response;
    response.content_type = "text/html; charset=utf-8";
    response.fixed_body = embedded("ui/index.html");
    response.headers.emplace_back("Cache-Control", "no-cache");
    reply(exchange, "/", std::move(response));
}

void App::get_asset(Request& request, const ExchangePtr& exchange) {
    const std::string_view bytes = embedded("ui" + request.path);
    if (bytes.empty()) return reply(exchange, "/assets/", problem(ProblemKind::NotFound, request.path));
    Response response;
    response.content_type = type_of(request.path);
    response.fixed_body = bytes;
    response.headers.emplace_back("Cache-Control", "no-cache");
    reply(exchange, "/assets/", std::move(response));
}

}  // namespace talpa::webapp
