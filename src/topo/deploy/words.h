// What files of this folder need alike when they talk with an engine: options of command lines, the first number of a
// version, and how long an engine may take: to answer a question from what it knows, to start or stop a container.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "topo/system/process.h"

namespace talpa::topo {

using Words = std::vector<std::string>;

inline constexpr Milliseconds kQuestion(30'000), kStartTime(120'000);

inline void add_option(Words& words, std::string flag, std::string value) {
    words.push_back(std::move(flag));
    words.push_back(std::move(value));
}

/// Of "24.0.7": 24; 0 where there is none.
inline int major_version(const std::string& version) {
    return std::atoi(version.c_str());
}

}  // namespace talpa::topo
