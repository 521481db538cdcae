// What files of this folder need alike when they talk with an engine: options of command lines, the first number of a
// version, names with their tags, what a failed command said, and how long an engine may take: to answer a question
// from what it knows, to start or stop a container.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "topo/system/process.h"
#include "topo/system/text.h"

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

/// The name with ":latest" where it has no tag: archives and `tag` want one.
inline std::string with_tag(const std::string& name) {
    const std::size_t slash = name.rfind('/');
    return name.find(':', slash == std::string::npos ? 0 : slash) == std::string::npos ? name + ":latest" : name;
}

/// Its complaint, or else its output, on one line.
inline std::string said_by(const Outcome& outcome) {
    return one_line(outcome.err.empty() ? outcome.out : outcome.err);
}

}  // namespace talpa::topo
