// Compose files from strangers: reading, expanding, x-topo, parameters and edits. An edit must give a file that says
// the values, or an error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "topo/project/edit.h"
#include "topo/project/x_topo.h"
#include "topo/system/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace talpa::topo;
    const std::string text(reinterpret_cast<const char*>(data), size);
    const auto all = yaml::parse_all(text, "f");
    const auto root = yaml::parse_first(text, "f");
    if (all && !root) std::abort();
    if (!root) return 0;
    const auto expanded = yaml::expand(**root, "f");
    std::vector<Finding> findings;
    check_x_topo(**root, "f", findings);
    const auto x_topo = read_x_topo(**root, "f");
    if (!x_topo) return 0;
    Values values;
    for (const Parameter& p : x_topo->parameters)
        if (values.size() < 20) values[p.name] = "new: " + p.name;
    values["A"] = "007";
    (void)missing_values(**root, *x_topo, values);
    const auto edited = apply_values(text, "f", values);
    if (!edited) return 0;
    const auto again = yaml::parse_first(edited->text, "f");
    if (!again) std::abort();
    for (const auto& [name, value] : values)
        for (const std::string& now : current_values(**again, name))
            if (now != value && edited->changed) std::abort();
    return 0;
}
