#include "topo/deploy/record.h"

#include <algorithm>
#include <ctime>

#include "base/host/json.h"
#include "topo/deploy/words.h"
#include "topo/system/json_answer.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Json;

// The project's name has only letters, digits, '-' and '_' (compose_model.cpp).
std::string folder_line(const std::string& project) {
    return "d=\"${XDG_STATE_HOME:-$HOME/.local/state}/topo/\"" + shell_quoted(project) + "\n";
}

std::int64_t number_of(const Json& object, const char* key) {
    const auto it = object.find(key);
    return it != object.end() && it->is_number_integer() ? it->get<std::int64_t>() : 0;
}

std::vector<std::string> texts_of(const Json& list) {
    std::vector<std::string> texts;
    if (list.is_array())
        for (const Json& item : list)
            if (item.is_string()) texts.push_back(item.get<std::string>());
    return texts;
}

constexpr std::pair<const char*, Dependency::Condition> kConditions[] = {
    {"started", Dependency::Condition::Started},
    {"healthy", Dependency::Condition::Healthy},
    {"completed", Dependency::Condition::Completed},
};

Json json_of(const Dependency& dependency) {
    Json one = {{"service", dependency.service}};
    for (const auto& [name, condition] : kConditions)
        if (condition == dependency.condition) one["condition"] = name;
    return one;
}

// Whom it waits for. A condition of a newer topo is one that waits longer than for the start.
std::vector<Dependency> dependencies_of(const Json& list) {
    std::vector<Dependency> all;
    for (const Json& one : list) {
        if (!one.is_object()) continue;
        Dependency dependency;
        dependency.service = text_of(at(one, "service"));
        const std::string wanted = text_of(at(one, "condition"));
        dependency.condition = Dependency::Condition::Healthy;
        for (const auto& [name, condition] : kConditions)
            if (wanted == name) dependency.condition = condition;
        if (!dependency.service.empty()) all.push_back(std::move(dependency));
    }
    return all;
}

Json json_of(const Desired& d) {
    Json one = {{"service", d.service},   {"name", d.name},        {"number", d.number},
                {"image", d.image},       {"imageId", d.image_id}, {"hash", d.hash},
                {"firmware", d.firmware}, {"imageAt", d.image_at}, {"words", d.words}};
    one["afterwards"] = d.afterwards;
    one["dependsOn"] = Json::array();
    for (const Dependency& dependency : d.depends_on) one["dependsOn"].push_back(json_of(dependency));
    for (const Port& port : d.ports)
        one["ports"].push_back({{"hostIp", port.host_ip},
                                {"published", port.published},
                                {"target", port.target},
                                {"protocol", port.protocol}});
    if (d.healthcheck) one["healthcheck"] = {{"disabled", d.healthcheck->disabled}, {"test", d.healthcheck->test}};
    return one;
}

bool knows_order(const Json& one) {
    return one.contains("dependsOn") && one["dependsOn"].is_array();
}

std::optional<Desired> desired_of(const Json& one) {
    if (!one.is_object()) return std::nullopt;
    Desired d;
    d.service = text_of(at(one, "service"));
    d.name = text_of(at(one, "name"));
    d.number = static_cast<int>(number_of(one, "number"));
    d.image = text_of(at(one, "image"));
    d.image_id = text_of(at(one, "imageId"));
    d.hash = text_of(at(one, "hash"));
    d.firmware = one.contains("firmware") && one["firmware"] == true;
    const std::int64_t image_at = number_of(one, "imageAt");
    if (one.contains("words")) d.words = texts_of(one["words"]);
    if (one.contains("afterwards") && one["afterwards"].is_array())
        for (const Json& words : one["afterwards"]) d.afterwards.push_back(texts_of(words));
    if (knows_order(one)) d.depends_on = dependencies_of(one["dependsOn"]);
    if (one.contains("ports") && one["ports"].is_array())
        for (const Json& port : one["ports"])
            if (port.is_object())
                d.ports.push_back({.host_ip = text_of(at(port, "hostIp")),
                                   .published = static_cast<std::uint16_t>(number_of(port, "published")),
                                   .target = static_cast<std::uint16_t>(number_of(port, "target")),
                                   .protocol = text_of(at(port, "protocol")),
                                   .mark = {}});
    if (one.contains("healthcheck") && one["healthcheck"].is_object()) {
        d.healthcheck.emplace();
        if (one["healthcheck"].contains("test")) d.healthcheck->test = texts_of(one["healthcheck"]["test"]);
        d.healthcheck->disabled = one["healthcheck"].contains("disabled") && one["healthcheck"]["disabled"] == true;
    }
    if (d.name.empty() || d.image_id.empty() || image_at <= 0 || static_cast<std::size_t>(image_at) >= d.words.size())
        return std::nullopt;
    d.image_at = static_cast<std::size_t>(image_at);
    return d;
}

constexpr std::pair<const char*, Begun> kBegun[] = {
    {"deploy", Begun::Deploy},
    {"rollback", Begun::Rollback},
    {"unrecorded", Begun::Unrecorded},
};

std::string now() {
    const std::time_t t = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&t, &utc);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string same_part(const Record& record) {
    std::string text;
    for (const Desired& d : record.containers) text += d.name + "|" + d.image_id + "|" + d.hash + "\n";
    return text;
}

}  // namespace

