// Who has a core that somebody wants to start: a container by its record, or a process of another user or of the
// original's, of which there is none here.
#pragma once

#include <optional>
#include <string>

#include "remoteproc/oci/container.h"

namespace talpa::remoteproc {

/// The words behind "busy: used by": the container of a record whose process lives, unless it is `container` itself.
[[nodiscard]] std::optional<std::string> busy_with(const CoreOwners& owners, const Device& device,
                                                   const Container& container);

/// The same where the owner's record is not among ours: root's, for another user, or a proxy by its arguments.
[[nodiscard]] std::optional<std::string> stranger_on(const Settings& settings, const Device& device);

}  // namespace talpa::remoteproc
