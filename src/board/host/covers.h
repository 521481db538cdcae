// What of the user's machine the programs on a board see and cannot change: overlays over the system's folders and the
// homes (what is there stays visible, what is written goes to the board's own disk), read-only views of the rest that
// users work in. Not overlays there, since those go on showing a file that was replaced below them. (topo,
// section 18.2)
#pragma once

#include <filesystem>
#include <vector>

#include "base/host/error.h"

namespace talpa::board {

/// The board's own corner, in its /run: what is mounted there is bound elsewhere. Its folder on a real disk is there
/// too, since the place where that lies on the user's machine may be covered.
inline constexpr const char* kCorner = "/run/.talpa";
inline constexpr const char* kBoardDisk = "/run/.talpa/disk";
/// Where root's programs lie.
inline constexpr const char* kProgramFolders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Would what is written here on the user's machine be out of the board's sight?
[[nodiscard]] bool is_hidden(const std::filesystem::path& path);
/// May a board be given this folder (a true path) as it is on the user's machine? InvalidArgument where the board has
/// its own, or covers folders below it.
[[nodiscard]] host::Result<void> check_shared(const std::filesystem::path& folder);
[[nodiscard]] bool is_mount_point(const std::filesystem::path& path);

/// Folders that programs on the board shall change as they are on the user's machine: held before anything is covered,
/// shown when all is.
class SharedFolders {
  public:
    explicit SharedFolders(const std::vector<std::filesystem::path>& paths) : paths_(paths) {}
    ~SharedFolders();
    SharedFolders(const SharedFolders&) = delete;
    SharedFolders& operator=(const SharedFolders&) = delete;
    [[nodiscard]] host::Result<void> hold();
    [[nodiscard]] host::Result<void> show() const;

  private:
    std::vector<std::filesystem::path> paths_;
    std::vector<int> held_;
};

/// In the board's mount namespace, with kBoardDisk mounted: covers the system's folders and those of kRealFolders.
[[nodiscard]] host::Result<void> cover_system();
/// The homes: root's and that of whoever brings the board up. `disk`, the board's place on the user's machine, and its
/// neighbours are hidden if they lie in one.
[[nodiscard]] host::Result<void> cover_homes(const std::filesystem::path& disk);

/// For somebody who enters a running board: overlays forget what they remember of files that were replaced or made on
/// the user's machine meanwhile, and `folder`, if it lies in a new folder of a home, is shown as it is there.
void look_again(const std::filesystem::path& folder);

}  // namespace talpa::board
