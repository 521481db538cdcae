// Which callers may take which remote processor: /etc/remoteproc-runtime/allow, where an administrator made one.
// Without it any container may take any idle core. (remoteproc-runtime, section 15)
#pragma once

#include <string>
#include <string_view>

#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc {

/// Who wants a core.
struct Caller {
    unsigned uid = 0;            ///< effective user of this process
    std::string namespace_name;  ///< containerd's, as our shim tells it; empty: none
};

/// One rule a line: PROCESSOR WHO…, PROCESSOR being the `name` in sysfs or *, WHO one of *, uid:N, namespace:NAME
/// (which counts for root alone: others could claim any). From # on a line is comment. Returns whether a rule fits; an
/// error names the line that is none.
[[nodiscard]] Result<bool> is_allowed(std::string_view rules, std::string_view processor, const Caller& caller);

/// Nothing where there is no file or a rule fits; otherwise the refusal. The file must be root's and writable by nobody
/// else.
[[nodiscard]] Result<void> check_allowed(const SystemPaths& paths, const Device& device);

}  // namespace talpa::remoteproc
