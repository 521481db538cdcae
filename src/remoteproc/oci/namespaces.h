// Linux namespaces of a bundle: new ones for the proxy; those given by a path are joined by a pod's pause process only.
// (remoteproc-runtime, section 6)
#pragma once

#include <vector>

#include "remoteproc/oci/spec.h"
#include "remoteproc/sys/process.h"

namespace talpa::remoteproc {

struct NamespacePlan {
    std::uint64_t clone_flags = 0;
    std::vector<JoinedNamespace> join;
};

/// `join_paths`: open those given by a path (never pid or user, which cannot be entered that way). Error: `unknown
/// namespace type "X"`.
[[nodiscard]] Result<NamespacePlan> plan_namespaces(const std::vector<NamespaceWish>& wishes, bool join_paths);

}  // namespace talpa::remoteproc
