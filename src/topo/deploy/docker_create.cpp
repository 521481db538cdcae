#include "topo/deploy/docker_create.h"

#include <algorithm>
#include <charconv>

#include "base/host/json.h"
#include "topo/system/json_answer.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Json;

constexpr Milliseconds kLimit(120'000);
// The oldest API that we meet (Docker 20.10); newer engines speak it too.
constexpr const char* kCreate = "/v1.41/containers/create";

// The networks of a container that was never started: only their aliases are ours.
Json endpoints(const Json& one) {
    Json all = Json::object();
    const std::string id = text_of(at(one, "Id"));
    const Json& networks = at(one, "NetworkSettings", "Networks");
    if (!networks.is_object()) return all;
    for (const auto& [name, network] : networks.items()) {
        Json aliases = Json::array();
        if (const Json& there = at(network, "Aliases"); there.is_array())
            for (const Json& alias : there)
                if (alias.is_string() && !id.starts_with(alias.get<std::string>())) aliases.push_back(alias);
        all[name] = {{"Aliases", aliases}};
    }
    return all;
}

}  // namespace

bool needs_api(EngineKind kind, const Desired& d) {
    return kind == EngineKind::Docker && d.healthcheck && !d.healthcheck->disabled && d.healthcheck->test.size() > 1 &&
           d.healthcheck->test.front() == "CMD";
}

host::Result<std::string> create_body(const std::string& inspect_json, const std::vector<std::string>& test) {
    const Json document = Json::parse(inspect_json, nullptr, false);
    if (document.is_discarded() || !document.is_array() || document.size() != 1 ||
        !at(document[0], "Config").is_object() || !at(document[0], "HostConfig").is_object())
        return host::failure(ErrorCode::InvalidExternalData, "docker inspect answered something that is not its JSON");
    const Json& one = document[0];
    Json body = at(one, "Config");
    // It is the short form of an ID that will not be.
    const Json& name = at(body, "Hostname");
    const Json& id = at(one, "Id");
    if (name.is_string() && id.is_string() && id.get<std::string>().starts_with(name.get<std::string>()))
        body.erase("Hostname");
    if (!at(body, "Healthcheck").is_object()) body["Healthcheck"] = Json::object();
    body["Healthcheck"]["Test"] = test;
    body["HostConfig"] = at(one, "HostConfig");
    body["NetworkingConfig"] = {{"EndpointsConfig", endpoints(one)}};
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

host::Result<void> parse_create_answer(const std::string& answer) {
    constexpr std::string_view kStart = "HTTP/1.";
    int status = 0;
    const std::size_t space = answer.find(' ');
    if (answer.starts_with(kStart) && space != std::string::npos)
        std::from_chars(answer.data() + space + 1, answer.data() + std::min(answer.size(), space + 4), status);
    if (status >= 200 && status < 300) return {};
    if (status == 0)
        return host::failure(ErrorCode::InvalidExternalData, "the engine's API answered something that is not HTTP");
    // The body may come in chunks; the message is in one of its lines all the same.
    std::string said;
    for (const std::string& line : lines_of(answer)) {
        const Json document = line.starts_with('{') ? Json::parse(line, nullptr, false) : Json();
        if (const Json& text = at(document, "message"); text.is_string()) said = text.get<std::string>();
    }
    return host::failure(ErrorCode::AccessFailed, "the engine's API refused the container (status {}): {}", status,
                         printable(trimmed(said), LineEnds::Replace));
}

host::Result<void> run_through_api(const Engine& engine, const Desired& d) {
    std::vector<std::string> words = d.words;
    if (words.size() < 2 || words[0] != "run" || words[1] != "--detach")
        return host::failure(ErrorCode::Internal, "{} is not made by `run --detach`", d.name);
    words.erase(words.begin(), words.begin() + 2);
    words.insert(words.begin(), "create");
    TRY(engine.run(words, kLimit));
    TRY_ASSIGN(const Outcome made, engine.run({"inspect", "--type", "container", d.name}, kLimit));
    TRY_ASSIGN(const std::string body, create_body(made.out, d.healthcheck->test));
    TRY(engine.run({"rm", "--force", d.name}, kLimit));
    Command post = engine.command({"system", "dial-stdio"});
    post.timeout = kLimit;
    post.input_stays_open = true;  // an engine takes the end of its input for a caller that has gone
    post.input = fmt::format(
        "POST {}?name={} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n{}",
        kCreate, d.name, body.size(), body);
    TRY_ASSIGN(const Outcome answered, capture(post));
    if (answered.timed_out)
        return host::failure(ErrorCode::Timeout, "the engine's API did not answer within {} s", kLimit.count() / 1000);
    if (answered.out.empty())
        return host::failure(ErrorCode::AccessFailed, "`docker system dial-stdio` failed (exit status {}): {}",
                             answered.status, printable(trimmed(answered.err), LineEnds::Replace));
    TRY(parse_create_answer(answered.out));
    TRY(engine.run({"start", d.name}, kLimit));
    return {};
}

}  // namespace talpa::topo
