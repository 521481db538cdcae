// Containers of Docker whose health check is a list of words (["CMD", "/web", "check"]). Docker's command line takes a
// check only as text for a shell, and an image made FROM scratch has none, so its check would fail for ever. Such a
// container is made by the command line, read back, and made again through the engine's API with the list in its place.
#pragma once

#include <string>

#include "topo/deploy/desired.h"

namespace talpa::topo {

[[nodiscard]] bool needs_api(EngineKind kind, const Desired& desired);

/// Makes and starts it. The error is the engine's; what was made so far stays under the container's name.
[[nodiscard]] host::Result<void> run_through_api(const Engine& engine, const Desired& desired);

/// The body of POST /containers/create for the container that `inspect` describes, with this check.
/// Errors: it is not the answer of `docker inspect` for one container.
[[nodiscard]] host::Result<std::string> create_body(const std::string& inspect_json,
                                                    const std::vector<std::string>& test);

/// An answer of HTTP/1.1: nothing for a status of 2xx, else the error with the engine's message.
[[nodiscard]] host::Result<void> parse_create_answer(const std::string& answer);

}  // namespace talpa::topo
