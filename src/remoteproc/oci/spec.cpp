#include "remoteproc/oci/spec.h"

#include "base/host/json.h"
#include "remoteproc/sys/files.h"

namespace talpa::remoteproc {
namespace {

using host::Json;

constexpr std::size_t kConfigLimit = 16 << 20;  // seccomp profiles make real ones 100 KiB

// Reading a field of a known type; the first wrong type is remembered with the field's name.
class Reader {
  public:
    [[nodiscard]] Result<void> done() const {
        if (wrong_.empty()) return {};
        return host::failure(ErrorCode::InvalidType, "{}", wrong_);
    }
    const Json* field(const Json& object, const char* key, const char* where) {
        if (!object.is_object()) return nullptr;
        const auto found = object.find(key);
        if (found == object.end() || found->is_null()) return nullptr;
        last_ = std::string(where) + key;
        return &*found;
    }
    void text(const Json& object, const char* key, const char* where, std::string& out) {
        if (const Json* value = field(object, key, where)) {
            if (value->is_string())
                out = value->get_ref<const std::string&>();
            else
                wrong("a string");
        }
    }
    void texts(const Json& object, const char* key, const char* where, std::vector<std::string>& out) {
        const Json* value = field(object, key, where);
        if (value == nullptr) return;
        if (!value->is_array()) return wrong("an array of strings");
        for (const Json& item : *value) {
            if (!item.is_string()) return wrong("an array of strings");
            out.push_back(item.get_ref<const std::string&>());
        }
    }
    const Json* object(const Json& parent, const char* key, const char* where) {
        const Json* value = field(parent, key, where);
        if (value != nullptr && !value->is_object()) {
            wrong("an object");
            return nullptr;
        }
        return value;
    }
    const Json* array(const Json& parent, const char* key, const char* where) {
        const Json* value = field(parent, key, where);
        if (value != nullptr && !value->is_array()) {
            wrong("an array");
            return nullptr;
        }
        return value;
    }
    void wrong(const char* wanted) {
        if (wrong_.empty()) wrong_ = fmt::format("field {} is not {}", last_, wanted);
    }

