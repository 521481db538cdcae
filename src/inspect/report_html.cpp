#include "inspect/report_html.h"

#include <fmt/format.h>

#include <filesystem>

#include "inspect/embedded.h"
#include "inspect/printable.h"
#include "inspect/report_json.h"

namespace talpa::inspect {
namespace {

// In the order in which they use one another.
constexpr const char* kScripts[] = {"html/format.js",   "html/state.js",  "html/summary.js", "html/chart.js",
                                    "html/timeline.js", "html/memory.js", "html/layers.js",  "html/operations.js",
                                    "html/file.js",     "html/main.js"};

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

// Inside a script element only "</script" and "<!--" could end the data: no "<" is left as such, nor what JavaScript of
// old takes for a line's end.
std::string script_data(const host::Json& json) {
    std::string out;
    const std::string text = json_text(json, -1);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '<')
            out += "\\u003c";
        else if (text.compare(i, 3, "\xe2\x80\xa8") == 0 || text.compare(i, 3, "\xe2\x80\xa9") == 0)
            out += text[i + 2] == '\xa8' ? "\\u2028" : "\\u2029", i += 2;
        else
            out += text[i];
    }
    return out;
}

}  // namespace

std::string report_html(const Report& report) {
    std::string script = "\"use strict\";\n(() => {\n";
    for (const char* name : kScripts) script += embedded(name);
    script += "})();";
    const std::pair<std::string_view, std::string> parts[] = {
        {"{{TITLE}}", escaped(printable(std::filesystem::path(report.name).filename().string())) + " – talpa"},
        {"{{CSS}}", std::string(embedded("html/report.css"))},
        {"{{DATA}}", script_data(report_json(report))},
        {"{{JS}}", std::move(script)},
    };
    // One pass over the template, so that nothing in the data is taken for a place to fill.
    std::string_view page = embedded("html/report.html");
    std::string out;
    while (true) {
        const std::size_t at = page.find("{{");
        out += page.substr(0, at);
        if (at == std::string_view::npos) return out;
        page.remove_prefix(at);
        bool filled = false;
        for (const auto& [place, text] : parts) {
            if (!page.starts_with(place)) continue;
            out += text;
            page.remove_prefix(place.size());
            filled = true;
            break;
        }
        if (!filled) {
            out += page.substr(0, 2);
            page.remove_prefix(2);
        }
    }
}

}  // namespace talpa::inspect
