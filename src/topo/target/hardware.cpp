#include "topo/target/hardware.h"

#include <algorithm>
#include <charconv>

#include "base/host/json.h"
#include "topo/system/text.h"

namespace talpa::topo {
namespace {

using host::Json;
using Fields = std::vector<std::pair<std::string, std::string>>;

// Newer lscpu nests its answer; the original does not look below, we do.
void flatten(const Json& list, Fields& fields, int depth) {
    if (!list.is_array() || depth > 10) return;
    for (const Json& item : list) {
        if (!item.is_object()) continue;
        const auto field = item.find("field"), data = item.find("data");
        if (field != item.end() && field->is_string() && data != item.end() && data->is_string())
            fields.emplace_back(field->get<std::string>(), data->get<std::string>());
        if (const auto children = item.find("children"); children != item.end()) flatten(*children, fields, depth + 1);
    }
}

Fields fields_of_table(const std::string& text) {
    Fields fields;
    for (const std::string& line : lines_of(text)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        fields.emplace_back(std::string(trimmed(line.substr(0, colon))) + ":",
                            std::string(trimmed(line.substr(colon + 1))));
    }
    return fields;
}

bool starts_model(const std::pair<std::string, std::string>& field) {
    return trimmed(field.first) == "Model name:";
}

struct Units {
    int cores_per_unit = 1;
    int units = 0;
};

int number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value > 0 && value < 100'000 ? value : 0;
}

host::Result<HostProcessor> processor(Fields::const_iterator from, Fields::const_iterator to) {
    HostProcessor p;
    Units units;
    for (; from != to; ++from) {
        const std::string_view name = trimmed(from->first), value = trimmed(from->second);
        if (name == "Model name:") p.model = value;
        if (name == "Core(s) per socket:" || name == "Core(s) per cluster:") {
            if (const int n = number(value); n > 0) units.cores_per_unit = n;
        } else if (name == "Socket(s):" || name == "Cluster(s):") {
            if (const int n = number(value); n > 0) units.units = n;
        } else if (name == "Flags:") {
            for (const std::string& flag : split(value, " "))
                if (!flag.empty()) p.features.push_back(flag);
        }
    }
    if (units.units == 0) return host::failure(ErrorCode::NotFound, "could not determine CPU units");
    if (static_cast<std::int64_t>(units.cores_per_unit) * units.units > 1'000'000)
        return host::failure(ErrorCode::InvalidArgument, "lscpu reports {} x {} cores", units.cores_per_unit,
                             units.units);
    p.cores = units.cores_per_unit * units.units;
    return p;
}

// A plain YAML scalar if it cannot be taken for something else, else double quotes.
std::string yaml_text(const std::string& text) {
    const bool plain =
        !text.empty() &&
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.()@/+-") ==
            std::string::npos &&
        ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z')) && text.back() != ' ';
    return plain ? text : Json(printable(text, LineEnds::Replace)).dump();
}

}  // namespace

std::vector<std::string> Hardware::feature_names() const {
    constexpr std::pair<const char*, const char*> kNames[] = {
        {"asimd", "NEON"}, {"sve", "SVE"}, {"sve2", "SVE2"}, {"sme", "SME"}, {"sme2", "SME2"}};
    std::vector<std::string> names;
    for (const HostProcessor& p : host_processors)
        for (const std::string& flag : p.features)
            for (const auto& [have, name] : kNames)
                if (lower(flag) == have && std::find(names.begin(), names.end(), name) == names.end())
                    names.emplace_back(name);
    if (!remote_processors.empty()) {
        names.emplace_back("remoteproc");
        names.emplace_back("remoteproc-runtime");
    }
    return names;
}

host::Result<std::vector<HostProcessor>> parse_lscpu(const std::string& text) {
    Fields fields;
    if (trimmed(text).starts_with('{')) {
        const Json document = Json::parse(text, nullptr, false);
        if (document.is_discarded() || !document.is_object() || !document.contains("lscpu"))
            return host::failure(ErrorCode::InvalidArgument, "lscpu answered something that is not its JSON");
        flatten(document["lscpu"], fields, 0);
    } else {
        fields = fields_of_table(text);
        if (fields.empty()) return host::failure(ErrorCode::InvalidArgument, "lscpu answered nothing that can be read");
    }
    std::vector<Fields::const_iterator> starts;
    for (auto it = fields.cbegin(); it != fields.cend(); ++it)
        if (starts_model(*it)) starts.push_back(it);
    std::vector<HostProcessor> found;
    if (starts.size() > 64) return host::failure(ErrorCode::InvalidArgument, "lscpu reports {} models", starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) {
        // An old lscpu prints the only model late: all fields are its.
        const auto from = starts.size() == 1 ? fields.cbegin() : starts[i];
        TRY_ASSIGN(HostProcessor p, processor(from, i + 1 < starts.size() ? starts[i + 1] : fields.cend()));
        found.push_back(std::move(p));
    }
    return found;
}

host::Result<std::uint64_t> parse_meminfo(const std::string& text) {
    for (const std::string& line : lines_of(text)) {
        if (!line.starts_with("MemTotal:")) continue;
        const std::string_view value = trimmed(std::string_view(line).substr(9));
        std::uint64_t kb = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), kb);
        if (error == std::errc() && end != value.data()) return kb;
        return host::failure(ErrorCode::InvalidArgument, "failed to read /proc/meminfo: MemTotal is \"{}\"",
                             printable(value, LineEnds::Replace));
    }
    return host::failure(ErrorCode::NotFound, "failed to read /proc/meminfo: field MemTotal not found");
}

std::vector<std::string> parse_remoteprocs(const std::string& text) {
    std::vector<std::string> names;
    for (const std::string& line : lines_of(text))
        if (!trimmed(line).empty() && names.size() < 64) names.emplace_back(trimmed(line));
    return names;
}

std::string hardware_yaml(const Hardware& hardware) {
    std::string out = hardware.host_processors.empty() ? "hostProcessors: []\n" : "hostProcessors:\n";
    for (const HostProcessor& p : hardware.host_processors) {
        out += fmt::format("    - model: {}\n      cores: {}\n", yaml_text(p.model), p.cores);
        out += p.features.empty() ? "      features: []\n" : "      features:\n";
        for (const std::string& feature : p.features) out += fmt::format("        - {}\n", yaml_text(feature));
    }
    out += hardware.remote_processors.empty() ? "remoteProcessors: []\n" : "remoteProcessors:\n";
    for (const std::string& name : hardware.remote_processors) out += fmt::format("    - name: {}\n", yaml_text(name));
    return out + fmt::format("totalMemoryKb: {}\n", hardware.total_memory_kb);
}

std::string hardware_json(const Hardware& hardware) {
    Json document;
    document["hostProcessors"] = Json::array();
    for (const HostProcessor& p : hardware.host_processors)
        document["hostProcessors"].push_back(
            {{"model", printable(p.model)}, {"cores", p.cores}, {"features", p.features}});
    for (const std::string& name : hardware.remote_processors)
        document["remoteProcessors"].push_back({{"name", printable(name)}});
    document["totalMemoryKb"] = hardware.total_memory_kb;
    return document.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> missing_features(const std::vector<std::string>& wanted,
                                          const std::vector<std::string>& have) {
    std::vector<std::string> missing;
    for (const std::string& feature : wanted)
        if (std::none_of(have.begin(), have.end(), [&](const std::string& h) { return lower(h) == lower(feature); }))
            missing.push_back(feature);
    return missing;
}

}  // namespace talpa::topo
