#include "topo/project/catalogue.h"

#include "base/host/json.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Json;

std::unexpected<host::Error> bad(const std::string& what) {
    return host::failure(ErrorCode::InvalidArgument, "the catalogue is not readable: {}", what);
}

host::Result<std::string> text_of(const Json& object, const char* key, const std::string& where) {
    const auto it = object.find(key);
    if (it == object.end() || it->is_null()) return std::string();
    if (!it->is_string()) return bad(fmt::format("{}.{} is not a text", where, key));
    return it->get<std::string>();
}

host::Result<CatalogueParameter> parameter(const std::string& name, const Json& object, const std::string& where) {
    CatalogueParameter p;
    p.name = name;
    if (!object.is_object()) return bad(where + " is not an object");
    TRY_ASSIGN(p.description, text_of(object, "description", where));
    if (const auto it = object.find("required"); it != object.end()) {
        if (!it->is_boolean()) return bad(where + ".required is not a boolean");
        p.required = it->get<bool>();
    }
    for (auto [key, to] : {std::pair("example", &p.example), std::pair("default", &p.default_value)})
        if (object.contains(key)) {
            TRY_ASSIGN(*to, text_of(object, key, where));
        }
    if (const auto it = object.find("hints"); it != object.end()) p.hints_json = it->dump();
    return p;
}

host::Result<CatalogueProject> project(const Json& object, const std::string& where) {
    CatalogueProject p;
    if (!object.is_object()) return bad(where + " is not an object");
    TRY_ASSIGN(p.name, text_of(object, "name", where));
    TRY_ASSIGN(p.description, text_of(object, "description", where));
    TRY_ASSIGN(p.url, text_of(object, "url", where));
    TRY_ASSIGN(p.ref, text_of(object, "ref", where));
    if (const auto it = object.find("features"); it != object.end() && !it->is_null()) {
        if (!it->is_array()) return bad(where + ".features is not a list");
        for (const Json& feature : *it) {
            if (!feature.is_string()) return bad(where + ".features holds something that is no text");
            p.features.push_back(feature.get<std::string>());
        }
    }
    if (const auto it = object.find("parameters"); it != object.end() && !it->is_null()) {
        if (!it->is_object()) return bad(where + ".parameters is not an object");
        for (const auto& [name, value] : it->items()) {
            TRY_ASSIGN(CatalogueParameter one, parameter(name, value, where + ".parameters." + name));
            p.parameters.push_back(std::move(one));
        }
    }
    return p;
}

}  // namespace

host::Result<std::vector<CatalogueProject>> parse_catalogue(const std::string& text) {
    const Json document = Json::parse(text, nullptr, false);
    if (document.is_discarded()) return bad("it is not JSON");
    if (!document.is_object()) return bad("it is not a JSON object");
    TRY_ASSIGN(const std::string version, text_of(document, "version", "catalogue"));
    const std::string digits = version.substr(version.starts_with('v') ? 1 : 0);
    if (version.empty()) return bad("it has no version (v2 is wanted)");
    if (digits.substr(0, digits.find('.')) != "2")
        return bad(fmt::format("its version is {}, this topo reads v2", printable(version, LineEnds::Replace)));
    std::vector<CatalogueProject> projects;
    const auto list = document.find("projects");
    if (list == document.end() || !list->is_array()) return bad("it has no list of projects");
    for (std::size_t i = 0; i < list->size(); ++i) {
        TRY_ASSIGN(CatalogueProject one, project((*list)[i], fmt::format("projects[{}]", i)));
        projects.push_back(std::move(one));
    }
    return projects;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
    std::vector<std::string> lines;
    for (const std::string& paragraph : lines_of(text)) {
        std::string line;
        for (const std::string& word : split(paragraph, " ")) {
            if (word.empty()) continue;
            if (!line.empty() && columns(line) + 1 + columns(word) > width) {
                lines.push_back(std::move(line));
                line.clear();
            }
            line += (line.empty() ? "" : " ") + word;
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

std::string catalogue_plain(const std::vector<CatalogueProject>& projects, const std::vector<Compatibility>& compatible,
                            bool colours) {
    const auto coloured = [&](const char* code, const std::string& text) {
        return colours ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
    };
    const auto line = [](const std::string& text) { return printable(text, LineEnds::Replace); };
    std::string out;
    for (std::size_t i = 0; i < projects.size(); ++i) {
        const CatalogueProject& p = projects[i];
        if (i < compatible.size()) out += compatible[i].supported ? "✅ " : "❌ ";
        out += coloured("36", line(p.name)) + "\n";
        // Quoted when it must be, so that it can be pasted.
        out += fmt::format("  {}\n    topo clone {}\n", coloured("34", "Clone:"),
                           line(shell_quoted(p.ref.empty() ? p.url : p.url + "#" + p.ref)));
        if (!p.features.empty()) {
            out += fmt::format("  {}\n", coloured("34", "Features:"));
            for (const std::string& feature : p.features) {
                bool lacks = false;
                if (i < compatible.size())
                    for (const std::string& missing : compatible[i].missing) lacks = lacks || missing == feature;
                out += fmt::format("    {}{}\n", line(feature), lacks ? " (missing on the target)" : "");
            }
        }
        out += "\n";
        for (const std::string& text : wrapped(printable(p.description), 78))
            out += text.empty() ? "\n" : "  " + text + "\n";
        out += "\n";
    }
    return out;
}

std::string catalogue_json(const std::vector<CatalogueProject>& projects,
                           const std::vector<Compatibility>& compatible) {
    Json list = Json::array();
    for (std::size_t i = 0; i < projects.size(); ++i) {
        const CatalogueProject& p = projects[i];
        Json one;
        one["description"] = p.description;
        one["features"] = p.features;
        one["name"] = p.name;
        if (!p.parameters.empty()) {
            Json& all = one["parameters"];
            for (const CatalogueParameter& parameter : p.parameters) {
                Json& to = all[parameter.name];
                to["description"] = parameter.description;
                to["required"] = parameter.required;
                if (parameter.example) to["example"] = *parameter.example;
                if (parameter.default_value) to["default"] = *parameter.default_value;
                if (!parameter.hints_json.empty()) to["hints"] = Json::parse(parameter.hints_json);
            }
        }
        one["ref"] = p.ref;
        one["url"] = p.url;
        if (i < compatible.size()) {
            one["compatibility"] = compatible[i].supported ? "supported" : "unsupported";
            if (!compatible[i].missing.empty()) one["missingFeatures"] = compatible[i].missing;
        }
        list.push_back(std::move(one));
    }
    return list.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace talpa::topo
