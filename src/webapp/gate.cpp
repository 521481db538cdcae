#include "webapp/gate.h"

#include <arpa/inet.h>

#include <algorithm>

namespace talpa::webapp {
namespace {

constexpr std::string_view kCookie = "talpa_token";

/// For a person who opens the page; it leads to /?token=.
constexpr std::string_view kTokenPage = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>NPU classifier</title>
<main>
<h1>NPU classifier</h1>
<form action="/" method="get">
<p><label for="token">This server wants its token:</label> <input id="token" name="token" type="password" required autofocus> <button>Open</button></p>
</form>
</main>
</html>
)";

std::string_view without_port(std::string_view host) {
    if (host.starts_with('[')) {
        const std::size_t end = host.find(']');
        return end == std::string_view::npos ? host : host.substr(1, end - 1);
    }
    return host.substr(0, host.rfind(':'));
}

/// Without port, in lower case, without the root's dot (RFC 4343, RFC 1034 section 3.1).
std::string plain_name(std::string_view host) {
    std::string name(without_port(host));
    for (char& c : name)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    if (name.ends_with('.')) name.pop_back();
    return name;
}

/// Time does not tell how much of it was right.
bool same_secret(std::string_view a, std::string_view b) {
    unsigned difference = a.size() != b.size();
    for (std::size_t i = 0; i < b.size(); ++i)
        difference |= static_cast<unsigned char>(b[i]) ^ static_cast<unsigned char>(i < a.size() ? a[i] : 0);
    return difference == 0;
}

std::string cookie_of(std::string_view header) {
    while (!header.empty()) {
        const std::size_t end = std::min(header.find(';'), header.size());
        std::string_view pair = header.substr(0, end);
        header.remove_prefix(std::min(end + 1, header.size()));
        while (pair.starts_with(' ')) pair.remove_prefix(1);
        if (pair.size() > kCookie.size() && pair[kCookie.size()] == '=' && pair.starts_with(kCookie))
            return http::percent_decoded(pair.substr(kCookie.size() + 1), false);
    }
    return {};
}

std::string percent_encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

}  // namespace

bool is_local_host_name(std::string_view host) {
    const std::string name = plain_name(host);
    in_addr v4{};
    in6_addr v6{};
    if (::inet_pton(AF_INET, name.c_str(), &v4) == 1 || ::inet_pton(AF_INET6, name.c_str(), &v6) == 1) return true;
    if (name.empty() || name.find_first_of(" /\\@#?") != std::string::npos) return false;
    if (name.find('.') == std::string::npos) return true;
    for (const std::string_view ending : {".local", ".lan", ".home.arpa", ".internal", ".localhost"})
        if (name.ends_with(ending)) return true;
    return false;
}

std::optional<http::Response> Gate::refuse(const http::Head& head, bool public_path) const {
    const std::string host = head.header("host");
    const bool named = std::ranges::any_of(allowed_hosts_, [&](const std::string& allowed) {
        return allowed == "*" || plain_name(host) == plain_name(allowed);
    });
    // Plain probes (HTTP/1.0) name no host; what is public says nothing that a stranger's page could use.
    const bool probe = public_path && host.empty();
    if (!named && !probe && !is_local_host_name(host))
        return problem(ProblemKind::WrongHost, fmt::format("the host is '{}'", host)).response();

    // Pages of other sites may link here and load nothing else; what changes anything must come from our own page or
    // from a program.
    const std::string origin = head.header("origin"), site = head.header("sec-fetch-site");
    const bool changes = head.method != "GET" && head.method != "HEAD";
    if (!origin.empty() && origin != "http://" + host && origin != "https://" + host)
        return problem(ProblemKind::WrongOrigin, fmt::format("the origin is '{}'", origin)).response();
    const bool navigation = !changes && head.header("sec-fetch-mode") == "navigate";
    if ((site == "cross-site" || site == "same-site") && !navigation)
        return problem(ProblemKind::WrongOrigin, "the browser says that another site asks").response();

    if (token_.empty() || public_path) return std::nullopt;
    const std::string authorization = head.header("authorization");
    if (authorization.starts_with("Bearer ") && same_secret(std::string_view(authorization).substr(7), token_))
        return std::nullopt;
    if (same_secret(cookie_of(head.header("cookie")), token_)) return std::nullopt;
    if (head.method == "GET" && head.path == "/" && same_secret(head.query_value("token"), token_)) {
        // The token leaves the address bar and becomes a cookie that scripts cannot read.
        http::Response to{.status = 303, .content_type = "text/plain", .body = "", .fixed_body = {}, .headers = {}};
        to.headers = {
            {"Location", "/"},
            {"Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", kCookie, percent_encoded(token_))}};
        return to;
    }
    http::Response refused = problem(ProblemKind::Unauthorized).response();
    if (head.method == "GET" && head.path == "/" && head.header("accept").find("text/html") != std::string::npos) {
        refused.content_type = "text/html; charset=utf-8";
        refused.body = kTokenPage;
    }
    refused.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refused;
}

}  // namespace talpa::webapp
