#include "remoteproc/oci/wishes.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace talpa::remoteproc {
namespace {

constexpr std::array<AnnotationInfo, 16> kKnown{{
    {"remoteproc.name", "NAME", "the remote processor, by the `name` that sysfs shows"},
    {"remoteproc.compatible", "COMPATIBLE", "the same by its device-tree node, where names are not unique"},
    {"remoteproc.device", "remoteprocN or a path", "the same by its device"},
    {"remoteproc.sha256", "64 hex digits", "digest that the firmware must have"},
    {"remoteproc.check", "auto | strict | off", "how the ELF is checked before the kernel gets it"},
    {"remoteproc.resource-table", "required | optional",
     "whether the ELF needs a resource table; default by processor"},
    {"remoteproc.max-size", "BYTES", "largest firmware file (default 67108864)"},
    {"remoteproc.start-timeout", "SECONDS", "how long the boot may take (default 60)"},
    {"remoteproc.start-retries", "COUNT", "further attempts when the kernel refuses the first start (default 0)"},
    {"remoteproc.recovery", "enabled | disabled", "the kernel's own recovery while this container runs"},
    {"remoteproc.recovery-timeout", "SECONDS", "how long the kernel's recovery may take (default 10)"},
    {"remoteproc.ownerless", "stop | adopt | refuse", "a core that runs though its container is gone"},
    {"remoteproc.attached", "refuse | replace", "a core that the boot loader started"},
    {"remoteproc.log", "auto | none | traceN", "which trace buffer goes to the container's output"},
    {"remoteproc.console", "/dev/ttyRPMSGn", "an RPMsg tty that goes to the container's output and takes its input"},
    {"remoteproc.heartbeat", "auto | off | SECONDS",
     "end the container when the runner's heartbeat stands still that long (auto: 10)"},
}};

class Parser {
  public:
    explicit Parser(const Annotations& annotations) : annotations_(annotations) {}

    std::optional<std::string> text(std::string_view key) const {
        const auto found = annotations_.find(std::string(key));
        if (found == annotations_.end()) return std::nullopt;
        return found->second;
    }
    template <typename T>
    void number(std::string_view key, T low, T high, T& out) {
        const auto value = text(key);
        if (!value) return;
        T parsed{};
        const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), parsed);
        if (error != std::errc{} || end != value->data() + value->size() || parsed < low || parsed > high)
            return refuse(key, *value, fmt::format("a number from {} to {}", low, high));
        out = parsed;
    }
    template <typename T, std::size_t N>
    void choice(std::string_view key, const std::array<std::pair<std::string_view, T>, N>& choices, T& out) {
        const auto value = text(key);
        if (!value) return;
        std::string wanted;
        for (const auto& [word, meaning] : choices) {
            if (*value == word) {
                out = meaning;
                return;
            }
            wanted += (wanted.empty() ? "" : ", ") + std::string(word);
        }
        refuse(key, *value, "one of " + wanted);
    }
    void refuse(std::string_view key, std::string_view value, const std::string& wanted) {
        if (wrong_.empty())
            wrong_ = fmt::format("invalid container specification: annotation {}={} is not {}", key, printable(value),
                                 wanted);
    }
    [[nodiscard]] const std::string& wrong() const { return wrong_; }

  private:
    const Annotations& annotations_;
    std::string wrong_;
};

bool is_trace_name(std::string_view text) {
    return text.starts_with("trace") && text.size() > 5 && text.size() <= 7 &&
           std::ranges::all_of(text.substr(5), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_hex_digest(std::string_view text) {
    return text.size() == 64 && std::ranges::all_of(text, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
           });
}

std::optional<std::string> from_environment(const Spec& spec) {
    constexpr std::string_view kKey = "REMOTEPROC_NAME=";
    for (const auto& entry : spec.environment)
        if (entry.starts_with(kKey)) return entry.substr(kKey.size());
    return std::nullopt;
}

}  // namespace

std::span<const AnnotationInfo> known_annotations() {
    return kKnown;
}

