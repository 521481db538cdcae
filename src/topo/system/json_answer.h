// Reading JSON that a program answered with: what is not there, or is of another kind, reads as nothing.
#pragma once

#include <string>

#include "base/host/json.h"

namespace talpa::topo {

/// A member, or null.
[[nodiscard]] inline const host::Json& at(const host::Json& object, const char* key) {
    static const host::Json kNone;
    if (!object.is_object()) return kNone;
    const auto it = object.find(key);
    return it == object.end() ? kNone : *it;
}

/// at(value, "NetworkSettings", "Networks")
template <typename... Keys>
[[nodiscard]] const host::Json& at(const host::Json& object, const char* first, const char* second, Keys... rest) {
    return at(at(object, first), second, rest...);
}

[[nodiscard]] inline std::string text_of(const host::Json& value) {
    return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace talpa::topo
