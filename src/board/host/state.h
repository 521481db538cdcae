// What there is on disk about the boards of this user: a folder each, with a lock that the board's process holds as
// long as it lives, so that nobody has to trust a process number.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "base/host/error.h"
#include "board/host/forward.h"

namespace talpa::board {

/// The default name, and the one that a board below a folder gets without --name.
inline constexpr const char* kDefaultBoardName = "board";
[[nodiscard]] std::string name_for_root(const std::filesystem::path& root);

struct BoardRecord {
    std::string name;
    std::filesystem::path folder;             ///< its state
    std::filesystem::path root;               ///< where it serves; empty: in namespaces
    std::filesystem::path disk;               ///< what it keeps on a real disk; empty: nothing
    std::vector<std::filesystem::path> made;  ///< folders that were not there before it, outermost first
    pid_t pid = 0;                            ///< of the board's process, as this process sees it; 0 before it is up
    bool ssh = false;                         ///< an sshd runs on it
    int ssh_port = 0;                         ///< … and is reached here; 0: through `talpa board connect` only
    std::vector<PublishedPort> published;
    bool alive = false;  ///< its process is there
    bool up = false;     ///< … and has said that its files can be used
    std::string death;   ///< how its kernel ended, "panicked" or "frozen"; empty: it did not end by itself

    [[nodiscard]] std::filesystem::path lock_file() const { return folder / "lock"; }
    [[nodiscard]] std::filesystem::path record_file() const { return folder / "board.json"; }
    [[nodiscard]] std::filesystem::path log_file() const { return folder / "log"; }
    [[nodiscard]] std::filesystem::path control_socket() const { return folder / "control"; }
};

/// What proc/device-tree below a --root folder leads to.
inline constexpr const char* kDeviceTreeLink = "../sys/firmware/devicetree/base";

/// /tmp/talpa-UID, for users without a folder of their own for such things.
[[nodiscard]] std::filesystem::path temporary_folder();
/// The same, made if it is missing. AccessFailed where somebody else made it, or may write in it.
[[nodiscard]] host::Result<std::filesystem::path> own_temporary_folder();

/// $TALPA_BOARDS, else /run/talpa/boards for root, $XDG_RUNTIME_DIR/talpa/boards or /tmp/talpa-UID/boards for others (a
/// place where nothing is, if that folder is somebody else's).
[[nodiscard]] std::filesystem::path boards_folder();

/// The state of one board, or nothing known of it (an empty record with its folder's path). Its lock is tried.
[[nodiscard]] BoardRecord look_up(const std::string& name);
/// All boards that have a state folder, by name.
[[nodiscard]] std::vector<BoardRecord> all_boards();

/// Writes what look_up shall find.
[[nodiscard]] host::Result<void> save(const BoardRecord& record);

/// Makes a folder and those around it; adds those that were not there before to `made`, outermost first.
std::error_code make_folders(const std::filesystem::path& folder, std::vector<std::filesystem::path>& made);
/// Removes those that are empty.
void remove_made(const std::vector<std::filesystem::path>& made);

/// Takes away what a board left that did not end by itself: mounts, device files, empty control groups, its folders.
/// The board is dead. Asking twice does no harm.
[[nodiscard]] host::Result<void> clean_up(const BoardRecord& record);

}  // namespace talpa::board
