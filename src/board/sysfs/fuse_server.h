// Serves a FileTree at a mount point through libfuse3's low-level interface. Reads are answered on one thread; a write
// may block (a start of the M33 takes its delay) and runs on a thread of its own, so that readers never wait for it.
// (imx93-remoteproc, section 13)
#pragma once

#include <filesystem>
#include <memory>

#include "base/host/error.h"
#include "board/linux/tracer.h"
#include "board/sysfs/file_tree.h"

namespace talpa::board {

class FuseServer {
  public:
    /// Mounts on an existing folder. `tree` must outlive the server and not change any more, its functions aside.
    /// `tracer` hears of reads and writes. As root every user may enter, each by the modes; otherwise only the user who
    /// mounts. AccessFailed where FUSE cannot be mounted, with what is missing.
    [[nodiscard]] static host::Result<std::unique_ptr<FuseServer>> mount(const FileTree& tree,
                                                                         const std::filesystem::path& at,
                                                                         Tracer* tracer = nullptr);
    /// Waits for writes under way, unmounts; files still open then answer ENOTCONN.
    ~FuseServer();
    FuseServer(const FuseServer&) = delete;
    FuseServer& operator=(const FuseServer&) = delete;

  private:
    struct Session;
    explicit FuseServer(std::unique_ptr<Session> session);
    std::unique_ptr<Session> session_;
};

}  // namespace talpa::board
