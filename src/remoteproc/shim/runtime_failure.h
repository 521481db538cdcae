// What a failed call of remoteproc-runtime means to containerd: a text and a code.
#pragma once

#include <string>
#include <string_view>

#include "remoteproc/shim/children.h"
#include "remoteproc/shim/ttrpc.h"

namespace talpa::remoteproc::shim {

/// The status of a call for which no runtime was found; its error says so.
inline constexpr int kNoRuntime = -1;

/// The original's form, whose parts users and engines match.
[[nodiscard]] std::string failed_text(std::string_view operation, const CommandResult& result);
/// What kind of failure it was, so that containerd and what stands on it can act on it.
[[nodiscard]] Code code_of(std::string_view text);

}  // namespace talpa::remoteproc::shim
