#include "classifier/run_result.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/host/grouped.h"
#include "base/host/printable.h"

namespace talpa::classifier {
namespace {

using Scores = Classification::Scores;

host::Json top_of(const Classification& c, const Labels& labels) {
    host::Json top = host::Json::array();
    for (const auto& ranked : c.top) {
        host::Json entry{{"class", ranked.index}};
        const std::string& label = labels.of(ranked.index);
        entry["label"] = label.empty() ? host::Json() : host::Json(label);
        if (c.scores == Scores::Raw)
            entry["probability"] = nullptr, entry["raw"] = static_cast<std::int64_t>(ranked.score);
        else
            entry["probability"] = ranked.score;
        top.push_back(std::move(entry));
    }
    return top;
}

host::Json value_of(const NumberOutput& number) {
    switch (number.kind) {
        case runtime::Value::Kind::Bool:
            return number.integer != 0;
        case runtime::Value::Kind::Int:
            return number.integer;
        default:
            return number.real;
    }
}

void print_top(std::FILE* to, const Classification& c, const Labels& labels, const host::Style& style) {
    for (const auto& ranked : c.top) {
        const std::string& label = labels.of(ranked.index);
        const std::string name = label.empty() ? "" : " " + host::printable(label, host::LineEnds::Replace);
        if (c.scores == Scores::Raw) {
            fmt::print(to, "  {:6}  {:4}{}\n", static_cast<std::int64_t>(ranked.score), ranked.index, name);
        } else {
            constexpr double kBarWidth = 24;
            const std::string bar(static_cast<std::size_t>(std::clamp(ranked.score, 0.0, 1.0) * kBarWidth + 0.5), '#');
            fmt::print(to, "  {:5.1f} %  {} {:4}{}\n", ranked.score * 100, style.green(fmt::format("{:24}", bar)),
                       ranked.index, &ranked == &c.top.front() ? style.bold(name) : name);
        }
    }
    if (c.scores == Scores::Raw)
        fmt::print(
            to, "  {}\n",
            style.dim("raw scores: the program does not say what its integers mean, so there are no probabilities"));
}

}  // namespace

host::Json to_json(const RunResult& result, const Labels& labels) {
    host::Json json = host::Json::object();
    if (!result.image.empty()) json["image"] = result.image;
    if (!result.error.empty()) {
        json["error"] = result.error;
        return json;
    }
    json["top"] = result.classification ? top_of(*result.classification, labels) : host::Json::array();
    if (result.classification) json["scores"] = result.classification->scores == Scores::Raw ? "raw" : "probability";
    json["outputs"] = host::Json::array();
    for (const OutputFile& output : result.outputs)
        json["outputs"].push_back({{"shape", output.shape},
                                   {"dtype", output.dtype},
                                   {"order", "C"},
                                   {"dim_order", output.dim_order},
                                   {"file", output.file.empty() ? host::Json() : host::Json(output.file)}});
    for (const NumberOutput& number : result.numbers)
        json["numbers"].push_back(
            {{"output", number.index}, {"type", runtime::value_kind_name(number.kind)}, {"value", value_of(number)}});
    const Latency latency = latency_of(result.runs_ms);
    json["latency_ms"] = {{"min", latency.min},
                          {"median", latency.median},
                          {"p90", latency.p90},
                          {"max", latency.max},
                          {"runs", latency.runs}};
    json["npu_cycles"] = result.npu_cycles == 0 ? host::Json() : host::Json(result.npu_cycles);
    for (const auto& [phase, ms] : result.phases_ms) json["time_ms"][phase] = ms;
    return json;
}

std::string document_of(const std::vector<RunResult>& results, bool several, const Labels& labels) {
    host::Json document;
    if (several) {
        document["results"] = host::Json::array();
        for (const RunResult& result : results) document["results"].push_back(to_json(result, labels));
    } else {
        document = to_json(results.front(), labels);
    }
    return document.dump(2, ' ', false, host::Json::error_handler_t::replace);
}

void print(std::FILE* to, const RunResult& result, const Labels& labels, const host::Style& style) {
    if (!result.image.empty()) fmt::print(to, "{}\n", style.bold(host::printable(result.image)));
    if (result.classification) print_top(to, *result.classification, labels, style);
    for (std::size_t i = 0; i < result.outputs.size(); ++i) {
        const OutputFile& output = result.outputs[i];
        if (result.classification && output.file.empty()) continue;  // the ranking has shown it
        fmt::print(to, "  output {}: {} [{}]{}\n", i, output.dtype, fmt::join(output.shape, ", "),
                   output.file.empty() ? "" : " -> " + host::printable(output.file));
    }
    for (const NumberOutput& number : result.numbers)
        fmt::print(to, "  output {}: {} {}\n", number.index, runtime::value_kind_name(number.kind),
                   value_of(number).dump());
    const Latency latency = latency_of(result.runs_ms);
    std::string line = latency.runs == 1
                           ? fmt::format("{:.1f} ms", latency.median)
                           : fmt::format("{} runs: min {:.3f}, median {:.3f}, p90 {:.3f}, max {:.3f} ms", latency.runs,
                                         latency.min, latency.median, latency.p90, latency.max);
    if (result.npu_cycles != 0)
        line += fmt::format("; NPU {} cycles{}", host::grouped(result.npu_cycles),
                            result.cycles_measured ? "" : " (estimated)");
    fmt::print(to, "  {}\n{}", style.dim(line), histogram(result.runs_ms, 8));
}

}  // namespace talpa::classifier
