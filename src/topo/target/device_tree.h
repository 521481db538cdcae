// The device tree that the NPU project needs (topo spec, section 11.4): what is missing in a board's tree, and a
// patched copy. Done with dtc's own tools (fdtget, fdtput), so every property that is not ours stays as it is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "topo/target/target.h"

namespace talpa::topo {

struct TreeChange {
    std::string what;                             ///< "reserve model@c0000000 (4 MiB)"
    std::vector<std::vector<std::string>> words;  ///< calls of fdtput, without the file; none: it is left to people
};

/// What must change in this .dtb, the Cortex-M33's own nodes included (device_tree_rpmsg.h); empty if nothing. Errors:
/// no dtc tools, no device tree, another region lies where one of ours must be.
[[nodiscard]] host::Result<std::vector<TreeChange>> missing_in_tree(const std::filesystem::path& dtb);

/// Applies them to the file and looks whether all is there then.
[[nodiscard]] host::Result<void> patch_tree(const std::filesystem::path& dtb, const std::vector<TreeChange>& changes);

/// A unified difference of the two trees in source form.
[[nodiscard]] host::Result<std::string> tree_difference(const std::filesystem::path& old_dtb,
                                                        const std::filesystem::path& new_dtb);

/// The file from which the board boots (imx93-11x11-frdm.dtb, or what the board calls itself, in the boot partition);
/// empty if it is not found.
[[nodiscard]] host::Result<std::string> find_boot_tree(const Target& target);
[[nodiscard]] host::Result<std::string> read_tree(const Target& target, const std::string& path);
/// Backs the old file up beside it, writes the new one by rename, and reads it back. Returns the backup's path.
[[nodiscard]] host::Result<std::string> write_tree(const Target& target, const std::string& path,
                                                   const std::string& bytes);

}  // namespace talpa::topo
