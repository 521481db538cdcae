// Writes parameter values into a compose file (topo spec, section 7.4) by changing the bytes of the values only, so
// that comments, blank lines, order, indentation, quoting and further documents stay as they are. Upstream re-emits the
// whole document; we do not, because blank lines, indentation and documents got lost.
#pragma once

#include <string>
#include <vector>

#include "topo/project/parameters.h"

namespace talpa::topo {

struct Edited {
    std::string text;
    bool changed = false;
    std::vector<std::string> warnings;
};

/// Every build arg of that name in every service gets the value, always as a string. `args: *alias` and values merged
/// by
/// `<<` get a private copy. The result is read again before it is returned; what does not say the values is an error.
[[nodiscard]] host::Result<Edited> apply_values(std::string text, const std::string& file, const Values& values);

/// A scalar that every YAML reader takes for this string, in the style asked for if that can express it.
[[nodiscard]] std::string yaml_scalar(std::string_view value, yaml::Style style, bool in_flow);

}  // namespace talpa::topo
