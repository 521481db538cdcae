// Commands that tell: features, list, ps, events, spec, logs; and gc, which clears away what nobody owns any more.
#pragma once

#include <string>

#include "remoteproc/oci/settings.h"

namespace talpa::remoteproc {

enum class ListForm : std::uint8_t { Table, Json, Ids };

[[nodiscard]] std::string features_json(const std::string& version);
[[nodiscard]] Result<std::string> list(const Settings& settings, ListForm form);
[[nodiscard]] Result<std::string> ps(const Settings& settings, const std::string& id, ListForm form);
/// One line of JSON in the form of `runc events --stats`.
[[nodiscard]] Result<std::string> stats(const Settings& settings, const std::string& id);
/// Prints what happened to the container, one JSON object a line, until it has stopped.
[[nodiscard]] Result<void> follow_events(const Settings& settings, const std::string& id);
/// Prints the firmware's output; `follow`: until the container has stopped.
[[nodiscard]] Result<void> print_log(const Settings& settings, const std::string& id, bool follow);
/// Writes an example config.json to the bundle.
[[nodiscard]] Result<void> write_spec(const std::string& bundle, const std::string& name, const std::string& firmware);
/// Stops cores whose container is gone, removes their firmware and half-made or half-deleted containers. Returns a line
/// for each thing done.
[[nodiscard]] Result<std::string> collect_garbage(const Settings& settings);
/// Starts a created container, waits for its end (TERM and INT stop it), deletes it. Returns its exit code.
[[nodiscard]] Result<int> run_to_end(const Settings& settings, const std::string& id);

}  // namespace talpa::remoteproc
