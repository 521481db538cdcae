// The five OCI operations. Texts of errors and the order of checks follow remoteproc-runtime, sections 4 and 8.
#pragma once

#include <string>

#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc {

struct CreateOptions {
    std::string id;
    std::string bundle = ".";
    std::string pid_file;
    std::string console_socket;
};

/// The proxy waits in its namespaces, hooks have run, nothing was written to the core.
[[nodiscard]] Result<void> create(const Settings& settings, const CreateOptions& options);
/// The core runs the firmware when this returns, or the kernel's reason why it does not.
[[nodiscard]] Result<void> start(const Settings& settings, const std::string& id);
/// One line of JSON.
[[nodiscard]] Result<std::string> state(const Settings& settings, const std::string& id);
/// TERM and INT ask the proxy to stop the core; KILL stops the core first and then ends the proxy.
[[nodiscard]] Result<void> kill(const Settings& settings, const std::string& id, const std::string& signal_name);
enum class Force : bool { No, Yes };
[[nodiscard]] Result<void> remove(const Settings& settings, const std::string& id, Force force);

}  // namespace talpa::remoteproc
