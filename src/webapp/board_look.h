// What there is to see of the board, gathered by whoever has the privileges: the device tree, the memory device, the
// NPU's device, the remote processor, the ttys. Facts only; what they mean is in checks.h. As JSON it crosses from the
// broker to the part that talks to the network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/host/json.h"
#include "link/host/board_access.h"
#include "link/host/device_tree.h"

namespace talpa::webapp {

using link::host::ReservedNode;

struct BoardLook {
    std::string tree;  ///< "/sys/firmware/devicetree/base", "/proc/device-tree"; empty: none can be read
    std::string model, bootargs;
    std::vector<std::string> compatible;
    std::vector<ReservedNode> reserved;
    bool power_domains = false;  ///< remoteproc-cm33 has the property

    std::string memory_open;  ///< why the memory device cannot be opened; empty: it can
    bool memory_missing = false;
    std::string memory_map_model, memory_map_upper;  ///< why a range cannot be mapped; empty: it can

    bool ethosu_exists = false;
    std::string ethosu_open;  ///< why it cannot be opened

    link::host::RemoteprocLook remoteproc;
    std::vector<unsigned> ttys;
    std::string tty_open;  ///< why none of them can be used; empty: one can, or there is none
};

struct LookPaths {
    link::host::BoardPaths board;
    std::string device_tree;  ///< empty: /sys/firmware/devicetree/base, else /proc/device-tree
    std::string ethosu = "/dev/ethosu0";
};

[[nodiscard]] BoardLook look_at_board(const LookPaths& paths);
[[nodiscard]] host::Json to_json(const BoardLook& look);
/// Throws what nlohmann-json throws; the sender is our own broker.
[[nodiscard]] BoardLook board_look_of(const host::Json& json);

[[nodiscard]] host::Json remoteproc_json(const link::host::RemoteprocLook& look);
[[nodiscard]] link::host::RemoteprocLook remoteproc_of(const host::Json& json);

}  // namespace talpa::webapp
