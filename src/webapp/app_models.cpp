// /api/models: those of the command line, and one's own.
#include <fmt/format.h>

#include "link/crc32.h"
#include "webapp/app.h"
#include "webapp/http/multipart.h"

namespace talpa::webapp {

void App::get_models(http::Request&, const ExchangePtr& exchange) {
    host::Json list = host::Json::array();
    for (const ModelPtr& model : models_.all()) list.push_back(model->json());
    reply(exchange, "/api/models", host::Json{{"models", std::move(list)}, {"uploads", options_.uploads}});
}

void App::get_model(http::Request& request, const ExchangePtr& exchange) {
    const ModelPtr model = models_.find(request.path.substr(std::string_view("/api/models/").size()));
    if (model == nullptr) return reply(exchange, "/api/models/", problem(ProblemKind::NoModel));
    host::Json json = model->json();
    json["layers"] = model->layers;
    reply(exchange, "/api/models/", json);
}

void App::remove_model(http::Request& request, const ExchangePtr& exchange) {
    if (!models_.remove(request.path.substr(std::string_view("/api/models/").size())))
        return reply(exchange, "/api/models/", problem(ProblemKind::NoModel, "only uploaded models can be removed"));
    hub_.send("models", host::Json::object());
    reply(exchange, "/api/models/", host::Json{{"removed", true}});
}

void App::add_model(http::Request& request, const ExchangePtr& exchange) {
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
    classifier::Labels read;
    std::string id_of_labels;
    if (!labels.empty()) {
        auto given = classifier::Labels::of_text(labels, "the label file", 0);
        if (!given) return refuse(invalid(given.error()));
        read = *std::move(given);
        id_of_labels =
            fmt::format("{:08x}", link::crc32({reinterpret_cast<const std::uint8_t*>(labels.data()), labels.size()}));
    } else if (labels_.one_for_each(opened->classes)) {
        read = labels_;
    }
    auto model = make_model(*std::move(opened), std::move(read), true, id_of_labels);
    if (!model) return refuse(invalid(model.error()));
    if (const std::string& target = (*model)->target; !target.empty() && target != kTarget)
        return refuse(problem(ProblemKind::InvalidModel, fmt::format("{} was compiled for {}", name, target)));
    const ModelPtr there = models_.add(*std::move(model));
    hub_.send("models", host::Json::object());
    reply(exchange, "/api/models", there->json(), 201);
}

}  // namespace talpa::webapp
