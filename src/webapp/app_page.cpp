// What the binary carries: the page, its samples, the description of the API.
#include "webapp/app.h"
#include "webapp/embedded.h"

namespace talpa::webapp {
namespace {

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

}  // namespace

void App::get_samples(http::Request&, const ExchangePtr& exchange) {
    host::Json list = host::Json::array();
    for (const Sample& sample : samples_)
        list.push_back({{"name", sample.name}, {"url", "/api/samples/" + sample.name}});
    reply(exchange, "/api/samples", host::Json{{"samples", std::move(list)}});
}

void App::get_sample(http::Request& request, const ExchangePtr& exchange) {
    const std::string name = request.path.substr(std::string_view("/api/samples/").size());
    for (const Sample& sample : samples_) {
        if (sample.name != name) continue;
        http::Response response{
            .status = 200, .content_type = sample.content_type, .body = {}, .fixed_body = sample.bytes, .headers = {}};
        response.headers.emplace_back("Cache-Control", "private, max-age=3600");
        return reply(exchange, "/api/samples/", std::move(response));
    }
    reply(exchange, "/api/samples/", problem(ProblemKind::NotFound, "no such sample"));
}

void App::get_openapi(http::Request&, const ExchangePtr& exchange) {
    http::Response response;
    response.fixed_body = embedded("openapi.json");
    reply(exchange, "/api/openapi.json", std::move(response));
}

void App::get_page(http::Request&, const ExchangePtr& exchange) {
    http::Response response;
    response.content_type = "text/html; charset=utf-8";
    response.fixed_body = embedded("ui/index.html");
    response.headers.emplace_back("Cache-Control", "no-cache");
    reply(exchange, "/", std::move(response));
}

void App::get_asset(http::Request& request, const ExchangePtr& exchange) {
    const std::string_view bytes = embedded("ui" + request.path);
    if (bytes.empty()) return reply(exchange, "/assets/", problem(ProblemKind::NotFound, request.path));
    http::Response response;
    response.content_type = type_of(request.path);
    response.fixed_body = bytes;
    response.headers.emplace_back("Cache-Control", "no-cache");
    reply(exchange, "/assets/", std::move(response));
}

}  // namespace talpa::webapp
