#include "webapp/app.h"

#include <fmt/format.h>

#include "base/host/terminal.h"

namespace talpa::webapp {
namespace {

using http::Head;
using http::Request;
using http::Response;

constexpr std::uint64_t kSmallBody = 64 << 10;
constexpr std::chrono::seconds kLookEvery{1};
constexpr int kBeatEvery = 15;  // looks

std::string dump(const host::Json& json) {
    return json.dump(2, ' ', false, host::Json::error_handler_t::replace) + "\n";
}

/// Of every answer: nothing of it is a script, a frame or a page of somebody else's.
void harden(Response& response) {
    response.headers.emplace_back(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'");
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    response.headers.emplace_back("Referrer-Policy", "no-referrer");
    response.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
    response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
    response.headers.emplace_back("Server", "talpa");
    const bool cached =
        std::ranges::any_of(response.headers, [](const auto& header) { return header.first == "Cache-Control"; });
    if (!cached) response.headers.emplace_back("Cache-Control", "no-store");
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

const App::Route* App::route(const Head& head, std::string& allowed) const {
    allowed.clear();
    const std::string_view method = head.method == "HEAD" ? "GET" : std::string_view(head.method);
    for (const Route& r : kRoutes) {
        const bool prefix = r.path.size() > 1 && r.path.ends_with('/');
        if (prefix ? !(head.path.size() > r.path.size() && head.path.starts_with(r.path)) : head.path != r.path)
            continue;
        if (r.method == method) return &r;
        allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", r.method == "GET" ? "GET, HEAD" : r.method);
    }
    return nullptr;
}

http::Admission App::admit(const Head& head) {
    std::string allowed;
    const Route* const r = route(head, allowed);
    const auto refused = [&](Response response) {
        harden(response);
        metrics_.request(r != nullptr ? std::string(r->path) : "other", response.status);
        return http::Admission{.body_limit = 0, .refusal = std::move(response)};
    };
    if (auto response = gate_.refuse(head, r != nullptr && r->public_path)) return refused(*std::move(response));
    if (r == nullptr) {
        Response none = problem(allowed.empty() ? ProblemKind::NotFound : ProblemKind::Method,
                                fmt::format("{} {}", head.method, head.path))
                            .response();
        if (!allowed.empty()) none.headers.emplace_back("Allow", allowed);  // RFC 9110, section 15.5.6
        return refused(std::move(none));
    }
    return {.body_limit = r->uploads ? static_cast<std::uint64_t>(options_.upload_limit_mib * (1 << 20)) : kSmallBody,
            .refusal = {}};
}

void App::handle(Request request, std::shared_ptr<http::Exchange> exchange) {
    std::string ignored;
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

}  // namespace talpa::webapp
