#include "board/host/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "board/host/board.h"
#include "board/machine/memory_file.h"

namespace talpa::board {

namespace fs = std::filesystem;

namespace {

/// Whoever only looks (look_up) has the lock for a moment: that is no board.
bool take_lock(int fd) {
    for (int attempt = 0; attempt < 20; ++attempt) {
        if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK && errno != EINTR) return false;
        ::usleep(2000);
    }
    return false;
}

/// One that was cleaned up meanwhile is no longer there by its name, and locks nothing.
bool is_still_there(int fd, const fs::path& file) {
    struct stat ours{}, there{};
    return ::fstat(fd, &ours) == 0 && ::stat(file.c_str(), &there) == 0 && ours.st_ino == there.st_ino;
}

}  // namespace

host::Result<Claim> claim(const BoardOptions& options) {
    TRY(check_board_name(options.name));
    if (const fs::path boards = boards_folder();
        boards.parent_path() == temporary_folder() || boards.parent_path() == "/dev/null")
        TRY(own_temporary_folder());
    Claim claim;
    for (int attempt = 0; attempt < 3; ++attempt) {
        claim.record = look_up(options.name);
        std::error_code error;
        fs::create_directories(claim.record.folder, error);
        if (error)
            return host::failure(ErrorCode::AccessFailed, "cannot create {}: {}", claim.record.folder.string(),
                                 error.message());
        struct stat st{};
        if (::stat(claim.record.folder.c_str(), &st) != 0 || st.st_uid != ::geteuid())
            return host::failure(ErrorCode::AccessFailed, "{} belongs to somebody else", claim.record.folder.string());
        ::chmod(claim.record.folder.c_str(), 0700);
        claim.lock = ::open(claim.record.lock_file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (claim.lock < 0)
            return host::failure(ErrorCode::AccessFailed, "cannot open {}: {}", claim.record.lock_file().string(),
                                 std::strerror(errno));
        if (!take_lock(claim.lock)) {
            ::close(claim.lock);
            return std::unexpected(
                host::Error(ErrorCode::InvalidState,
                            claim.record.pid == 0
                                ? fmt::format("the board '{}' is coming up", options.name)
                                : fmt::format("the board '{}' is up already (pid {})", options.name, claim.record.pid),
                            fmt::format("talpa board down --name {}", options.name)));
        }
        if (!is_still_there(claim.lock, claim.record.lock_file())) {
            ::close(claim.lock);
            claim.lock = -1;
            continue;
        }
        if (!fs::exists(claim.record.record_file())) break;
        // The remains of one that was killed. Cleaning removes the folder, lock and all, so take a fresh one.
        TRY(clean_up(claim.record));
        ::close(claim.lock);
        claim.lock = -1;
    }
    if (claim.lock < 0)
        return host::failure(ErrorCode::InvalidState, "the board '{}' comes and goes: others bring it up and down",
                             options.name);
    claim.record.root = options.root;
    return claim;
}

namespace {
host::Result<fs::path> make_root(const fs::path& given, unsigned remoteprocs, std::vector<fs::path>& made) {
    std::error_code error = make_folders(given, made);
    const fs::path root = error ? fs::path() : fs::canonical(given, error);
    if (error) return host::failure(ErrorCode::AccessFailed, "cannot use {}: {}", given.string(), error.message());
    if (root == "/")
        return host::failure(ErrorCode::InvalidArgument, "--root / would put a board over this machine's own /sys");
    for (const char* folder : {"dev", "sys", "proc", "lib/firmware"}) {
        error = make_folders(root / folder, made);
        if (error || fs::is_symlink(root / folder))
            return host::failure(ErrorCode::AccessFailed, "cannot make the folder {}: {}", (root / folder).string(),
                                 error ? error.message() : "it is a link");
    }
    if (!fs::is_empty(root / "sys", error) || error)
        return host::failure(ErrorCode::InvalidState, "{} is not empty: is another board served there?",
                             (root / "sys").string());
    for (unsigned k = 0; k < remoteprocs; ++k) {
        const fs::path mem = root / "dev" / memory_device(k);
        const auto what = fs::symlink_status(mem, error).type();
        const bool is_memory = what == fs::file_type::regular && fs::file_size(mem, error) == kMemoryFileBytes;
        if (what != fs::file_type::not_found && !is_memory)
            return host::failure(ErrorCode::InvalidState, "{} is something else than a board's memory", mem.string());
    }
    (void)!::symlink(kDeviceTreeLink, (root / "proc/device-tree").c_str());
    return root;
}
}  // namespace

host::Result<fs::path> prepare_root(const fs::path& given, unsigned remoteprocs, std::vector<fs::path>& made) {
    auto root = make_root(given, remoteprocs, made);
    if (!root) remove_made(made);
    return root;
}

}  // namespace talpa::board
