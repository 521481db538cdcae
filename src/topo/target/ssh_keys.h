// SSH keys and the user's SSH configuration (topo spec, sections 9.2 and 9.3).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "topo/target/target.h"

namespace talpa::topo {

struct KeyOptions {
    std::string type = "ed25519";  ///< or rsa
    std::optional<std::string> path;
};

/// Makes a key if there is none, puts it into the target's authorized_keys (once), and writes the target's block of
/// ~/.ssh/topo_config. A key pair made here goes again when the transfer fails.
[[nodiscard]] host::Result<void> setup_keys(const Destination& destination, const KeyOptions& options);

/// The old folder ~/.ssh/topo_config/ of *.conf files becomes one file.
[[nodiscard]] host::Result<void> migrate_ssh(const std::filesystem::path& ssh_folder);

/// `config` with the block of `host` set: IdentityFile, IdentitiesOnly, User (and Port if given); other keys of the
/// block and other blocks stay.
[[nodiscard]] std::string with_host_block(const std::string& config, const Destination& destination,
                                          const std::string& user, const std::string& key_path);
/// `config` with "Include PATH" before the first Host or Match, unless it is there.
[[nodiscard]] std::string with_include(const std::string& config, const std::string& path);
/// Does a Host line name this host literally?
[[nodiscard]] bool names_host(const std::string& config, const std::string& host);

}  // namespace talpa::topo