  private:
    std::string last_, wrong_;
};

void read_hooks(Reader& reader, const Json& document, Hooks& hooks) {
    const Json* object = reader.object(document, "hooks", "");
    if (object == nullptr) return;
    for (std::size_t kind = 0; kind < kHookKeys.size(); ++kind) {
        const Json* list = reader.array(*object, std::string(kHookKeys[kind]).c_str(), "hooks.");
        if (list == nullptr) continue;
        for (const Json& item : *list) {
            if (!item.is_object()) return reader.wrong("an array of hooks");
            Hook hook;
            reader.text(item, "path", "hooks.", hook.path);
            reader.texts(item, "args", "hooks.", hook.arguments);
            reader.texts(item, "env", "hooks.", hook.environment);
            if (const Json* timeout = reader.field(item, "timeout", "hooks.")) {
                if (timeout->is_number_integer() && timeout->get<std::int64_t>() > 0)
                    hook.timeout_s = static_cast<int>(std::min<std::int64_t>(timeout->get<std::int64_t>(), 86400));
                else
                    reader.wrong("a positive number");
            }
            hooks[kind].push_back(std::move(hook));
        }
    }
}

Result<Spec> read_document(const Json& document) {
    Spec spec;
    Reader reader;
    reader.text(document, "ociVersion", "", spec.oci_version);
    if (const Json* process = reader.object(document, "process", "")) {
        spec.arguments.emplace();
        reader.texts(*process, "args", "process.", *spec.arguments);
        reader.texts(*process, "env", "process.", spec.environment);
        if (const Json* terminal = reader.field(*process, "terminal", "process.")) {
            if (terminal->is_boolean())
                spec.terminal = terminal->get<bool>();
            else
                reader.wrong("true or false");
        }
    }
    if (const Json* root = reader.object(document, "root", "")) {
        spec.root.emplace();
        reader.text(*root, "path", "root.", *spec.root);
    }
    if (const Json* annotations = reader.object(document, "annotations", ""))
        for (const auto& [key, value] : annotations->items()) {
            if (!value.is_string()) {
                reader.wrong("an object of strings");
                break;
            }
            spec.annotations[key] = value.get_ref<const std::string&>();
        }
    if (const Json* linux_part = reader.object(document, "linux", ""))
        if (const Json* list = reader.array(*linux_part, "namespaces", "linux."))
            for (const Json& item : *list) {
                NamespaceWish wish;
                reader.text(item, "type", "linux.namespaces.", wish.type);
                reader.text(item, "path", "linux.namespaces.", wish.path);
                spec.namespaces.push_back(std::move(wish));
            }
    read_hooks(reader, document, spec.hooks);
    TRY(reader.done());
    return spec;
}

constexpr std::array<std::string_view, 2> kTypeKeys{"io.kubernetes.cri.container-type",
                                                    "io.kubernetes.cri-o.ContainerType"};
constexpr std::array<std::string_view, 2> kSandboxKeys{"io.kubernetes.cri.sandbox-id", "io.kubernetes.cri-o.SandboxID"};

}  // namespace

Result<std::string_view> first_json_object(std::string_view text, int max_depth) {
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos)
        return host::failure(ErrorCode::InvalidProgram, "unexpected end of JSON input");
    if (text[start] != '{')
        return host::failure(ErrorCode::InvalidProgram, "a JSON object is wanted, the file begins with {:?}",
                             printable(text.substr(start, 1)));
    int depth = 0;
    bool in_text = false;
    for (std::size_t i = start; i < text.size(); ++i) {
        const char c = text[i];
        if (in_text) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                in_text = false;
            continue;
        }
        if (c == '"') in_text = true;
        if ((c == '{' || c == '[') && ++depth > max_depth)
            return host::failure(ErrorCode::OutOfResources, "JSON nested deeper than {} at offset {}", max_depth, i);
        if ((c == '}' || c == ']') && --depth == 0) return text.substr(start, i + 1 - start);
    }
    return host::failure(ErrorCode::InvalidProgram, "unexpected end of JSON input");
}

Result<Spec> parse_spec(std::string_view text) {
    TRY_ASSIGN(const std::string_view object, first_json_object(text));
    try {
        return read_document(Json::parse(object));
    } catch (const std::exception& e) {
        return host::failure(ErrorCode::InvalidProgram, "invalid JSON: {}", printable(e.what()));
    }
}

Result<Spec> load_spec(const std::string& bundle) {
    const std::string context = "failed to read container specification";
    auto text = read_small_file(bundle + "/config.json", kConfigLimit);
    if (!text) return std::unexpected(std::move(text.error()).with_context(context));
    auto spec = parse_spec(*text);
    if (!spec)
        return std::unexpected(std::move(spec.error()).with_context(bundle + "/config.json").with_context(context));
    if (!spec->oci_version.empty() && !spec->oci_version.starts_with("1."))
        return host::failure(ErrorCode::NotSupported,
                             "{}: invalid container specification: ociVersion {} is not supported, 1.x is wanted",
                             context, printable(spec->oci_version));
    return spec;
}

ContainerKind container_kind(const Annotations& annotations) {
    for (const auto key : kTypeKeys) {
        const auto found = annotations.find(std::string(key));
        if (found != annotations.end() && found->second == "sandbox") return ContainerKind::Sandbox;
    }
    return ContainerKind::Firmware;
}

std::optional<std::string> sandbox_id(const Annotations& annotations) {
    for (const auto key : kSandboxKeys) {
        const auto found = annotations.find(std::string(key));
        if (found != annotations.end() && !found->second.empty()) return found->second;
    }
    return std::nullopt;
}

}  // namespace talpa::remoteproc
