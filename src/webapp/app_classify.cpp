// POST /api/classify: a request becomes a job of the worker, its outcomes the answer.
#include <fmt/format.h>

#include "base/host/npy.h"
#include "image/decode.h"
#include "webapp/app.h"
#include "webapp/http/multipart.h"
#include "webapp/picture_png.h"

namespace talpa::webapp {
namespace {

std::optional<std::size_t> parse_top(const std::string& text) {
    if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
    const auto top = static_cast<std::size_t>(std::stoul(text));
    return top >= 1 && top <= 1000 ? std::optional(top) : std::nullopt;
}

/// curl --data-binary says that any body is a form; a picture and an array are known by how they begin.
bool is_a_file(std::string_view body) {
    const Bytes bytes(reinterpret_cast<const std::uint8_t*>(body.data()), body.size());
    return image::recognise(bytes).has_value() || host::is_npy(bytes);
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

void App::classify(http::Request& request, const ExchangePtr& exchange) {
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
    } else if (!job->body.empty() && (!type.starts_with("application/x-www-form-urlencoded") || is_a_file(job->body))) {
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
        if (job->pictures.size() > options_.queue)
            full = problem(ProblemKind::TooMany,
                           fmt::format("{} pictures, the limit is {}", job->pictures.size(), options_.queue));
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

}  // namespace talpa::webapp