std::string record_json(const Record& record) {
    Json document = {{"version", 1}, {"time", record.time}, {"marked", record.marked}, {"containers", Json::array()}};
    for (const Desired& d : record.containers) document["containers"].push_back(json_of(d));
    return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

host::Result<Record> parse_record(const std::string& text) {
    const Json document = Json::parse(text, nullptr, false);
    if (document.is_discarded() || !document.is_object() || number_of(document, "version") != 1 ||
        !document.contains("containers") || !document["containers"].is_array())
        return host::failure(ErrorCode::InvalidExternalData, "the target's record of the deployment is damaged");
    Record record;
    record.time = text_of(at(document, "time"));
    record.marked = document.contains("marked") && document["marked"] == true;
    for (const Json& one : document["containers"]) {
        auto d = desired_of(one);
        if (!d)
            return host::failure(ErrorCode::InvalidExternalData,
                                 "the target's record of the deployment is damaged: container {}",
                                 record.containers.size());
        record.knows_order = record.knows_order && knows_order(one);
        record.containers.push_back(std::move(*d));
    }
    return record;
}

host::Result<Records> read_records(const Target& target, const std::string& project) {
    Command command =
        target.shell(folder_line(project) +
                     "for f in current previous; do echo \"=== $f\"; cat \"$d/$f.json\" 2>/dev/null; echo; done\n"
                     "echo === begun; if [ -e \"$d/begun\" ]; then echo \"begun $(head -n 1 \"$d/begun\")\"; fi");
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    Records records;
    const std::size_t second = outcome.out.find("\n=== previous\n");
    const std::size_t third = outcome.out.rfind("\n=== begun\n");
    if (!outcome.out.starts_with("=== current\n") || second == std::string::npos || third == std::string::npos ||
        third < second)
        return host::failure(ErrorCode::AccessFailed, "the target's records cannot be read: {}",
                             printable(trimmed(outcome.err), LineEnds::Replace));
    const std::string current = outcome.out.substr(12, second - 12),
                      previous = outcome.out.substr(second + 14, third - std::min(third, second + 14)),
                      begun(trimmed(std::string_view(outcome.out).substr(third + 11)));
    if (!begun.empty()) records.begun = Begun::Deploy;  // whatever else it says
    for (const auto& [word, what] : kBegun)
        if (begun == std::string("begun ") + word) records.begun = what;
    if (!trimmed(current).empty()) {
        TRY_ASSIGN(records.current, parse_record(current));
    }
    if (!trimmed(previous).empty()) {
        TRY_ASSIGN(records.previous, parse_record(previous));
    }
    return records;
}

host::Result<void> mark_begun(const Target& target, const std::string& project, Begun what) {
    std::string script = folder_line(project) + "rm -f \"$d/begun\"";
    for (const auto& [word, one] : kBegun)
        // On the disk before anything is changed: the machine may go off in it.
        if (one == what)
            script = folder_line(project) + fmt::format(
                                                "umask 077; mkdir -p \"$d\" && echo {} > \"$d/begun\" || exit 1\n"
                                                "sync \"$d/begun\" 2>/dev/null; true",
                                                word);
    Command command = target.shell(script);
    command.timeout = kQuestion;
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (outcome.ok()) return {};
    return host::failure(ErrorCode::AccessFailed,
                         "it cannot be noted on the target whether a deployment is at work: {}",
                         printable(trimmed(outcome.err), LineEnds::Replace));
}

host::Result<void> write_record(const Target& target, const std::string& project, const Record& record,
                                const host::Result<Records>& old) {
    Record stamped = record;
    stamped.time = now();
    stamped.marked = true;
    const bool same = old && old->current && same_part(*old->current) == same_part(stamped);
    if (same) stamped.time = old->current->time;  // that of the deployment that made these containers
    // One of an older topo is written anew, in its place.
    const bool rewrite = !same || !old->current->marked || !old->current->knows_order;
    if (!rewrite) return old->begun == Begun::No ? host::Result<void>{} : mark_begun(target, project, Begun::No);
    const char* keep = "if [ -f \"$d/current.json\" ]; then mv \"$d/current.json\" \"$d/previous.json\"; fi && ";
    Command command = target.shell(folder_line(project) + "umask 077; mkdir -p \"$d\" && cat > \"$d/new.json\" && " +
                                   (same ? "" : keep) + "mv \"$d/new.json\" \"$d/current.json\" && rm -f \"$d/begun\"");
    command.timeout = kQuestion;
    command.input = record_json(stamped);
    TRY_ASSIGN(const Outcome outcome, capture(command));
    if (!outcome.ok())
        return host::failure(ErrorCode::AccessFailed, "the deployment could not be recorded on the target: {}",
                             printable(trimmed(outcome.err), LineEnds::Replace));
    return {};
}

host::Result<void> remove_records(const Target& target, const std::string& project) {
    Command command = target.shell(
        folder_line(project) +
        "rm -f \"$d/current.json\" \"$d/previous.json\" \"$d/new.json\" \"$d/begun\"; rmdir \"$d\" 2>/dev/null; true");
    command.timeout = kQuestion;
    TRY(capture(command));
    return {};
}

}  // namespace talpa::topo