Result<Wishes> read_wishes(const Annotations& annotations, const Spec* spec, bool runc_style) {
    Parser parser(annotations);
    Wishes w;
    w.selector.name = parser.text("remoteproc.name");
    w.selector.compatible = parser.text("remoteproc.compatible");
    w.selector.device = parser.text("remoteproc.device");
    if (spec != nullptr && !w.selector.name && !w.selector.compatible && !w.selector.device) {
        const std::string missing =
            "failed to read container specification: invalid container specification: missing "
            "remoteproc.name in annotations";
        if (!runc_style) {
            host::Error error(ErrorCode::InvalidArgument, missing);
            error.hint = "name the processor: --annotation remoteproc.name=NAME (cat /sys/class/remoteproc/*/name)";
            return std::unexpected(std::move(error));
        }
        w.selector.name = from_environment(*spec);
        w.selector.only = !w.selector.name;
    }
    if (const auto digest = parser.text("remoteproc.sha256")) {
        if (!is_hex_digest(*digest)) parser.refuse("remoteproc.sha256", *digest, "64 hex digits");
        w.sha256 = *digest;
        for (char& c : w.sha256)
            if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    }
    parser.choice<ElfPolicy, 3>("remoteproc.check",
                                {{{"auto", ElfPolicy::Auto}, {"strict", ElfPolicy::Strict}, {"off", ElfPolicy::Off}}},
                                w.elf.policy);
    if (parser.text("remoteproc.resource-table")) {
        bool table = true;
        parser.choice<bool, 2>("remoteproc.resource-table", {{{"required", true}, {"optional", false}}}, table);
        w.elf.table = table;
    }
    parser.number<std::uint64_t>("remoteproc.max-size", 1, 1ull << 32, w.max_size);
    int seconds = w.start_timeout_ms / 1000;
    parser.number("remoteproc.start-timeout", 1, 3600, seconds);
    w.start_timeout_ms = seconds * 1000;
    parser.number("remoteproc.start-retries", 0, 10, w.start_retries);
    parser.choice<Recovery, 2>("remoteproc.recovery",
                               {{{"enabled", Recovery::Enabled}, {"disabled", Recovery::Disabled}}}, w.recovery);
    seconds = w.recovery_timeout_ms / 1000;
    parser.number("remoteproc.recovery-timeout", 1, 3600, seconds);
    w.recovery_timeout_ms = seconds * 1000;
    parser.choice<Ownerless, 3>(
        "remoteproc.ownerless",
        {{{"stop", Ownerless::Stop}, {"adopt", Ownerless::Adopt}, {"refuse", Ownerless::Refuse}}}, w.ownerless);
    parser.choice<bool, 2>("remoteproc.attached", {{{"refuse", false}, {"replace", true}}}, w.replace_attached);
    if (const auto log = parser.text("remoteproc.log")) {
        if (*log != "auto" && *log != "none" && !is_trace_name(*log))
            parser.refuse("remoteproc.log", *log, "auto, none or the name of a trace buffer (trace0)");
        w.log = *log;
    }
    if (const auto console = parser.text("remoteproc.console")) {
        if (!console->starts_with("/dev/tty") || console->find("..") != std::string::npos ||
            console->find('/', 5) != std::string::npos)
            parser.refuse("remoteproc.console", *console, "a tty in /dev (/dev/ttyRPMSG0)");
        w.console = *console;
    }
    if (const auto heartbeat = parser.text("remoteproc.heartbeat"); heartbeat && *heartbeat != "auto") {
        seconds = 0;
        if (*heartbeat != "off") parser.number("remoteproc.heartbeat", 1, 3600, seconds);
        w.heartbeat_ms = seconds * 1000;
    }
    if (!parser.wrong().empty())
        return host::failure(ErrorCode::InvalidArgument, "failed to read container specification: {}", parser.wrong());
    return w;
}

std::optional<std::string> selection_warning(const Annotations& annotations, const Wishes& wishes) {
    if (annotations.contains("remoteproc.name") || wishes.selector.compatible || wishes.selector.device)
        return std::nullopt;
    if (wishes.selector.only)
        return "no annotation remoteproc.name and no REMOTEPROC_NAME in the container's environment: taking the only "
               "remote processor of this machine";
    return "no annotation remoteproc.name: taking the processor that REMOTEPROC_NAME in the container's environment "
           "names";
}

}  // namespace talpa::remoteproc
