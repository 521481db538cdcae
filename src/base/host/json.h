// JSON on the host: nlohmann-json, with keys kept in the order in which they are written so that reports read well.
#pragma once

#include <nlohmann/json.hpp>

namespace talpa::host {
using Json = nlohmann::ordered_json;
}
