#include "compiler/import/pt2/node_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace talpa::compiler::import::pt2 {
namespace {

/// The last "File …, line N" of a traceback that is not PyTorch's own, else the very last: "model.py:12".
std::string source_line(std::string_view trace) {
    std::string best, last;
    for (std::size_t at = 0; (at = trace.find("File \"", at)) != trace.npos;) {
        at += 6;
        const auto quote = trace.find('"', at);
        if (quote == trace.npos) break;
        const auto path = trace.substr(at, quote - at);
        constexpr std::string_view kLine = ", line ";
        if (trace.substr(quote + 1).starts_with(kLine)) {
            const auto digits = trace.substr(quote + 1 + kLine.size());
            const auto end = std::min(digits.find_first_not_of("0123456789"), digits.size());
            last = fmt::format("{}:{}", path.substr(path.rfind('/') + 1), digits.substr(0, end));
            if (path.find("/torch/nn/") == path.npos) best = last;
        }
        at = quote;
    }
    return best.empty() ? last : best;
}

/// The dotted path of the innermost module: levels "key,path,type" joined by ';', types may hold commas.
std::string module_path(std::string_view stack) {
    const auto level = stack.substr(stack.rfind(';') == stack.npos ? 0 : stack.rfind(';') + 1);
    const auto first = level.find(',');
    if (first == level.npos) return {};
    return std::string(level.substr(first + 1, level.find(',', first + 1) - first - 1));
}

}  // namespace

Source read_source(Json node, std::string_view target) {
    Source source{.target = std::string(target)};
    if (const Json name = node.find("name")) source.node = name.text().value_or("");
    const Json metadata = node.find("metadata");
    if (const Json trace = metadata.find("stack_trace")) source.line = source_line(trace.text().value_or(""));
    if (const Json stack = metadata.find("nn_module_stack")) source.module = module_path(stack.text().value_or(""));
    return source;
}

}  // namespace talpa::compiler::import::pt2
