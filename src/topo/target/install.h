// topo install remoteproc-runtime (topo spec, section 9.1): both binaries out of an archive, onto the target, into the
// folder where they are already or else into the first that can be written.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "topo/target/target.h"

namespace talpa::topo {

struct Binary {
    std::string name, bytes;
};

struct Installed {
    std::string binary, folder;
    bool on_path = false;
};

/// The archive that came with topo for this architecture ("arm64"), beside the program or in ../share/topo.
[[nodiscard]] std::optional<std::filesystem::path> bundled_archive(const std::string& architecture);

/// The newest "X.Y.Z" among the links of an index page; empty if there is none.
[[nodiscard]] std::string newest_version(const std::string& index_page);

/// remoteproc-runtime and containerd-shim-remoteproc-v1 out of a tar file of any compression, by the system's tar.
[[nodiscard]] host::Result<std::vector<Binary>> read_runtime_archive(const std::filesystem::path& archive);

/// Architecture of an ELF file as platforms spell it ("arm64", "amd64", …); empty if it is none.
[[nodiscard]] std::string elf_architecture(std::string_view bytes);

/// `from`: a file; without it the bundled archive, else the newest release from the network.
[[nodiscard]] host::Result<std::vector<Installed>> install_runtime(const Target& target,
                                                                   const std::optional<std::string>& from);

[[nodiscard]] std::string installed_plain(const std::vector<Installed>& installed);
[[nodiscard]] std::string installed_json(const std::vector<Installed>& installed);

}  // namespace talpa::topo
