// The board's files as the client of the M33 needs them: what is opened again while a program serves (the tty comes
// and goes with the firmware) stands behind an interface, so that a process without privileges can have it opened by
// one that has some. (imx93-remoteproc, sections 4.2, 7 and 9)
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/host/fd.h"
#include "link/host/board_fault.h"

namespace talpa::link::host {

using talpa::host::Fd;

/// Where things are. Every path is taken under `root` (empty: the machine's own root).
struct BoardPaths {
    std::filesystem::path root = {};
    std::string memory = {};  ///< a device; empty: the one of the remote processor (memory_of)
    std::string tty = {};  ///< a device; empty: the usable /dev/ttyRPMSG* with the lowest number that is not another's
    std::string remoteproc_name = "imx-rproc";  ///< or of several, its folder (remoteproc1) or that one's number (1)
    std::string remoteproc_class = "/sys/class/remoteproc";
    std::string debug_class = "/sys/kernel/debug/remoteproc";
    std::string rpmsg_devices = "/sys/bus/rpmsg/devices";

    [[nodiscard]] std::filesystem::path under(std::string_view path) const;
    /// /dev/mem; where each processor is a chip of its own (a virtual board with several), /dev/memN for remoteprocN.
    [[nodiscard]] std::string memory_of(std::string_view folder) const;
};

/// The remote processor as sysfs shows it.
struct RemoteprocLook {
    std::string folder;    ///< "remoteproc0"; empty: none of that name
    std::string name;      ///< "imx-rproc"
    std::string state;     ///< "running", "offline" …; empty when it cannot be read
    std::string firmware;  ///< file name
    std::string
        other_names;  ///< of the processors that there are instead, with commas; with folders if names are equal
    std::string trace_lines;  ///< the last lines of trace0; empty when there is none or it cannot be read
    [[nodiscard]] bool runs() const { return state == "running" || state == "attached"; }
};

struct OpenedTty {
    Fd fd;
    std::string path;  ///< as a user of the board sees it, without `root`
};

class BoardAccess {
  public:
    virtual ~BoardAccess() = default;
    /// Opens the memory device for reading and writing. MemoryMissing, MemoryDenied.
    [[nodiscard]] virtual BoardResult<Fd> open_memory() = 0;
    /// Opens the tty, non-blocking, and puts it into raw mode. NoTty, with every device that was tried.
    [[nodiscard]] virtual BoardResult<OpenedTty> open_tty() = 0;
    [[nodiscard]] virtual RemoteprocLook look() = 0;
};

/// By this process itself.
[[nodiscard]] std::unique_ptr<BoardAccess> direct_access(BoardPaths paths);

/// The ttys that a driver has made for a remote processor's channels ("ttyRPMSG0"), and those of others, as the rpmsg
/// bus shows them: a device's real path leads through its processor's folder.
struct RpmsgTtys {
    std::vector<std::string> own, others;
};
[[nodiscard]] RpmsgTtys rpmsg_ttys_of(const std::filesystem::path& rpmsg_devices, std::string_view folder);

/// Numbers of the /dev/ttyRPMSG* that there are, ascending.
[[nodiscard]] std::vector<unsigned> rpmsg_tty_numbers(const std::filesystem::path& dev);
/// At most `count` last lines, and of each its first 200 bytes, made printable.
[[nodiscard]] std::vector<std::string> last_lines(std::string_view text, std::size_t count);

}  // namespace talpa::link::host
