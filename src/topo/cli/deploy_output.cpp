#include "topo/cli/deploy_output.h"

#include <unistd.h>

#include <cstdio>

#include "base/host/json.h"
#include "base/host/terminal.h"
#include "topo/system/log.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Json;

std::string dumped(const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

void put(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

std::string_view applied_by(const Method& method) {
    return method.plugin ? "docker compose" : "topo";
}

std::string left(std::uint64_t bytes, double rate) {
    if (rate <= 0) return "";
    const auto seconds = static_cast<std::uint64_t>(static_cast<double>(bytes) / rate);
    return seconds >= 60 ? fmt::format(", {} min {} s left", seconds / 60, seconds % 60)
                         : fmt::format(", {} s left", seconds);
}

}  // namespace

DeployOutput::DeployOutput(bool json) : json_(json), terminal_(::isatty(STDERR_FILENO) != 0 && !json) {}

void DeployOutput::stage(std::string_view title) {
    end();
    started_ = std::chrono::steady_clock::now();
    sent_ = 0;
    if (json_)
        put(dumped({{"event", "stage"}, {"stage", title}}, -1));
    else
        header(title);
}

void DeployOutput::note(std::string_view text) {
    end();
    info(text);
}

void DeployOutput::method(const Method& method) {
    end();
    if (json_)
        put(dumped({{"event", "method"}, {"appliedBy", applied_by(method)}, {"why", method.why}}, -1));
    else
        log(Level::Debug, fmt::format("the project is applied by {}: {}", applied_by(method), method.why));
}

void DeployOutput::said(std::string_view line) {
    end();
    if (!json_ && logging().least <= Level::Info) put(printable(line, LineEnds::Replace) + "\n");
}

void DeployOutput::container(const std::string& name, std::string_view what) {
    end();
    if (json_)
        put(dumped({{"event", "container"}, {"container", printable(name)}, {"action", what}}, -1));
    else if (logging().least <= Level::Info)
        put(fmt::format("{}  {}\n", printable(name, LineEnds::Replace), what));
}

void DeployOutput::transfer(const TransferProgress& p) {
    const std::lock_guard lock(mutex_);
    sent_ = std::max(sent_, p.all_done);
    const auto now = std::chrono::steady_clock::now();
    const bool complete = p.all_done >= p.all_total;
    if (now - last_ < std::chrono::milliseconds(json_ ? 1000 : 150) && !complete) return;
    last_ = now;
    if (json_) {
        put(dumped({{"event", "transfer"},
                    {"layer", p.layer},
                    {"done", p.done},
                    {"total", p.total},
                    {"allDone", p.all_done},
                    {"allTotal", p.all_total},
                    {"bytesPerSecond", static_cast<std::uint64_t>(p.bytes_per_second)}},
                   -1));
    } else if (terminal_) {
        const double part = p.all_total == 0 ? 1 : static_cast<double>(p.all_done) / static_cast<double>(p.all_total);
        host::say(fmt::format("\r{} of {} ({:.0f} %), {}/s{}, layer {}\033[K", human_bytes(p.all_done),
                              human_bytes(p.all_total), part * 100,
                              human_bytes(static_cast<std::uint64_t>(p.bytes_per_second)),
                              left(p.all_total - std::min(p.all_total, p.all_done), p.bytes_per_second), p.layer));
        shown_ = true;
    }
}

void DeployOutput::transfer_done(const TransferPlan& plan) {
    end();
    if (json_) {
        put(dumped({{"event", "transferred"},
                    {"images", plan.send.size()},
                    {"unchanged", plan.present.size() + plan.only_tag.size()},
                    {"bytes", sent_}},
                   -1));
        return;
    }
    if (logging().least > Level::Info) return;
    for (const ImageToSend& one : plan.present) put(fmt::format("{}  Unchanged\n", short_image_name(one.target_name)));
    for (const ImageToSend& one : plan.only_tag) put(fmt::format("{}  Tagged\n", short_image_name(one.target_name)));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    for (const ImageToSend& one : plan.send) put(fmt::format("{}  Sent\n", short_image_name(one.target_name)));
    if (!plan.send.empty() && sent_ > 0) put(fmt::format("{} sent in {:.1f} s\n", human_bytes(sent_), seconds));
}

void DeployOutput::success(const std::string& message) {
    if (json_) {
        put(dumped({{"event", "success"}, {"message", message}}, -1));
        return;
    }
    header("Deployment Success");
    put(message);
}

void DeployOutput::end() {
    if (shown_) host::say("\r\033[K");
    shown_ = false;
}

std::string plan_plain(const DeployPlan& plan) {
    std::string out = fmt::format("Project {}, applied by {} ({})\n", plan.project.name, applied_by(plan.method),
                                  printable(plan.method.why, LineEnds::Replace));
    const auto part = [&](const char* title, const std::vector<std::string>& rows) {
        if (rows.empty()) return;
        out += fmt::format("\n{}\n", title);
        for (const std::string& row : rows) out += "  " + printable(row) + "\n";
    };
    std::vector<std::string> rows;
    for (const PreflightFinding& f : plan.findings)
        rows.push_back(
            fmt::format("{}: {}{}", f.error ? "error" : "warning", f.message, f.fix.empty() ? "" : "\n      " + f.fix));
    part("Findings", rows);
    part("Build", plan.build);
    part("Pull", plan.pull);
    rows.clear();
    for (const ImageToSend& one : plan.transfer.send) {
        std::size_t missing = 0;
        for (const std::string& layer : one.image.layers)
            missing += std::find(plan.transfer.missing_layers.begin(), plan.transfer.missing_layers.end(), layer) !=
                       plan.transfer.missing_layers.end();
        rows.push_back(fmt::format("{} ({}; {} of {} layers)", short_image_name(one.target_name),
                                   human_bytes(one.image.size_bytes), missing, one.image.layers.size()));
    }
    for (const ImageToSend& one : plan.transfer.present)
        rows.push_back(short_image_name(one.target_name) + " (unchanged)");
    for (const std::string& name : plan.unknown_images) rows.push_back(name + " (not built yet)");
    part("Send", rows);
    rows.clear();
    for (const Step& step : plan.apply.steps)
        rows.push_back(fmt::format("{} {}{}", name_of(step.act),
                                   step.act == Act::Remove ? step.existing->name : step.desired.name,
                                   step.why.empty() ? "" : " (" + step.why + ")"));
    for (const Container& orphan : plan.apply.orphans) rows.push_back("orphan " + orphan.name);
    part("Containers", rows);
    return out;
}

std::string plan_json(const DeployPlan& plan) {
    Json document = {{"project", plan.project.name}, {"appliedBy", applied_by(plan.method)},
                     {"why", plan.method.why},       {"findings", Json::array()},
                     {"build", plan.build},          {"pull", plan.pull},
                     {"images", Json::array()},      {"containers", Json::array()},
                     {"orphans", Json::array()}};
    for (const PreflightFinding& f : plan.findings)
        document["findings"].push_back(
            {{"code", f.code}, {"severity", f.error ? "error" : "warning"}, {"message", f.message}, {"fix", f.fix}});
    const auto image = [&](const ImageToSend& one, const char* action) {
        Json missing = Json::array();
        for (const std::string& layer : one.image.layers)
            if (std::find(plan.transfer.missing_layers.begin(), plan.transfer.missing_layers.end(), layer) !=
                plan.transfer.missing_layers.end())
                missing.push_back(layer);
        document["images"].push_back({{"name", short_image_name(one.target_name)},
                                      {"id", one.image.id},
                                      {"action", action},
                                      {"bytes", one.image.size_bytes},
                                      {"layers", one.image.layers.size()},
                                      {"missingLayers", std::string_view(action) == "send" ? missing : Json::array()}});
    };
    for (const ImageToSend& one : plan.transfer.send) image(one, "send");
    for (const ImageToSend& one : plan.transfer.only_tag) image(one, "tag");
    for (const ImageToSend& one : plan.transfer.present) image(one, "keep");
    for (const std::string& name : plan.unknown_images)
        document["images"].push_back({{"name", name}, {"action", "build"}});
    for (const Step& step : plan.apply.steps) {
        document["containers"].push_back({{"name", step.act == Act::Remove ? step.existing->name : step.desired.name},
                                          {"action", name_of(step.act)}});
        if (!step.why.empty()) document["containers"].back()["reason"] = step.why;
    }
    for (const Container& orphan : plan.apply.orphans) document["orphans"].push_back(orphan.name);
    return dumped(document, 2);
}

}  // namespace talpa::topo
