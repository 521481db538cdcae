// A container as commands see it: what is on disk, whether its process still lives, and what follows from both. The
// status in state.json is never believed where the process or the boot says otherwise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "remoteproc/oci/state.h"
#include "remoteproc/oci/wishes.h"
#include "remoteproc/sys/lock.h"
#include "remoteproc/sys/process.h"

namespace talpa::remoteproc {

enum class Status : std::uint8_t { Creating, Created, Running, Stopped };
[[nodiscard]] std::string_view status_word(Status status);

class Container {
  public:
    /// Reads the container's folder. The error is what engines match (section 8, E9). The folder must be ours and
    /// writable by nobody else. Where state.json is lost or damaged, details.json or the core's record of its owner
    /// stand for it, so that such a container can still be ended.
    [[nodiscard]] static Result<Container> load(const Settings& settings, const std::string& id);
    /// The same of a folder that was found, whoever's it is.
    [[nodiscard]] static Result<Container> load_folder(const Settings& settings, const std::string& folder,
                                                       const std::string& id);

    [[nodiscard]] Status status() const;
    /// The container's process, if it lives and is the one that was started.
    [[nodiscard]] std::optional<PinnedProcess> process() const;
    [[nodiscard]] ProxyRecord record() const;
    /// Of a stopped container: its exit code and when (0: not known).
    [[nodiscard]] int exit_code() const;
    [[nodiscard]] std::uint64_t exit_ns() const;
    [[nodiscard]] bool sandbox() const { return details && details->kind == ContainerKind::Sandbox; }

    /// `name` is left empty: reading it costs more than most commands need it for.
    [[nodiscard]] Device device() const;
    [[nodiscard]] Device named_device() const;
    /// state.json with the status as it is now.
    [[nodiscard]] StateFile current_state() const;

    [[nodiscard]] Result<void> save_state() const;
    [[nodiscard]] Result<void> save_details() const;

    std::string folder;
    StateFile state;
    std::optional<Details> details;
    bool damaged = false;  ///< state.json could not be read

    [[nodiscard]] std::string file(std::string_view name) const { return folder + "/" + std::string(name); }

  private:
    bool salvage(const Settings& settings, const std::string& id);
};

/// Stops what the container still runs (its proxy, and the core if it is this container's), removes its firmware copy
/// and its folder. Goes on after an error and returns the first. `grace_ms`: how long the proxy may take to stop by
/// itself.
[[nodiscard]] Result<void> destroy(const Settings& settings, Container& container, int grace_ms);

/// Stops the core if the container's record says that it is this container's, alive or not.
[[nodiscard]] Result<void> stop_owned_core(const Settings& settings, const Container& container, int lock_timeout_ms);

/// Ends the process that an owner's record names, whose container's folder is gone. Returns its pid.
std::optional<pid_t> end_orphan(const Owner& owner);

/// Removes a folder that no container can be read from any more (a create or delete that was killed half-way).
void remove_remnants(const std::string& folder);

/// Removes firmware copies of ours whose container is gone and that no core has loaded.
void sweep_firmware(const Settings& settings);

/// Whether the container in that folder is of another namespace than the caller's.
[[nodiscard]] bool is_elsewhere(const Settings& settings, const std::string& folder);

/// Removes containers that their engine will not ask for again, and their firmware copies: those of earlier boots of
/// the machine, and stopped ones whose bundle is gone. Returns a line for each.
std::vector<std::string> sweep_forgotten(const Settings& settings);
/// The same, the first time that it is called in a boot and then once a minute at most.
void sweep_now_and_then(const Settings& settings);

/// Ids of all containers below the state root.
[[nodiscard]] std::vector<std::string> container_ids(const Settings& settings);

}  // namespace talpa::remoteproc
